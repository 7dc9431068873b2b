package ops_test

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/broker"
	"hookledger/internal/ops"
	"hookledger/internal/testkit"
)

func value[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}

func TestLag_OfCommitsProgressAndTheOldestRecord(t *testing.T) {
	t.Parallel()
	cl, brokers, begin := newLog(t)
	ctx := t.Context()
	var progress map[int32]int64
	r := &ops.LagReader{Client: cl, Options: []kgo.Opt{kgo.SeedBrokers(brokers...)}, Group: group, Topic: topic,
		Progress: func(context.Context) (map[int32]int64, error) { return progress, nil }}
	near := func(what string, got *float64, want time.Time) {
		t.Helper()
		if age := time.Since(want).Seconds(); got == nil || math.Abs(*got-age) > 10 {
			t.Errorf("%s: got %v, want about %.0f", what, value(got), age)
		}
	}

	// Nobody ever committed: all that the log holds is behind.
	lag, err := r.Read(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	if lag.RecordsBehind != 20 || lag.Partitions[1].Committed != nil || lag.Partitions[1].Member != nil || len(lag.Members) != 0 || lag.DrainSeconds != nil {
		t.Errorf("got %+v", lag)
	}
	near("age of all", lag.SecondsBehind, begin)

	// Postgres is ahead of the commit: the record at its offset is the oldest unapplied.
	commit(t, cl, group, topic, map[int32]int64{0: 4, 1: 10})
	progress = map[int32]int64{0: 6, 1: 10}
	if lag, err = r.Read(ctx, nil); err != nil {
		t.Fatal(err)
	}
	p0, p1 := lag.Partitions[0], lag.Partitions[1]
	if lag.RecordsBehind != 6 || p0.RecordsBehind != 6 || *p0.Committed != 4 || *p0.Progress != 6 || p0.LogEnd != 10 || p1.RecordsBehind != 0 || *p1.SecondsBehind != 0 {
		t.Errorf("got %+v and %+v", p0, p1)
	}
	near("age at progress", p0.SecondsBehind, begin.Add(6*time.Second))
	if lag.RecordsPerSecond == nil || *lag.RecordsPerSecond != 0 || lag.DrainSeconds != nil {
		t.Errorf("nobody works: got rate %v, drain %v", value(lag.RecordsPerSecond), value(lag.DrainSeconds))
	}

	// Two records later there is a rate, and an end in sight.
	before := lag
	progress[0] = 8
	if lag, err = r.Read(ctx, &before); err != nil {
		t.Fatal(err)
	}
	if lag.RecordsPerSecond == nil || *lag.RecordsPerSecond <= 0 || lag.DrainSeconds == nil || *lag.DrainSeconds <= 0 {
		t.Errorf("got rate %v, drain %v", value(lag.RecordsPerSecond), value(lag.DrainSeconds))
	}

	// All applied.
	commit(t, cl, group, topic, map[int32]int64{0: 10, 1: 10})
	progress[0] = 10
	if lag, err = r.Read(ctx, nil); err != nil {
		t.Fatal(err)
	}
	if lag.RecordsBehind != 0 || *lag.SecondsBehind != 0 || *lag.DrainSeconds != 0 {
		t.Errorf("got %+v", lag)
	}

	// A reset back: Kafka counts records, of which none is unapplied.
	commit(t, cl, group, topic, map[int32]int64{0: 0})
	before = lag
	if lag, err = r.Read(ctx, &before); err != nil {
		t.Fatal(err)
	}
	if lag.RecordsBehind != 10 || *lag.SecondsBehind != 0 {
		t.Errorf("after a reset: got %d records, %v s", lag.RecordsBehind, *lag.SecondsBehind)
	}
}

func TestLag_OfAMissingTopicIsAnError(t *testing.T) {
	t.Parallel()
	cl, brokers, _ := newLog(t)
	r := &ops.LagReader{Client: cl, Options: []kgo.Opt{kgo.SeedBrokers(brokers...)}, Group: group, Topic: "other"}
	if lag, err := r.Read(t.Context(), nil); err == nil {
		t.Errorf("got %+v, want an error", lag)
	}
}

// backlog makes a topic of twelve partitions with n records that nobody read.
func backlog(tb testing.TB, n int) *ops.LagReader {
	tb.Helper()
	k := testkit.Kafka(tb)
	name := testkit.UniqueName("lag")
	cl := k.Client(kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MaxBufferedRecords(200_000))
	create(tb, cl, name, 12)
	body := []byte(strings.Repeat("x", 200))
	for i := range n {
		cl.Produce(tb.Context(), &kgo.Record{Topic: name, Partition: int32(i % 12), Value: body}, func(_ *kgo.Record, err error) {
			if err != nil {
				tb.Error(err)
			}
		})
	}
	if err := cl.Flush(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	return &ops.LagReader{Client: cl, Options: []kgo.Opt{kgo.SeedBrokers(k.Brokers()...)}, Group: name, Topic: name}
}

func TestLag_OfABacklog(t *testing.T) {
	t.Parallel()
	const n = 60_000
	begin := time.Now()
	r := backlog(t, n)
	testkit.Eventually(t, time.Minute, func() error {
		lag, err := r.Read(t.Context(), nil)
		if err != nil {
			return err
		}
		if lag.RecordsBehind != n || lag.SecondsBehind == nil || *lag.SecondsBehind > time.Since(begin).Seconds() {
			return fmt.Errorf("got %d records and %v s behind, want %d and at most %s", lag.RecordsBehind, value(lag.SecondsBehind), n, time.Since(begin))
		}
		return nil
	})
}

// Kafka's own tool counts the same, with and without members.
func TestLag_AgreesWithKafkasOwnTool(t *testing.T) {
	t.Parallel()
	k := testkit.Kafka(t)
	name := testkit.UniqueName("lag")
	cl := k.Client(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	create(t, cl, name, 3)
	for i := range 90 {
		if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: name, Partition: int32(i % 3), Value: []byte("x")}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	commit(t, cl, name, name, map[int32]int64{0: 30, 1: 7, 2: 0})
	r := &ops.LagReader{Client: cl, Options: []kgo.Opt{kgo.SeedBrokers(k.Brokers()...)}, Group: name, Topic: name}
	agree := func(members int) {
		t.Helper()
		lag, err := r.Read(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(lag.Members) != members {
			t.Errorf("got %d members, want %d", len(lag.Members), members)
		}
		var ours []string
		for _, p := range lag.Partitions {
			member := "-"
			if p.Member != nil {
				member = *p.Member
			}
			ours = append(ours, fmt.Sprint(p.Partition, *p.Committed, p.LogEnd, p.RecordsBehind, " ", member))
		}
		out, err := k.Tool(t.Context(), testkit.ConsumerGroupCommand, "--describe", "--group", name)
		if err != nil {
			t.Fatal(err)
		}
		theirs := make([]string, len(ours))
		for line := range strings.Lines(out) {
			// GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID …
			f := strings.Fields(line)
			if len(f) < 7 || f[0] != name {
				continue
			}
			p, err := strconv.Atoi(f[2])
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			theirs[p] = fmt.Sprint(f[2], " ", f[3], " ", f[4], " ", f[5], " ", f[6])
		}
		if fmt.Sprint(ours) != fmt.Sprint(theirs) {
			t.Errorf("got\n%s\nKafka's own tool says\n%s\n%s", strings.Join(ours, "\n"), strings.Join(theirs, "\n"), out)
		}
	}
	agree(0)

	for range 2 {
		member := k.Client(kgo.ConsumerGroup(name), kgo.ConsumeTopics(name), kgo.DisableAutoCommit())
		go func() { // ends with the client
			for !member.PollFetches(context.Background()).IsClientClosed() {
			}
		}()
	}
	testkit.Eventually(t, time.Minute, func() error {
		lag, err := r.Read(t.Context(), nil)
		if err != nil {
			return err
		}
		holders := map[string]bool{}
		for _, p := range lag.Partitions {
			if p.Member == nil {
				return fmt.Errorf("partition %d has no member", p.Partition)
			}
			holders[*p.Member] = true
		}
		if len(holders) != 2 {
			return fmt.Errorf("%d members hold partitions, want 2", len(holders))
		}
		return nil
	})
	agree(2)
}

func commit(t *testing.T, cl *kgo.Client, group, topic string, at map[int32]int64) {
	t.Helper()
	offsets := make(kadm.Offsets)
	for p, o := range at {
		offsets.AddOffset(topic, p, o, -1)
	}
	responses, err := kadm.NewClient(cl).CommitOffsets(t.Context(), group, offsets)
	if err == nil {
		err = responses.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// create makes a topic and waits until the broker answers for it, and for groups: the first
// one of a broker takes a moment.
func create(t testing.TB, cl *kgo.Client, name string, partitions int32) {
	t.Helper()
	if _, err := kadm.NewClient(cl).CreateTopic(t.Context(), partitions, 1, nil, name); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, time.Minute, func() error {
		if _, err := broker.EndOffsets(t.Context(), cl, name); err != nil {
			return err
		}
		_, err := broker.CommittedOffsets(t.Context(), cl, name, name)
		return err
	})
}
