package consumer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/ledger"
)

// run makes n records from an offset, of bytes each.
func run(offset int64, n, bytes int) []*kgo.Record {
	records := make([]*kgo.Record, n)
	for i := range records {
		records[i] = &kgo.Record{Offset: offset + int64(i), Value: make([]byte, bytes)}
	}
	return records
}

// pauses notes what the queues told the client.
type pauses struct {
	mu     sync.Mutex
	paused map[int32]bool
}

func (p *pauses) set(paused bool) func(int32) {
	return func(id int32) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.paused[id] = paused
	}
}

func (p *pauses) has(id int32) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.paused[id]
}

func newTestQueues(cfg limits) (*queues, *pauses) {
	p := &pauses{paused: make(map[int32]bool)}
	return newQueues(cfg, p.set(true), p.set(false)), p
}

func newTestPartition(id int32, next int64) *partition {
	p := &partition{id: id, next: next, end: -1}
	p.ctx, p.abort = context.WithCancelCause(context.Background())
	return p
}

func noRest(int) time.Duration { return 0 }

var errTest = errors.New("as the test wants")

func TestQueues_BatchStartsAtThePositionNotAtTheFirstRecord(t *testing.T) {
	t.Parallel()
	q, _ := newTestQueues(limits{batchRecords: 3, batchBytes: 1 << 20, bufferBytes: 1 << 20, partitionBytes: 1 << 20})
	q.assign(newTestPartition(0, 5))
	if gap := q.add(0, 20, run(7, 5, 1)); gap != 2 {
		t.Errorf("gap: got %d, want 2", gap)
	}
	q.add(0, 20, run(7, 5, 1)) // read again, as after a pause
	b, ok := q.take()
	if !ok || b.records.Start != 5 || len(b.records.Records) != 3 || b.records.Records[0].Offset != 7 {
		t.Fatalf("got %+v, want 3 records from 7 at position 5", b.records)
	}
	if s := q.standings(); s[0].bytes != 5*(recordOverheadBytes+1) {
		t.Errorf("bytes: got %d, want those of 5 records", s[0].bytes)
	}
}

func TestQueues_NothingDurableKeepsEveryRecord(t *testing.T) {
	t.Parallel()
	q, _ := newTestQueues(limits{batchRecords: 100, batchBytes: 1 << 20, bufferBytes: 1 << 20, partitionBytes: 1 << 20})
	q.assign(newTestPartition(0, 0))
	q.add(0, 5, run(0, 5, 1))
	b, _ := q.take()
	q.finish(outcome{of: b.of, err: errTest}, noRest)
	again, ok := q.take()
	if !ok || len(again.records.Records) != 5 || again.records.Start != 0 {
		t.Errorf("after a failure: got %+v, want the same batch", again.records)
	}
}

// TestQueues_NeverTwoHandsOnOnePartition lets many hands work and watches them.
func TestQueues_NeverTwoHandsOnOnePartition(t *testing.T) {
	t.Parallel()
	q, _ := newTestQueues(limits{batchRecords: 3, batchBytes: 1 << 20, bufferBytes: 1 << 30, partitionBytes: 1 << 30})
	const partitions, records = 3, 2000
	var hands [partitions]atomic.Int32
	for id := range int32(partitions) {
		q.assign(newTestPartition(id, 0))
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for {
				b, ok := q.take()
				if !ok {
					return
				}
				if n := hands[b.of.id].Add(1); n != 1 {
					t.Errorf("partition %d is in %d hands", b.of.id, n)
				}
				hands[b.of.id].Add(-1)
				// Nothing is ever durable here: the same batch comes again.
				q.finish(outcome{of: b.of, err: errTest}, noRest)
			}
		})
	}
	for offset := int64(0); offset < records; offset += 10 {
		for id := range int32(partitions) {
			q.add(id, -1, run(offset, 10, 1))
		}
	}
	q.close()
	all.Wait()
}

func TestQueues_FullPartitionIsPausedAndNoPauseSurvivesItsAssignment(t *testing.T) {
	t.Parallel()
	q, p := newTestQueues(limits{batchRecords: 10, batchBytes: 1 << 20, bufferBytes: 1 << 20, partitionBytes: 4 << 10})
	q.assign(newTestPartition(0, 0))
	q.assign(newTestPartition(1, 0))
	q.add(0, 10, run(0, 10, 1000))
	if !p.has(0) || p.has(1) {
		t.Fatalf("paused: got %v, want partition 0 alone", p.paused)
	}
	q.remove([]int32{0})
	if p.has(0) {
		t.Error("the pause survived the assignment")
	}
	if q.live != 0 {
		t.Errorf("bytes that count after the partition left: got %d, want 0", q.live)
	}
}

func TestQueues_StuckPartitionDoesNotKeepOthersFromBeingRead(t *testing.T) {
	t.Parallel()
	q, _ := newTestQueues(limits{batchRecords: 10, batchBytes: 1 << 20, bufferBytes: 4 << 10, partitionBytes: 1 << 20})
	q.assign(newTestPartition(0, 0))
	q.add(0, 10, run(0, 10, 1000))
	room := make(chan bool, 1)
	go func() { room <- q.waitRoom() }()
	b, _ := q.take()
	select {
	case <-room:
		t.Fatal("there is room although the queues are full")
	default:
	}
	q.finish(outcome{of: b.of, err: errTest}, func(int) time.Duration { return time.Hour })
	if !<-room {
		t.Error("closed")
	}
	if s := q.standings(); s[0].stuck == nil || s[0].bytes == 0 {
		t.Errorf("got %+v, want a stuck partition that keeps its records", s[0])
	}
}

func TestQueues_SlowBatchesGetSmaller(t *testing.T) {
	t.Parallel()
	q, _ := newTestQueues(limits{batchRecords: 8, batchBytes: 1 << 20, bufferBytes: 1 << 20, partitionBytes: 1 << 20})
	q.assign(newTestPartition(0, 0))
	q.add(0, 20, run(0, 20, 1))
	for _, want := range []int{8, 4, 2, 1, 1} {
		b, _ := q.take()
		if got := len(b.records.Records); got != want {
			t.Fatalf("batch: got %d records, want %d", got, want)
		}
		q.finish(outcome{of: b.of, err: fmt.Errorf("apply: %w", context.DeadlineExceeded)}, noRest)
	}
}

func TestQueues_LargeRecordGetsABatchOfItsOwn(t *testing.T) {
	t.Parallel()
	q, _ := newTestQueues(limits{batchRecords: 8, batchBytes: 2000, bufferBytes: 1 << 20, partitionBytes: 1 << 20})
	q.assign(newTestPartition(0, 0))
	q.add(0, 20, append(run(0, 1, 5000), run(1, 3, 10)...))
	b, _ := q.take()
	if got := len(b.records.Records); got != 1 {
		t.Errorf("got %d records, want the large one alone", got)
	}
}

func TestQueues_RevokedBatchIsAwaitedThenAborted(t *testing.T) {
	t.Parallel()
	q, _ := newTestQueues(limits{batchRecords: 8, batchBytes: 2000, bufferBytes: 1 << 20, partitionBytes: 1 << 20})
	q.assign(newTestPartition(0, 0))
	q.add(0, 20, run(0, 3, 1))
	b, _ := q.take()
	go func() { // a hand that only an abort ends
		<-b.of.ctx.Done()
		q.finish(outcome{of: b.of, err: context.Cause(b.of.ctx)}, noRest)
	}()
	q.await(q.remove([]int32{0}), 10*time.Millisecond, errRevoked)
	if cause := context.Cause(b.of.ctx); !errors.Is(cause, errRevoked) {
		t.Errorf("cause: got %v, want errRevoked", cause)
	}
	if len(q.standings()) != 0 {
		t.Error("the partition is still ours")
	}
}

func TestClassOf_IsBounded(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"timeout":        fmt.Errorf("x: %w", context.DeadlineExceeded),
		"position":       fmt.Errorf("x: %w", ledger.ErrPositionMoved),
		"unknown_source": fmt.Errorf("x: %w", &ledger.WaitError{Kind: ledger.KindUnknownSource}),
		"other":          errTest,
	} {
		if got := classOf(err); got != want {
			t.Errorf("%v: got %s, want %s", err, got, want)
		}
	}
}

func TestBackoff_GrowsAndStaysBounded(t *testing.T) {
	t.Parallel()
	for attempt := range 100 {
		if d := backoff(attempt); d <= 0 || d > backoffMost {
			t.Fatalf("attempt %d: got %s", attempt, d)
		}
	}
	if backoff(1) > backoffFirst || backoff(50) < backoffMost/2 {
		t.Errorf("got %s after the first, %s after the fiftieth", backoff(1), backoff(50))
	}
}

func TestStanding_LagIsUnknownUntilTheLogEndIs(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for want, s := range map[[2]float64]standing{
		{-1, -1}: {end: -1, next: 3},
		{0, 0}:   {end: 3, next: 3},
		{2, -1}:  {end: 5, next: 3},
		{2, 4}:   {end: 5, next: 3, oldest: now.Add(-4 * time.Second)},
	} {
		records, seconds := s.lag(now)
		if records != want[0] || seconds != want[1] {
			t.Errorf("%+v: got %v, %v, want %v", s, records, seconds, want)
		}
	}
}
