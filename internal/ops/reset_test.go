package ops_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/broker"
	"hookledger/internal/ops"
	"hookledger/internal/testkit"
)

const (
	topic = "payments.events"
	group = "hookledger"
)

// log is a topic of two partitions with ten records each, one a second from begin on.
func newLog(t *testing.T) (cl *kgo.Client, brokers []string, begin time.Time) {
	t.Helper()
	ctx := t.Context()
	brokers = testkit.Kfake(t).ListenAddrs()
	cl, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	if _, err := kadm.NewClient(cl).CreateTopic(ctx, 2, 1, nil, topic); err != nil {
		t.Fatal(err)
	}
	begin = time.Now().Add(-time.Hour).Truncate(time.Second)
	for i := range 20 {
		r := &kgo.Record{Topic: topic, Partition: int32(i % 2), Value: fmt.Append(nil, i), Timestamp: begin.Add(time.Duration(i/2) * time.Second)}
		if err := cl.ProduceSync(ctx, r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	return cl, brokers, begin
}

func TestReset_MovesWhatThePlanSays(t *testing.T) {
	t.Parallel()
	cl, _, begin := newLog(t)
	ctx := t.Context()
	seven, beyond := int64(7), int64(99)
	for _, c := range []struct {
		name      string
		target    ops.Target
		partition int32
		want      []ops.Move
	}{
		{"first ever, by offset", ops.Target{Offset: &seven}, -1, []ops.Move{{0, -1, 7, 3}, {1, -1, 7, 3}}},
		{"earliest", ops.Target{Earliest: true}, -1, []ops.Move{{0, 7, 0, 10}, {1, 7, 0, 10}}},
		{"time", ops.Target{Time: begin.Add(4 * time.Second)}, -1, []ops.Move{{0, 0, 4, 6}, {1, 0, 4, 6}}},
		{"a millisecond before 1970", ops.Target{Time: time.UnixMilli(-1)}, 1, []ops.Move{{1, 4, 0, 10}}},
		{"later than all", ops.Target{Time: begin.Add(time.Hour)}, 1, []ops.Move{{1, 0, 10, 0}}},
		{"beyond the end", ops.Target{Offset: &beyond}, 0, []ops.Move{{0, 4, 10, 0}}},
	} {
		moves, err := ops.PlanReset(ctx, cl, group, topic, c.target, c.partition)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if fmt.Sprint(moves) != fmt.Sprint(c.want) {
			t.Errorf("%s: got %v, want %v", c.name, moves, c.want)
		}
		if err := ops.Reset(ctx, cl, group, topic, moves); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		committed, err := broker.CommittedOffsets(ctx, cl, group, topic)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range c.want {
			if committed[m.Partition].At != m.To {
				t.Errorf("%s: partition %d: committed %d, want %d", c.name, m.Partition, committed[m.Partition].At, m.To)
			}
		}
	}
}

func TestReset_RefusesWhileTheGroupHasMembers(t *testing.T) {
	t.Parallel()
	cl, brokers, _ := newLog(t)
	ctx := t.Context()
	testkit.Member(t, brokers, group, topic)
	if err := ops.CheckGroupEmpty(ctx, cl, group); !errors.Is(err, ops.ErrGroupActive) {
		t.Errorf("check: got %v, want ErrGroupActive", err)
	}
	// A member that joins between check and reset: Kafka itself refuses.
	moves, err := ops.PlanReset(ctx, cl, group, topic, ops.Target{Earliest: true}, -1)
	if err != nil {
		t.Fatal(err)
	}
	if err := ops.Reset(ctx, cl, group, topic, moves); !errors.Is(err, ops.ErrGroupActive) {
		t.Errorf("reset: got %v, want ErrGroupActive", err)
	}
}

func TestPlanReset_OfWhatIsNotThere(t *testing.T) {
	t.Parallel()
	cl, _, _ := newLog(t)
	if moves, err := ops.PlanReset(t.Context(), cl, group, topic, ops.Target{Earliest: true}, 2); err == nil {
		t.Errorf("partition 2 of 2: got %v, want an error", moves)
	}
	if moves, err := ops.PlanReset(t.Context(), cl, group, "other", ops.Target{Earliest: true}, -1); err == nil {
		t.Errorf("missing topic: got %v, want an error", moves)
	}
	if err := ops.CheckGroupEmpty(t.Context(), cl, "never-seen"); err != nil {
		t.Errorf("a group that never was: %v", err)
	}
}
