package testkit_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/testkit"
)

func TestKafka_SharedBrokerAndOfficialTools(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	k := testkit.Kafka(t)
	topic, group := testkit.UniqueName("topic"), testkit.UniqueName("group")
	if _, err := k.Tool(ctx, testkit.TopicCommand, "--create", "--topic", topic, "--partitions", "2"); err != nil {
		t.Fatal(err)
	}
	cl := k.Client()
	produce(ctx, t, cl, topic)
	var next kadm.Offsets
	next.Add(kadm.Offset{Topic: topic, Partition: 0, At: 1, LeaderEpoch: -1})
	if err := kadm.NewClient(cl).CommitAllOffsets(ctx, group, next); err != nil {
		t.Fatal(err)
	}
	out, err := k.Tool(ctx, testkit.ConsumerGroupCommand, "--describe", "--group", group)
	if err != nil || !strings.Contains(out, topic) {
		t.Fatalf("describe group: got %q %v, want the topic", out, err)
	}
}

func TestKafkaCluster3_LosesAndRegainsBrokers(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	k := testkit.KafkaCluster3(t)
	// Impatient, so that a paused broker is given up after a second.
	cl := k.Client(kgo.ProduceRequestTimeout(time.Second), kgo.RequestTimeoutOverhead(time.Second), kgo.MetadataMinAge(100*time.Millisecond))
	topic := testkit.UniqueName("topic")
	resp, err := kadm.NewClient(cl).CreateTopic(ctx, 3, -1, nil, topic)
	if err != nil {
		t.Fatal(err)
	}
	if resp.ReplicationFactor != 3 || *resp.Configs["min.insync.replicas"].Value != "2" {
		t.Fatalf("new topic: got replication %d and configs %v, want 3 and min.insync.replicas 2", resp.ReplicationFactor, resp.Configs)
	}
	produce(ctx, t, cl, topic)
	k.Kill(0)
	produce(ctx, t, cl, topic)
	k.Start(0)
	k.Stop(1)
	produce(ctx, t, cl, topic)
	k.Start(1)
	k.Pause(2)
	produce(ctx, t, cl, topic)
	k.Resume(2)
}

// produce writes one record to partition 0 and waits until it is acknowledged.
func produce(ctx context.Context, t *testing.T, cl *kgo.Client, topic string) {
	t.Helper()
	began := time.Now()
	if err := cl.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte("v")}).FirstErr(); err != nil {
		t.Fatalf("produce to %s: %v", topic, err)
	}
	t.Logf("acknowledged after %s", time.Since(began).Round(time.Millisecond))
}
