package consumer

import (
	"context"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/broker"
	"hookledger/internal/ledger"
)

// partition is one assigned partition, from its assignment until it is revoked or
// lost. Assigned again, it is another partition. Fields are guarded by queues.mu.
type partition struct {
	id  int32
	pos ledger.Position

	// next is the position: everything below it is settled in Postgres.
	next int64
	// from is the last offset whose Kafka commit was acknowledged.
	from int64
	// untold says that Kafka does not hold the start yet, but another position or none.
	// Nothing is taken until it does: after a crash the rules would find progress that
	// moved and a commit that does not fit, which is no ordinary crash to them.
	untold bool
	// fetched is the offset that the next record read is expected to have.
	fetched int64
	// end is the log end as last seen, or -1.
	end int64

	queue  []*kgo.Record
	bytes  int
	paused bool
	// listed says that the partition stands in queues.ready.
	listed bool
	// inHand is closed when the batch in hand has ended; nil if there is none.
	inHand chan struct{}
	// ctx ends when the batch in hand must be rolled back, which abort does. It is kept
	// here because its life is the assignment's, not that of a call.
	ctx   context.Context
	abort context.CancelCauseFunc
	// gone says that the partition is no longer ours: nothing more is taken.
	gone bool

	// attempts counts failures in a row; stuck is the last of them.
	attempts int
	stuck    error
	// resting says that a timer will list the partition again.
	resting bool
	// maxRecords bounds the next batch; it shrinks when batches take too long.
	maxRecords int
}

// queues holds what was read and is not applied yet, by partition, and hands it out so
// that no partition is ever in two hands. It is safe for concurrent use.
type queues struct {
	mu         sync.Mutex
	changed    *sync.Cond
	partitions map[int32]*partition
	ready      []*partition
	closed     bool

	// live counts the bytes of partitions that are not stuck: those of a stuck one must
	// not keep the others from being read.
	live int

	cfg limits
	// pause and resume tell the client to leave a partition out of its fetches.
	pause, resume func(partition int32)
}

type limits struct {
	batchRecords, batchBytes int
	// bufferBytes bounds live; partitionBytes is the share of one partition.
	bufferBytes, partitionBytes int
}

func newQueues(cfg limits, pause, resume func(int32)) *queues {
	q := &queues{partitions: make(map[int32]*partition), cfg: cfg, pause: pause, resume: resume}
	q.changed = sync.NewCond(&q.mu)
	return q
}

// assign makes p one of ours.
func (q *queues) assign(p *partition) {
	q.mu.Lock()
	defer q.mu.Unlock()
	p.maxRecords = q.cfg.batchRecords
	p.fetched = p.next
	if before, ok := q.partitions[p.id]; ok {
		before.gone = true // not expected: assigned twice without being revoked
		before.abort(errRevoked)
	}
	q.partitions[p.id] = p
	// A pause of an earlier assignment would outlive it.
	q.resume(p.id)
}

// remove makes the partitions with these ids no longer ours and returns them. What is
// in hand goes on until it ends or is aborted.
func (q *queues) remove(ids []int32) []*partition {
	q.mu.Lock()
	defer q.mu.Unlock()
	var removed []*partition
	for _, id := range ids {
		p, ok := q.partitions[id]
		if !ok {
			continue
		}
		delete(q.partitions, id)
		p.gone = true
		if p.stuck == nil {
			q.live -= p.bytes
		}
		p.queue, p.bytes = nil, 0
		if p.paused {
			q.resume(p.id)
		}
		removed = append(removed, p)
	}
	q.changed.Broadcast()
	return removed
}

// close ends take: no new batches.
func (q *queues) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.changed.Broadcast()
}

// waitRoom waits until there is room for more records. It returns false once q is
// closed.
func (q *queues) waitRoom() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.live >= q.cfg.bufferBytes && !q.closed {
		q.changed.Wait()
	}
	return !q.closed
}

// add appends records that were read, in offset order. Records of a partition that is
// not ours, or that were read before, are dropped. It returns how many offsets had no
// record.
func (q *queues) add(id int32, end int64, records []*kgo.Record) (gap int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	p, ok := q.partitions[id]
	if !ok {
		return 0
	}
	if end >= 0 {
		p.end = end
	}
	for _, r := range records {
		if r.Offset < p.fetched {
			continue
		}
		gap += r.Offset - p.fetched
		p.fetched = r.Offset + 1
		size := sizeOf(r)
		p.queue, p.bytes = append(p.queue, r), p.bytes+size
		if p.stuck == nil {
			q.live += size
		}
	}
	if p.bytes > q.cfg.partitionBytes && !p.paused {
		p.paused = true
		q.pause(p.id)
	}
	q.list(p)
	return gap
}

// list puts p among the ready if it has records, its start is told, and it is in no hand
// and does not rest.
func (q *queues) list(p *partition) {
	if p.gone || p.listed || p.untold || p.resting || p.inHand != nil || len(p.queue) == 0 {
		return
	}
	p.listed = true
	q.ready = append(q.ready, p)
	q.changed.Broadcast()
}

// take waits for a partition with records and returns a batch of them. It returns
// false once q is closed. Every batch taken must be given to finish.
func (q *queues) take() (batch, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		if q.closed {
			return batch{}, false
		}
		if len(q.ready) > 0 {
			p := q.ready[0]
			q.ready = q.ready[1:]
			p.listed = false
			if !p.gone && len(p.queue) > 0 {
				return q.takeFrom(p), true
			}
			continue
		}
		q.changed.Wait()
	}
}

func (q *queues) takeFrom(p *partition) batch {
	n, bytes := 0, 0
	for _, r := range p.queue {
		size := sizeOf(r)
		if n > 0 && (n == p.maxRecords || bytes+size > q.cfg.batchBytes) {
			break
		}
		n, bytes = n+1, bytes+size
	}
	records := make([]ledger.Record, n)
	for i, r := range p.queue[:n] {
		records[i] = ledgerRecord(r)
	}
	p.inHand = make(chan struct{})
	return batch{of: p, records: ledger.Batch{Position: p.pos, Start: p.next, From: p.from, Records: records}}
}

// finish takes back a batch: what is durable leaves the queue, the rest is handed out
// again, after the rest given if the batch failed. It says whether the partition was
// stuck and is not any more.
func (q *queues) finish(o outcome, rest func(attempts int) time.Duration) (recovered bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := o.of
	close(p.inHand)
	p.inHand = nil
	if o.settled && o.done.Next() > p.next {
		p.next = o.done.Next()
	}
	if p.gone {
		return false
	}
	n, bytes := 0, 0
	for n < len(p.queue) && p.queue[n].Offset < p.next {
		bytes += sizeOf(p.queue[n])
		p.queue[n] = nil // the array outlives the slice; the record need not
		n++
	}
	p.queue, p.bytes = p.queue[n:], p.bytes-bytes
	if p.stuck == nil {
		q.live -= bytes
	}
	if p.paused && p.bytes <= q.cfg.partitionBytes/2 {
		p.paused = false
		q.resume(p.id)
	}
	if o.err != nil {
		q.rest(p, o.err, rest)
	} else {
		recovered = p.stuck != nil
		if recovered {
			q.live += p.bytes
		}
		p.stuck, p.attempts = nil, 0
		p.maxRecords = min(2*p.maxRecords, q.cfg.batchRecords)
	}
	q.list(p)
	q.changed.Broadcast()
	return recovered
}

// rest keeps p from being handed out for a while.
func (q *queues) rest(p *partition, err error, rest func(attempts int) time.Duration) {
	if p.stuck == nil {
		q.live -= p.bytes
	}
	p.stuck = err
	p.attempts++
	if isDeadline(err) {
		// The batch is more than the database can do in the time: try less.
		p.maxRecords = max(p.maxRecords/2, 1)
	}
	p.resting = true
	time.AfterFunc(rest(p.attempts), func() { // ends by itself; finds p gone if it comes late
		q.mu.Lock()
		defer q.mu.Unlock()
		p.resting = false
		q.list(p)
	})
}

// all returns our partitions.
func (q *queues) all() []*partition {
	q.mu.Lock()
	defer q.mu.Unlock()
	ps := make([]*partition, 0, len(q.partitions))
	for _, p := range q.partitions {
		ps = append(ps, p)
	}
	return ps
}

// isCurrent tells whether p is still ours.
func (q *queues) isCurrent(p *partition) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return !p.gone
}

// await waits until none of the partitions has a batch in hand. After the time given it
// rolls back what still is.
func (q *queues) await(ps []*partition, within time.Duration, cause error) {
	timer := time.AfterFunc(within, func() {
		for _, p := range ps {
			p.abort(cause)
		}
	})
	defer timer.Stop()
	for _, p := range ps {
		q.mu.Lock()
		inHand := p.inHand
		q.mu.Unlock()
		if inHand != nil {
			<-inHand
		}
		p.abort(cause) // frees the context
	}
}

// acknowledge notes that Kafka holds the commit. The first one lets the partition be
// handed out.
func (q *queues) acknowledge(c committed) {
	q.mu.Lock()
	defer q.mu.Unlock()
	c.of.from = c.at.Offset
	c.of.untold = false
	q.list(c.of)
}

// setEnds notes log ends that were listed.
func (q *queues) setEnds(ends map[int32]broker.Offset) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for id, end := range ends {
		if p, ok := q.partitions[id]; ok {
			p.end = max(p.end, end.At)
		}
	}
}

// standing is where a partition stands, for metrics, checks and readiness.
type standing struct {
	of        *partition
	id        int32
	next, end int64
	bytes     int
	// oldest is the timestamp of the oldest record that waits; zero if none does.
	oldest time.Time
	// untold says that records wait until Kafka holds the start.
	untold bool
	stuck  error
}

func (q *queues) standings() []standing {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := make([]standing, 0, len(q.partitions))
	for _, p := range q.partitions {
		s := standing{of: p, id: p.id, next: p.next, end: p.end, bytes: p.bytes, stuck: p.stuck}
		if len(p.queue) > 0 {
			s.oldest = p.queue[0].Timestamp
			s.untold = p.untold
		}
		all = append(all, s)
	}
	return all
}
