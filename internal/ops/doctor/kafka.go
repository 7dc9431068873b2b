package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"hookledger/internal/broker"
)

// identity is which topic of which cluster the brokers have; known is false when they
// could not be asked.
type identity struct {
	known     bool
	clusterID string
	topicID   [16]byte
}

// brokerPatience bounds one question to Kafka.
const brokerPatience = 10 * time.Second

// needed is what kafka.durability: replicated needs and single gives up.
func (e *examination) needed() Verdict {
	if e.Config.Kafka.Durability == broker.Single {
		return Note
	}
	return Problem
}

func (e *examination) kafka(ctx context.Context) identity {
	cfg := e.Config.Kafka
	if cfg.InsecurePlaintext && !cfg.TLS.Enabled {
		e.add(Warning, "kafka_tls", "kafka.insecure_plaintext is true", "whoever is on the network reads and changes webhooks on their way to the broker",
			"set kafka.tls.enabled: true and remove kafka.insecure_plaintext")
	}
	if e.Kafka == nil {
		e.add(Problem, "brokers", e.KafkaError.Error(), "without brokers no webhook is accepted and none applied", "correct kafka.tls and kafka.sasl")
		return identity{}
	}
	if !e.brokers(ctx) {
		return identity{}
	}
	asking, cancel := context.WithTimeout(ctx, brokerPatience)
	defer cancel()
	topic, err := broker.ReadTopic(asking, e.Kafka, cfg)
	if err != nil {
		e.add(Problem, "topic", err.Error(), "roles refuse to start without it", "run `hookledger topics apply`, or give this user Describe and DescribeConfigs on the topic (deploy/ACLS.md)")
		return identity{}
	}
	e.topic(topic)
	e.inSync(asking)
	e.unread(asking)
	e.group(asking)
	return identity{true, topic.ClusterID, topic.ID}
}

// brokers asks each configured address by itself: a client is content with one.
func (e *examination) brokers(ctx context.Context) bool {
	cfg := e.Config.Kafka
	var away []string
	for _, addr := range cfg.Brokers {
		one := cfg
		one.Brokers = []string{addr}
		cl, err := broker.Open(one, e.Log)
		if err == nil {
			asking, cancel := context.WithTimeout(ctx, brokerPatience/2)
			err = cl.Ping(asking)
			cancel()
			cl.Close()
		}
		if err != nil {
			away = append(away, fmt.Sprintf("%s: %v", addr, err))
		}
	}
	if len(away) == len(cfg.Brokers) {
		e.add(Problem, "brokers", strings.Join(away, "; "), "without brokers no webhook is accepted and none applied",
			"start them, or correct kafka.brokers, kafka.tls and kafka.sasl")
		return false
	}
	e.unless(len(away) == 0, Warning, "brokers", or(strings.Join(away, "; "), "all "+strconv.Itoa(len(cfg.Brokers))+" addresses answer"),
		"a role that starts while the others are away finds no broker", "start them, or correct kafka.brokers")
	if len(cfg.Brokers) == 1 && cfg.Durability == broker.Replicated {
		e.add(Warning, "broker_addresses", "kafka.brokers names one address", "a role cannot start while that broker is away", "name two or more")
	}
	return true
}

// topic holds what the brokers say of the topic against the configuration.
func (e *examination) topic(t broker.Topic) {
	cfg := e.Config.Kafka
	apply := "run `hookledger topics apply`"
	value := func(name string) string { return or(t.Config[name], "not known") }
	number := func(name string) int64 {
		n, err := strconv.ParseInt(t.Config[name], 10, 64)
		if err != nil {
			return 0
		}
		return n
	}
	e.unless(t.Replication >= 3, e.needed(), "topic_replication", fmt.Sprintf("replication %d", t.Replication),
		"an acknowledged webhook is lost with the disks of fewer than three brokers", "reassign the partitions to 3 brokers each (kafka-reassign-partitions)")
	durable := apply
	if cfg.Durability == broker.Single { // topics apply asks for one copy then
		durable = "set kafka.durability: replicated first, with three brokers, then " + apply
	}
	insync := number("min.insync.replicas")
	e.unless(insync >= 2, e.needed(), "topic_min_insync", "min.insync.replicas "+value("min.insync.replicas"),
		"a webhook is answered 2xx with one copy, and losing that broker loses the money", durable)
	if insync >= int64(t.Replication) && t.Replication > 1 {
		e.add(Warning, "topic_min_insync", fmt.Sprintf("min.insync.replicas %d of %d replicas", insync, t.Replication),
			"the loss of one broker stops all webhooks", fmt.Sprintf("set it to %d", t.Replication-1))
	}
	e.unless(t.Config["unclean.leader.election.enable"] == "false", e.needed(), "topic_unclean_election", "unclean.leader.election.enable "+value("unclean.leader.election.enable"),
		"a replica that is behind may become leader and drop acknowledged webhooks", apply)
	e.unless(t.Config["cleanup.policy"] == "delete", Problem, "topic_cleanup", "cleanup.policy "+value("cleanup.policy"),
		"compaction removes events that share a key, applied or not", apply)
	least := int64(broker.MinRecordBytes(e.Config.Ingest.MaxBodyBytes))
	e.unless(number("max.message.bytes") >= least, Problem, "topic_record_bytes", "max.message.bytes "+value("max.message.bytes"),
		fmt.Sprintf("a webhook of ingest.max_body_bytes needs %d, and a larger one is answered 503 for ever", least), apply)

	retention := time.Duration(number("retention.ms")) * time.Millisecond
	found := "retention " + retention.String()
	if number("retention.ms") < 0 {
		retention, found = 1<<62, "retention without end"
	}
	e.unless(retention >= cfg.Retention, Warning, "topic_retention", found, "an outage longer than that loses webhooks that were answered 2xx; kafka.retention is "+cfg.Retention.String(), apply)
	if size := number("retention.bytes"); size > 0 {
		e.add(Warning, "topic_retention_bytes", fmt.Sprintf("retention.bytes %d", size), "a flood pushes unread events out before their time", "remove retention.bytes from the topic")
	}
	if retention < 1<<62 {
		keep := e.Config.Dedupe.Keep
		e.unless(keep >= retention+24*time.Hour, Note, "dedupe_keep", "dedupe.keep "+keep.String(),
			"a replay of the whole topic meets events that were forgotten: it is slower, and as right, since the ledger never forgets", fmt.Sprintf("set dedupe.keep to %s or more", retention+24*time.Hour))
	}
	e.unless(t.Partitions == cfg.Partitions, Warning, "topic_partitions", fmt.Sprintf("%d partitions, kafka.partitions is %d", t.Partitions, cfg.Partitions),
		"one of the two was changed by hand; balances do not depend on it, but analysts who rely on the key do, and workers beyond the partitions idle", "correct kafka.partitions, or run `hookledger topics apply` to add partitions")
}

// inSync looks at the partitions as they are now.
func (e *examination) inSync(ctx context.Context) {
	topics, err := kadm.NewClient(e.Kafka).ListTopics(ctx, e.Config.Kafka.Topic)
	if err != nil {
		e.add(Problem, "partitions_in_sync", err.Error(), "partitions without a leader take no webhook", "look at the brokers")
		return
	}
	var behind, leaderless []string
	for _, p := range topics[e.Config.Kafka.Topic].Partitions.Sorted() {
		if p.Leader < 0 {
			leaderless = append(leaderless, strconv.Itoa(int(p.Partition)))
		} else if len(p.ISR) < len(p.Replicas) {
			behind = append(behind, strconv.Itoa(int(p.Partition)))
		}
	}
	if len(leaderless) > 0 {
		e.add(Problem, "partitions_in_sync", "partitions without a leader: "+strings.Join(leaderless, ", "), "webhooks for them are answered 503, and what they hold is not applied", "start the brokers that hold them")
	}
	e.unless(len(behind) == 0, Warning, "partitions_in_sync", or(prefixed("partitions that lack replicas in sync: ", behind), "every replica is in sync"),
		"one more broker away may stop webhooks", "start the missing brokers, and wait until they have caught up")
}

// unread compares what the group has read with what retention is about to take.
func (e *examination) unread(ctx context.Context) {
	cfg := e.Config.Kafka
	committed, err := broker.CommittedOffsets(ctx, e.Kafka, cfg.Group, cfg.Topic)
	if err != nil {
		e.notAllowed("group_unread", err, "Describe on the group")
		return
	}
	starts, err := broker.StartOffsets(ctx, e.Kafka, cfg.Topic)
	if err == nil {
		var halves kadm.ListedOffsets
		halves, err = kadm.NewClient(e.Kafka).ListOffsetsAfterMilli(ctx, e.Now().Add(-cfg.Retention/2).UnixMilli(), cfg.Topic)
		if err == nil {
			var late, lost []string
			for p, c := range committed {
				half, _ := halves.Lookup(cfg.Topic, p)
				switch {
				case c.At < starts[p].At:
					lost = append(lost, strconv.Itoa(int(p)))
				case half.Err == nil && c.At < half.Offset:
					late = append(late, strconv.Itoa(int(p)))
				}
			}
			slices.Sort(lost)
			slices.Sort(late)
			if len(lost) > 0 {
				e.add(Problem, "group_unread", "records were removed before they were read: partitions "+strings.Join(lost, ", "), "their money is lost to the ledger", "look at `incidents` for the ranges, ask the providers to send them again, and raise kafka.retention")
			}
			e.unless(len(late) == 0, Warning, "group_unread", or(prefixed("unread for longer than half of the retention: partitions ", late), "nothing is unread for long"),
				"retention removes what nobody has read", "start workers, and raise kafka.retention until they have caught up")
		}
	}
	if err != nil {
		e.add(Problem, "group_unread", err.Error(), "whether retention is about to take unread events is not known", "look at the brokers")
	}
}

// group looks at the settings of the brokers that bound ours.
func (e *examination) group(ctx context.Context) {
	configs, err := kadm.NewClient(e.Kafka).DescribeBrokerConfigs(ctx)
	if err == nil && len(configs) > 0 {
		err = configs[0].Err
	}
	if err != nil || len(configs) == 0 {
		e.notAllowed("group_settings", err, "DescribeConfigs on the cluster")
		return
	}
	limits := map[string]time.Duration{}
	units := map[string]time.Duration{"group.min.session.timeout.ms": time.Millisecond, "group.max.session.timeout.ms": time.Millisecond, "offsets.retention.minutes": time.Minute}
	for _, c := range configs[0].Configs {
		if n, err := strconv.ParseInt(c.MaybeValue(), 10, 64); err == nil && units[c.Key] > 0 {
			limits[c.Key] = time.Duration(n) * units[c.Key]
		}
	}
	timeout := e.Config.Consume.SessionTimeout
	least, most := limits["group.min.session.timeout.ms"], limits["group.max.session.timeout.ms"]
	e.unless(timeout >= least && (most == 0 || timeout <= most), Problem, "group_settings", fmt.Sprintf("consume.session_timeout %s, brokers take %s to %s", timeout, least, most),
		"no worker can join the group", "set consume.session_timeout between them, or the brokers' group.min.session.timeout.ms and group.max.session.timeout.ms")
	if kept := limits["offsets.retention.minutes"]; kept > 0 {
		e.unless(kept >= 7*24*time.Hour, Note, "group_offsets_retention", "offsets are kept for "+kept.String(),
			"after that a group without workers has no offsets; workers then start where Postgres stands, which is right", "set offsets.retention.minutes to 10080 or more")
	}
}

// notAllowed tells a missing right, which is no fault of the stack, from a failure.
func (e *examination) notAllowed(check string, err error, right string) {
	var dns *net.DNSError
	switch {
	case err == nil:
		e.add(Note, check, "the brokers say nothing of it", "it could not be examined", "look at the brokers' configuration")
	case errors.Is(err, kerr.ClusterAuthorizationFailed), errors.Is(err, kerr.GroupAuthorizationFailed), errors.Is(err, kerr.TopicAuthorizationFailed):
		e.add(Note, check, "this user may not ask", "it could not be examined", "give this user "+right+", or ask as another")
	case errors.As(err, &dns):
		e.add(Warning, check, err.Error(), "a broker names another that is not found from here", "correct advertised.listeners of the brokers, or the name service")
	default:
		e.add(Warning, check, err.Error(), "it could not be examined", "look at the brokers")
	}
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func prefixed(prefix string, items []string) string {
	if len(items) == 0 {
		return ""
	}
	return prefix + strings.Join(items, ", ")
}
