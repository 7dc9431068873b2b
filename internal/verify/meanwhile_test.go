package verify_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/testkit"
	"hookledger/internal/verify"
	"hookledger/schema"
)

// A worker applies and commits all the time; whatever instant verify starts at, the
// world is in order.
func TestRun_WhileWorkersRun(t *testing.T) {
	t.Parallel()
	w := setup(t, 2)
	stop := make(chan struct{})
	var worker sync.WaitGroup
	// Ends when stop is closed, before the test does.
	worker.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			// More is in the log than is applied, nearly always.
			p := int32(i % 2)
			events := make([]schema.Event, 20)
			for n := range events {
				events[n] = w.event(fmt.Sprintf("evt_%d_%d", i, n), "{}")
			}
			for _, f := range w.produce(p, events...) {
				w.applyAndAdvance(f, f.offset+1)
				w.commitOffset(p, f.offset+1)
			}
		}
	})
	defer worker.Wait()
	defer close(stop)

	var last int64
	for runs := 0; !t.Failed() && (runs < 20 || last < 20); runs++ {
		rep := w.run()
		if !rep.OK || rep.Records < last {
			t.Fatalf("run %d after %d records: got %s", runs, last, show(rep))
		}
		last = rep.Records
	}
}

// applyAndAdvance is a worker's transaction.
func (w *world) applyAndAdvance(f fact, next int64) {
	w.tb.Helper()
	ctx := w.tb.Context()
	tx, err := w.pool.Begin(ctx)
	must(w.tb, err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	for _, c := range []struct {
		sql  string
		args []any
	}{
		{sqlProcess, w.processArgs(f, "applied")},
		{sqlEnter, w.enterArgs(f, "user_1", 100)},
		{sqlAccount, []any{"user_1", int64(100)}},
		{sqlAdvance, []any{w.cluster, w.topic, w.topicID, f.partition, next}},
	} {
		_, err := tx.Exec(ctx, c.sql, c.args...)
		must(w.tb, err)
	}
	must(w.tb, tx.Commit(ctx))
}

// Retention takes the beginning of the log between the question where it begins and
// the reading.
func TestRun_RecordsDeletedWhileItReads(t *testing.T) {
	t.Parallel()
	w := setup(t, 1)
	for _, f := range w.produce(0, w.event("evt_1", `1`), w.event("evt_2", `2`), w.event("evt_3", `3`)) {
		w.process(f, "ignored")
	}
	w.commit()
	var once sync.Once
	rep, err := verify.Run(t.Context(), verify.Options{
		Pool: w.pool, KafkaOpts: w.opts, Topic: w.topic, Group: group,
		Progress: func(int64, int64) { once.Do(func() { w.deleteBelow(0, 2) }) },
	})
	must(t, err)
	if !rep.OK || rep.Records != 1 || !strings.HasPrefix(note(rep, "deleted_meanwhile"), "2 offsets") {
		t.Fatalf("got %s", show(rep))
	}
}

// The committed offset may lie behind a control record, which is no record to judge.
func TestRun_LogThatEndsWithControlRecords(t *testing.T) {
	t.Parallel()
	w := setup(t, 1)
	cl, err := kgo.NewClient(kgo.SeedBrokers(w.brokers), kgo.TransactionalID(testkit.UniqueName("tx")))
	must(t, err)
	defer cl.Close()
	e := w.event("evt_1", `1`)
	rec := &kgo.Record{Topic: w.topic, Key: e.RecordKey(), Value: e.Body}
	for _, h := range e.Headers() {
		rec.Headers = append(rec.Headers, kgo.RecordHeader(h))
	}
	must(t, cl.BeginTransaction())
	must(t, cl.ProduceSync(t.Context(), rec).FirstErr())
	must(t, cl.EndTransaction(t.Context(), kgo.TryCommit))
	w.process(fact{e, 0, rec.Offset}, "ignored")
	w.next[0] = 2
	w.commit()
	rep := w.run()
	if !rep.OK || rep.Records != 1 {
		t.Fatalf("got %s", show(rep))
	}
}

// A record larger than a fetch asks for is read all the same.
func TestRun_LargeRecord(t *testing.T) {
	t.Parallel()
	w := setup(t, 1)
	f := w.produce(0, w.event("evt_1", strings.Repeat("0123456789abcdef", 60_000)))[0]
	w.process(f, "ignored")
	w.commit()
	if rep := w.run(); !rep.OK || rep.Records != 1 {
		t.Fatalf("got %s", show(rep))
	}
}

func TestRun_CancelledIsAnErrorNotAReport(t *testing.T) {
	t.Parallel()
	w := setup(t, 1)
	w.populateOne()
	ctx, cancel := context.WithCancel(t.Context())
	rep, err := verify.Run(ctx, verify.Options{
		Pool: w.pool, KafkaOpts: w.opts, Topic: w.topic, Group: group,
		Progress: func(int64, int64) { cancel() },
	})
	if err == nil || rep.OK {
		t.Fatalf("got %v, %s", err, show(rep))
	}
}

func TestRun_ProgressEndsAtTotal(t *testing.T) {
	t.Parallel()
	w := setup(t, 3)
	w.populate()
	var done, total int64
	_, err := verify.Run(t.Context(), verify.Options{
		Pool: w.pool, KafkaOpts: w.opts, Topic: w.topic, Group: group,
		Progress: func(d, n int64) { done, total = d, n },
	})
	must(t, err)
	if done != 8 || total != 8 {
		t.Fatalf("got %d of %d, want 8 of 8", done, total)
	}
}
