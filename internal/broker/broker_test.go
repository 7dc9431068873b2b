package broker

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const maxBody = 1 << 20

type bundle struct {
	cluster *kfake.Cluster
	client  *kgo.Client
	cfg     Config
}

func setup(t *testing.T, brokers int) *bundle {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(brokers))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	cfg := DefaultConfig()
	cfg.Brokers = cluster.ListenAddrs()
	cfg.Partitions = 3
	cl, err := Open(cfg, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return &bundle{cluster, cl, cfg}
}

func TestApplyTopic_CreatesThenFindsNothingToDo(t *testing.T) {
	t.Parallel()
	b := setup(t, 3)
	ctx := t.Context()

	if _, err := CheckTopic(ctx, b.client, b.cfg, maxBody); !errors.Is(err, ErrNoTopic) || !strings.Contains(err.Error(), "hookledger topics apply") {
		t.Fatalf("check without topic: got %v, want ErrNoTopic naming the command", err)
	}
	rep, err := ApplyTopic(ctx, b.client, b.cfg, maxBody, true)
	if err != nil || !rep.Created || !rep.DryRun {
		t.Fatalf("dry run: got %+v, %v", rep, err)
	}
	if _, err := CheckTopic(ctx, b.client, b.cfg, maxBody); !errors.Is(err, ErrNoTopic) {
		t.Fatalf("a dry run created the topic: %v", err)
	}
	rep, err = ApplyTopic(ctx, b.client, b.cfg, maxBody, false)
	if err != nil || !rep.Created {
		t.Fatalf("apply: got %+v, %v", rep, err)
	}
	topic, err := CheckTopic(ctx, b.client, b.cfg, maxBody)
	if err != nil {
		t.Fatalf("check after apply: %v", err)
	}
	if topic.Partitions != 3 || topic.Replication != 3 || topic.ClusterID == "" || topic.ID == ([16]byte{}) {
		t.Errorf("got topic %+v", topic)
	}
	if got := topic.Config["segment.ms"]; got != "86400000" {
		t.Errorf("segment.ms: got %s, want 86400000", got)
	}
	rep, err = ApplyTopic(ctx, b.client, b.cfg, maxBody, false)
	if err != nil || rep.Created || len(rep.Changes) != 0 || len(rep.Notes) != 0 {
		t.Errorf("second apply: got %+v, %v, want nothing to do", rep, err)
	}
}

func TestApplyTopic_AltersWhatDiffersAndNeverShrinks(t *testing.T) {
	t.Parallel()
	b := setup(t, 3)
	ctx := t.Context()
	if err := b.cluster.CreateTopic(b.cfg.Topic, 2, map[string]string{"max.message.bytes": "9000000", "retention.ms": "1000", "cleanup.policy": "compact"}); err != nil {
		t.Fatal(err)
	}
	rep, err := ApplyTopic(ctx, b.client, b.cfg, maxBody, true)
	if err != nil || len(rep.Changes) < 3 {
		t.Fatalf("dry run: got %+v, %v", rep, err)
	}
	if topic, _ := ReadTopic(ctx, b.client, b.cfg); topic.Partitions != 2 || topic.Config["cleanup.policy"] != "compact" {
		t.Fatalf("a dry run changed the topic: %+v", topic)
	}
	if _, err = ApplyTopic(ctx, b.client, b.cfg, maxBody, false); err != nil {
		t.Fatal(err)
	}
	topic, err := CheckTopic(ctx, b.client, b.cfg, maxBody)
	if err != nil {
		t.Fatal(err)
	}
	if topic.Partitions != 3 || topic.Config["retention.ms"] != "2592000000" || topic.Config["max.message.bytes"] != "9000000" {
		t.Errorf("got %d partitions, %v", topic.Partitions, topic.Config)
	}
	b.cfg.Partitions = 1
	rep, err = ApplyTopic(ctx, b.client, b.cfg, maxBody, false)
	if err != nil || len(rep.Changes) != 0 || !strings.Contains(strings.Join(rep.Notes, " "), "partitions cannot be removed") {
		t.Errorf("shrinking: got %+v, %v, want a note", rep, err)
	}
}

func TestCheckTopic_RefusesWhatMayLoseRecords(t *testing.T) {
	t.Parallel()
	good := Topic{Replication: 3, Config: map[string]string{
		"min.insync.replicas": "2", "unclean.leader.election.enable": "false", "cleanup.policy": "delete", "max.message.bytes": "1114112",
	}}
	replicated, single := DefaultConfig(), DefaultConfig()
	single.Durability, single.Replication = Single, 1
	for name, tc := range map[string]struct {
		cfg     Config
		setting string
		value   string
		want    string
	}{
		"good":                    {cfg: replicated},
		"two replicas":            {replicated, "replication", "2", "replication is 2, durability: replicated needs 3: reassign the partitions to 3 brokers each, or set kafka.durability: single and accept the loss of acknowledged webhooks with one broker"},
		"one in sync":             {replicated, "min.insync.replicas", "1", "min.insync.replicas is 1, durability: replicated needs 2: run `hookledger topics apply`"},
		"all in sync":             {replicated, "min.insync.replicas", "3", "min.insync.replicas is 3 of 3 replicas, so the loss of one broker stops all webhooks: set it to 2"},
		"unclean election":        {replicated, "unclean.leader.election.enable", "true", "unclean.leader.election.enable is true, so an out-of-date replica may become leader and drop acknowledged webhooks: run `hookledger topics apply`"},
		"election not known":      {replicated, "unclean.leader.election.enable", "", "unclean.leader.election.enable is not known, so an out-of-date replica may become leader and drop acknowledged webhooks: run `hookledger topics apply`"},
		"compacted":               {replicated, "cleanup.policy", "compact,delete", "cleanup.policy is compact,delete, which may remove events before they are applied: run `hookledger topics apply`"},
		"compacted, single":       {single, "cleanup.policy", "compact", "cleanup.policy is compact, which may remove events before they are applied: run `hookledger topics apply`"},
		"small records":           {replicated, "max.message.bytes", "1048588", "max.message.bytes is 1048588, a webhook of ingest.max_body_bytes 1048576 needs 1114112: run `hookledger topics apply`"},
		"one replica, single":     {cfg: single, setting: "replication", value: "1"},
		"one in sync, single":     {cfg: single, setting: "min.insync.replicas", value: "1"},
		"unclean, single":         {cfg: single, setting: "unclean.leader.election.enable", value: "true"},
		"not known, single":       {cfg: single, setting: "unclean.leader.election.enable", value: ""},
		"small records, single":   {single, "max.message.bytes", "1000012", "max.message.bytes is 1000012, a webhook of ingest.max_body_bytes 1048576 needs 1114112: run `hookledger topics apply`"},
		"limit just large enough": {cfg: replicated, setting: "max.message.bytes", value: "1114112"},
	} {
		topic := good
		topic.Config = make(map[string]string)
		for k, v := range good.Config {
			topic.Config[k] = v
		}
		if tc.setting == "replication" {
			topic.Replication = int(tc.value[0] - '0')
		} else if tc.setting != "" {
			topic.Config[tc.setting] = tc.value
		}
		if got := strings.Join(refusals(topic, tc.cfg, maxBody), "\n"); got != tc.want {
			t.Errorf("%s:\n got %q\nwant %q", name, got, tc.want)
		}
	}
}

func TestConfig_RefusesWhatNoBrokerTakes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		key    string
		change func(*Config)
	}{
		{"kafka.brokers", func(c *Config) { c.Brokers = nil }},
		{"kafka.brokers", func(c *Config) { c.Brokers = []string{"localhost"} }},
		{"kafka.brokers", func(c *Config) { c.Brokers = []string{"localhost:99999"} }},
		{"kafka.brokers", func(c *Config) { c.Brokers = []string{"localhost:0"} }},
		{"kafka.brokers", func(c *Config) { c.Brokers = []string{"http://localhost:9092"} }},
		{"kafka.topic", func(c *Config) { c.Topic = "a b/c" }},
		{"kafka.topic", func(c *Config) { c.Topic = ".." }},
		{"kafka.topic", func(c *Config) { c.Topic = strings.Repeat("x", 250) }},
		{"kafka.partitions", func(c *Config) { c.Partitions = 99999999999999 }},
		{"kafka.partitions", func(c *Config) { c.Partitions = 0 }},
	} {
		cfg := DefaultConfig()
		c.change(&cfg)
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), c.key) {
			t.Errorf("%s: got %v", c.key, err)
		}
	}
	cfg := DefaultConfig()
	cfg.Brokers = []string{"kafka-1:9092", "[::1]:9092", "127.0.0.1:1"}
	if err := cfg.Validate(); err != nil && strings.Contains(err.Error(), "write host:port") {
		t.Errorf("good brokers: got %v", err)
	}
}

func TestConfig_RefusesReplicatedWithTooFewCopies(t *testing.T) {
	t.Parallel()
	cfg := DefaultConfig()
	if err := cfg.Validate(); err != nil || cfg.Warning() != "" {
		t.Fatalf("default: %v, %q", err, cfg.Warning())
	}
	cfg.Replication = 1
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "kafka.durability: single") {
		t.Errorf("got %v, want a refusal that names the way out", err)
	}
	cfg.Durability = Single
	if err := cfg.Validate(); err != nil || cfg.Warning() == "" {
		t.Errorf("single: got %v, warning %q", err, cfg.Warning())
	}
}

func TestOffsets_AnErrorIsNeverZero(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := b.cluster.CreateTopic(b.cfg.Topic, 3, nil); err != nil {
		t.Fatal(err)
	}
	if res := b.client.ProduceSync(ctx, &kgo.Record{Topic: b.cfg.Topic, Partition: 1, Value: []byte("x")}); res.FirstErr() != nil {
		t.Fatal(res.FirstErr())
	}
	committed, err := CommittedOffsets(ctx, b.client, "g", b.cfg.Topic)
	if err != nil || len(committed) != 0 {
		t.Fatalf("no commits: got %v, %v, want no entries", committed, err)
	}
	commit := kadm.Offsets{}
	commit.AddOffset(b.cfg.Topic, 1, 0, 5)
	if err := kadm.NewClient(b.client).CommitAllOffsets(ctx, "g", commit); err != nil {
		t.Fatal(err)
	}
	committed, err = CommittedOffsets(ctx, b.client, "g", b.cfg.Topic)
	if err != nil || len(committed) != 1 || committed[1] != (Offset{0, 5}) {
		t.Fatalf("one commit: got %v, %v", committed, err)
	}
	starts, err := StartOffsets(ctx, b.client, b.cfg.Topic)
	ends, err2 := EndOffsets(ctx, b.client, b.cfg.Topic)
	if err != nil || err2 != nil || len(starts) != 3 || len(ends) != 3 {
		t.Fatalf("got %v %v, %v %v", starts, ends, err, err2)
	}

	// One partition of three answers with an error that is not retried.
	fault := b.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Partitions: []int32{2}, Topic: b.cfg.Topic, Err: kerr.TopicAuthorizationFailed, Count: -1})
	if got, err := EndOffsets(ctx, b.client, b.cfg.Topic); err == nil {
		t.Errorf("end offsets with one partition failing: got %v, want an error", got)
	}
	if got, err := StartOffsets(ctx, b.client, b.cfg.Topic); err == nil {
		t.Errorf("start offsets with one partition failing: got %v, want an error", got)
	}
	fault.Remove()
	fault = b.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetFetch}, Group: "g", Err: kerr.GroupAuthorizationFailed, Count: -1})
	if got, err := CommittedOffsets(ctx, b.client, "g", b.cfg.Topic); err == nil {
		t.Errorf("committed offsets with the group failing: got %v, want an error", got)
	}
	fault.Remove()
}

func TestLogger_ForgesNoLineAndNamesNoConnection(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	l := logger{zerolog.New(&out).Level(zerolog.DebugLevel)}
	l.Log(kgo.LogLevelWarn, "bad", "detail", "x\n{\"level\":\"info\"}")
	if strings.Count(out.String(), "\n") != 1 {
		t.Errorf("got %q, want one line", out.String())
	}
	out.Reset()
	l.Log(kgo.LogLevelError, "closing", "err", context.Canceled)
	if out.Len() != 0 {
		t.Errorf("got %q, want nothing for a client that is being closed", out.String())
	}
}
