package consumer

import (
	"bytes"
	"context"
	"fmt"
	"runtime/pprof"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/testkit"
	"hookledger/migrations"
)

// A Postgres that takes no writes, as one that fails over or whose disk is being
// enlarged, is waited for: nothing is set aside, nothing is committed to Kafka.
func TestWorker_ReadOnlyPostgresIsWaitedFor(t *testing.T) {
	t.Parallel()
	cluster := testkit.NewPostgres(t)
	if err := migrations.Up(t.Context(), cluster.URL("postgres")); err != nil {
		t.Fatal(err)
	}
	b := setupOn(t, 1, cluster.Pool("postgres"))
	b.pay(0, "anna", 2)
	w := b.start()
	b.isCommitted(0, 2)
	cluster.SetReadOnly(true)
	b.pay(0, "anna", 3)
	w.notReadyFor(`partition 0 retries from offset 2`)
	if got := b.committed(0); got != 2 {
		t.Errorf("committed while Postgres is read-only: got %d, want 2", got)
	}
	cluster.SetReadOnly(false)
	b.hasBalance("anna", 5)
	b.isCommitted(0, 5)
	w.ready()
	if n := query1[int64](t, b.pool, `select count(*) from quarantined_events`); n != 0 {
		t.Errorf("%d records in quarantine, want none", n)
	}
	b.hasIncidents(0)
	b.lawful()
}

// A few kilobytes that unpack to 100 MB are not unpacked: the partition says why it
// stands, the others go on, and what the worker holds stays small.
func TestWorker_BatchThatUnpacksTooLargeStopsItsPartitionAlone(t *testing.T) {
	t.Parallel()
	b := setup(t, 2)
	w := b.start()
	w.owns(2)
	const large = 100 << 20
	bomb, err := kgo.NewClient(kgo.SeedBrokers(b.kafka.Brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchMaxBytes(large+1<<20), kgo.BrokerMaxWriteBytes(large+2<<20), kgo.ProducerBatchCompression(kgo.ZstdCompression()))
	if err != nil {
		t.Fatal(err)
	}
	defer bomb.Close()
	if err := bomb.ProduceSync(t.Context(), &kgo.Record{Topic: b.kafka.Topic, Partition: 0, Key: []byte("k"), Value: make([]byte, large)}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	w.notReadyFor(`(?s)partition 0.*decompress`)
	b.pay(1, "anna", 3)
	b.hasBalance("anna", 3)
	b.isCommitted(1, 3)
	if got := b.committed(0); got > 0 {
		t.Errorf("committed: got %d, want nothing beyond what cannot be read", got)
	}
}

// Workers that start, lose Kafka and Postgres, find both again and stop leave no
// goroutine and no connection behind.
func TestWorker_LeavesNothingBehind(t *testing.T) {
	t.Parallel()
	b := setup(t, 2)
	through, database := proxied(t, b.pool)
	broker := testkit.NewProxy(t, b.kafka.Brokers[0])
	// Goroutines inherit the label of who starts them.
	label := testkit.UniqueName("worker")
	const cycles = 5
	pprof.Do(t.Context(), pprof.Labels("test", label), func(context.Context) {
		for i := range cycles {
			w := b.start(func(d *Deps) { d.Pool = through }, b.dialThrough(broker))
			b.pay(int32(i%2), "anna", 2)
			b.hasBalance("anna", int64(4*i+2))
			database.Reset()
			broker.Reset()
			b.pay(int32(i%2), "anna", 2)
			_ = w.notReady()
			database.Pass()
			broker.Pass()
			b.hasBalance("anna", int64(4*i+4))
			if len(goroutines(t, label)) == 0 {
				t.Fatal("no goroutine of a running worker is seen")
			}
			w.halt()
		}
	})
	through.Close()
	testkit.Eventually(t, soon, func() error {
		if left := goroutines(t, label); len(left) > 0 {
			return fmt.Errorf("%d kinds of goroutines are left after %d cycles:\n%s", len(left), cycles, strings.Join(left, "\n\n"))
		}
		return nil
	})
	testkit.Eventually(t, soon, func() error {
		if n := query1[int](t, b.pool, `select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
			and backend_start > now() - interval '1 hour' and client_port is not null`) - int(b.pool.Stat().TotalConns()) + 1; n > 0 {
			return fmt.Errorf("%d connections to Postgres are left", n)
		}
		return nil
	})
}

// goroutines returns the stacks of goroutines with a label, one for each kind.
func goroutines(tb testing.TB, label string) []string {
	tb.Helper()
	var all bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&all, 1); err != nil {
		tb.Fatal(err)
	}
	var found []string
	for stack := range strings.SplitSeq(all.String(), "\n\n") {
		if strings.Contains(stack, label) {
			found = append(found, stack)
		}
	}
	return found
}
