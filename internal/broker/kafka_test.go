package broker

import (
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"hookledger/internal/testkit"
)

// TestApplyTopic_OnApacheKafka: what kfake does not check, the real thing does.
func TestApplyTopic_OnApacheKafka(t *testing.T) {
	t.Parallel()
	cfg := DefaultConfig()
	cfg.Brokers, cfg.Topic = testkit.Kafka(t).Brokers(), testkit.UniqueName("events")
	cfg.Partitions, cfg.Replication, cfg.Durability = 2, 1, Single
	cl, err := Open(cfg, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	ctx := t.Context()

	if rep, err := ApplyTopic(ctx, cl, cfg, maxBody, true); err != nil || !rep.Created {
		t.Fatalf("dry run: got %+v, %v", rep, err)
	}
	if rep, err := ApplyTopic(ctx, cl, cfg, maxBody, false); err != nil || !rep.Created {
		t.Fatalf("create: got %+v, %v", rep, err)
	}
	if _, err := CheckTopic(ctx, cl, cfg, maxBody); err != nil {
		t.Fatalf("check: %v", err)
	}
	if rep, err := ApplyTopic(ctx, cl, cfg, maxBody, false); err != nil || len(rep.Changes) != 0 {
		t.Fatalf("apply again: got %+v, %v, want no changes", rep, err)
	}
	cfg.Partitions = 3
	for _, dryRun := range []bool{true, false} {
		rep, err := ApplyTopic(ctx, cl, cfg, 2*maxBody, dryRun)
		if err != nil || len(rep.Changes) != 2 {
			t.Fatalf("grow, dry run %t: got %+v, %v, want partitions and max.message.bytes", dryRun, rep, err)
		}
	}
	topic, err := CheckTopic(ctx, cl, cfg, 2*maxBody)
	if err != nil || topic.Partitions != 3 {
		t.Fatalf("check: got %+v, %v", topic, err)
	}
	cfg.Durability, cfg.Replication = Replicated, 3
	_, err = CheckTopic(ctx, cl, cfg, 2*maxBody)
	if err == nil || !strings.Contains(err.Error(), "replication is 1") || !strings.Contains(err.Error(), "min.insync.replicas is 1") {
		t.Errorf("one copy with durability: replicated: got %v", err)
	}
	cfg.Topic = testkit.UniqueName("events")
	if _, err := ApplyTopic(ctx, cl, cfg, maxBody, false); err == nil || !strings.Contains(err.Error(), "start that many brokers") {
		t.Errorf("three copies on one broker: got %v", err)
	}
}
