package broker

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// What durability: replicated needs: an acknowledged record survives one broker.
const (
	minReplicas       = 3
	minInSyncReplicas = 2
)

// segmentAge is the age at which a segment is closed. Kafka deletes whole segments,
// so a quiet partition keeps records up to this much beyond its retention, and the
// memory of events must be kept that much longer than the topic's.
const segmentAge = 24 * time.Hour

// ErrNoTopic says that the topic does not exist.
var ErrNoTopic = errors.New("topic does not exist: run `hookledger topics apply`")

// Topic is what the brokers say of the topic.
type Topic struct {
	ClusterID  string
	ID         [16]byte
	Partitions int
	// Replication is the smallest number of replicas of any partition.
	Replication int
	// Config is the effective configuration, by Kafka's names.
	Config map[string]string
}

// setting is one configuration of the topic that we decide.
type setting struct {
	name, value string
	// atLeast says that a larger value of the topic is fine.
	atLeast bool
}

// settings returns what topics apply gives the topic of cfg.
func settings(cfg Config, maxBodyBytes int) []setting {
	inSync := 1
	if cfg.Durability == Replicated {
		inSync = minInSyncReplicas
	}
	return []setting{
		{name: "min.insync.replicas", value: strconv.Itoa(inSync), atLeast: true},
		{name: "unclean.leader.election.enable", value: "false"},
		{name: "cleanup.policy", value: "delete"},
		{name: "retention.ms", value: strconv.FormatInt(cfg.Retention.Milliseconds(), 10)},
		{name: "segment.ms", value: strconv.FormatInt(segmentAge.Milliseconds(), 10)},
		{name: "max.message.bytes", value: strconv.Itoa(MinRecordBytes(maxBodyBytes)), atLeast: true},
		// Batches stay as producers compressed them: a broker that compresses again
		// spends its time, and may grow a batch past the limit that the producer kept.
		{name: "compression.type", value: "producer"},
	}
}

// holds says whether a topic with the value got satisfies s.
func (s setting) holds(got string) bool {
	if !s.atLeast {
		return got == s.value
	}
	g, err := strconv.ParseInt(got, 10, 64)
	w, _ := strconv.ParseInt(s.value, 10, 64)
	return err == nil && g >= w
}

// ReadTopic returns what the brokers say of the topic of cfg. It fails with
// ErrNoTopic if there is none.
func ReadTopic(ctx context.Context, cl *kgo.Client, cfg Config) (Topic, error) {
	t, err := readMetadata(ctx, cl, cfg.Topic)
	if err != nil {
		return Topic{}, err
	}
	rcs, err := kadm.NewClient(cl).DescribeTopicConfigs(ctx, cfg.Topic)
	if err != nil {
		return Topic{}, fmt.Errorf("read configuration of topic %s: %w", cfg.Topic, err)
	}
	rc, err := rcs.On(cfg.Topic, nil)
	if err == nil {
		err = rc.Err
	}
	if err != nil {
		return Topic{}, fmt.Errorf("read configuration of topic %s: %w", cfg.Topic, err)
	}
	t.Config = make(map[string]string, len(rc.Configs))
	for _, c := range rc.Configs {
		t.Config[c.Key] = c.MaybeValue()
	}
	return t, nil
}

// Identity returns the ID of the cluster, the ID of the topic and the number of its
// partitions. It fails with ErrNoTopic if there is no such topic.
func Identity(ctx context.Context, cl *kgo.Client, topic string) (clusterID string, topicID [16]byte, partitions int, err error) {
	t, err := readMetadata(ctx, cl, topic)
	return t.ClusterID, t.ID, t.Partitions, err
}

// readMetadata asks the brokers, past the client's cache: decisions about positions
// must not rest on the ID that the topic had a moment ago.
func readMetadata(ctx context.Context, cl *kgo.Client, topic string) (Topic, error) {
	req := kmsg.NewPtrMetadataRequest()
	rt := kmsg.NewMetadataRequestTopic()
	rt.Topic = &topic
	req.Topics = append(req.Topics, rt)
	md, err := req.RequestWith(ctx, cl)
	if err == nil && len(md.Topics) != 1 {
		err = fmt.Errorf("the answer has %d topics", len(md.Topics))
	}
	if err != nil {
		return Topic{}, fmt.Errorf("read metadata of topic %s: %w", topic, err)
	}
	td := md.Topics[0]
	err = kerr.ErrorForCode(td.ErrorCode)
	switch {
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return Topic{}, fmt.Errorf("topic %s: %w", topic, ErrNoTopic)
	case err != nil:
		return Topic{}, fmt.Errorf("read metadata of topic %s: %w", topic, err)
	case md.ClusterID == nil || td.TopicID == [16]byte{}:
		return Topic{}, fmt.Errorf("read metadata of topic %s: the brokers do not tell cluster and topic IDs: use Kafka 2.8 or newer", topic)
	}
	t := Topic{ClusterID: *md.ClusterID, ID: td.TopicID, Partitions: len(td.Partitions), Replication: -1}
	for _, p := range td.Partitions {
		if t.Replication < 0 || len(p.Replicas) < t.Replication {
			t.Replication = len(p.Replicas)
		}
	}
	return t, nil
}

// RefusedError says why a role does not start on the topic.
type RefusedError struct {
	Topic string
	// Reasons has one line for each setting, ending in what to do next.
	Reasons []string
}

// Error returns all reasons.
func (e *RefusedError) Error() string {
	return "topic " + e.Topic + " is refused:\n  " + strings.Join(e.Reasons, "\n  ")
}

// CheckTopic returns the topic of cfg, or why a role must not start on it: ErrNoTopic,
// a *RefusedError, or the error of asking.
//
// With durability: replicated the topic must keep an acknowledged record when one
// broker is lost for good. With any durability it must not compact, since compaction
// removes events that share a key, and must take records of maxBodyBytes.
func CheckTopic(ctx context.Context, cl *kgo.Client, cfg Config, maxBodyBytes int) (Topic, error) {
	t, err := ReadTopic(ctx, cl, cfg)
	if err != nil {
		return Topic{}, err
	}
	if reasons := refusals(t, cfg, maxBodyBytes); len(reasons) > 0 {
		return t, &RefusedError{Topic: cfg.Topic, Reasons: reasons}
	}
	return t, nil
}

func refusals(t Topic, cfg Config, maxBodyBytes int) []string {
	var reasons []string
	refuse := func(format string, args ...any) { reasons = append(reasons, fmt.Sprintf(format, args...)) }
	if cfg.Durability == Replicated {
		if t.Replication < minReplicas {
			refuse("replication is %d, durability: replicated needs %d: reassign the partitions to %d brokers each, or set kafka.durability: single and accept the loss of acknowledged webhooks with one broker",
				t.Replication, minReplicas, minReplicas)
		}
		if n, err := strconv.Atoi(t.Config["min.insync.replicas"]); err != nil || n < minInSyncReplicas {
			refuse("min.insync.replicas is %s, durability: replicated needs %d: run `hookledger topics apply`",
				shown(t.Config, "min.insync.replicas"), minInSyncReplicas)
		} else if n >= t.Replication && t.Replication >= minReplicas {
			refuse("min.insync.replicas is %d of %d replicas, so the loss of one broker stops all webhooks: set it to %d",
				n, t.Replication, t.Replication-1)
		}
		if t.Config["unclean.leader.election.enable"] != "false" {
			refuse("unclean.leader.election.enable is %s, so an out-of-date replica may become leader and drop acknowledged webhooks: run `hookledger topics apply`",
				shown(t.Config, "unclean.leader.election.enable"))
		}
	}
	if t.Config["cleanup.policy"] != "delete" {
		refuse("cleanup.policy is %s, which may remove events before they are applied: run `hookledger topics apply`",
			shown(t.Config, "cleanup.policy"))
	}
	if n, err := strconv.Atoi(t.Config["max.message.bytes"]); err != nil || n < MinRecordBytes(maxBodyBytes) {
		refuse("max.message.bytes is %s, a webhook of ingest.max_body_bytes %d needs %d: run `hookledger topics apply`",
			shown(t.Config, "max.message.bytes"), maxBodyBytes, MinRecordBytes(maxBodyBytes))
	}
	return reasons
}

func shown(config map[string]string, name string) string {
	if v, ok := config[name]; ok && v != "" {
		return v
	}
	return "not known"
}
