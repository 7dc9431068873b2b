package ingest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/crashpoint"
)

// acknowledged is the proof that every record of a delivery is stored by all in-sync
// replicas. Only producer.produce makes one, and only with it success is answered.
type acknowledged struct{ sealed bool }

// Errors of producer.produce. After errAckTimeout and errNotStored it is not known
// whether records were stored; after errBufferFull they were not.
var (
	errAckTimeout = errors.New("no acknowledgement in time")
	errBufferFull = errors.New("the buffers for the broker are full")
	errNotStored  = errors.New("not stored")
)

// linger is how long a record waits for others to share its request. Measured on Apache
// Kafka 4.3.1, one broker, records of 1 KiB, two cores (BenchmarkProduce): waiting time
// of each of 1 and 256 senders, and acknowledgements a second of the latter,
//
//	none       0.4 ms    2.6 ms   96,000/s
//	1 ms       1.5 ms    3.3 ms   78,000/s
//	5 ms       6.7 ms    9.7 ms   26,000/s
//	10 ms     11.2 ms   16.7 ms   15,000/s   kgo's default
//
// Every sender waits for its own acknowledgement, so a linger holds back those who would
// send next; and while a request is on its way, records gather without one.
const linger = 0

// producer is the one way into the topic.
type producer struct {
	client     *kgo.Client
	ackTimeout time.Duration
	health     *health
	metrics    *metrics
}

// producerOptions are the options of the client that decide what an acknowledgement
// means and what memory a broker that is away can cost.
func producerOptions(c Config, topic string, h *health) []kgo.Opt {
	return []kgo.Opt{
		kgo.DefaultProduceTopic(topic),
		// All in-sync replicas, and a sequence per partition so that a repeated request
		// is stored once. Both are kgo's defaults, written down because the promise
		// stands on them. Topics are never created by producing.
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.RecordPartitioner(h.partitioner()),
		kgo.ProducerLinger(linger),
		kgo.ProducerBatchMaxBytes(int32(c.MaxBodyBytes + recordOverheadBytes)),
		kgo.MaxBufferedRecords(c.MaxBufferedRecords),
		kgo.MaxBufferedBytes(c.MaxBufferedBytes),
		// A broker that waits for replicas answers when we stop waiting for it.
		kgo.ProduceRequestTimeout(c.AckTimeout),
		// A record that nobody waits for and that was certainly not stored is dropped
		// after a while, so that what one partition without enough replicas holds of the
		// buffers is given back. kgo drops none whose fate is unknown (v1.22.3, maybeFailErr). Age
		// counts from the record's timestamp, which is received_at: a clock that jumps
		// ahead makes some deliveries 503.
		kgo.RecordDeliveryTimeout(max(2*c.AckTimeout, 2*time.Second)),
		// A broker that is back is found within a second, not within kgo's five.
		kgo.RetryBackoffFn(backoff),
	}
}

func backoff(fails int) time.Duration {
	d := min(100*time.Millisecond<<min(max(fails-1, 0), 4), time.Second)
	return time.Duration(float64(d) * (0.8 + 0.4*rand.Float64()))
}

// produce sends records and waits until all are acknowledged, one fails, or the ack
// timeout or the time within is over. What is still on its way then is left to finish: its fate is
// unknown, and counted as such. No context is taken: one sender that goes away must
// not fail the records of others that share a batch.
func (p *producer) produce(records []*kgo.Record, within time.Duration) (acknowledged, error) {
	if len(records) == 0 {
		return acknowledged{sealed: true}, nil
	}
	if !p.health.allowAll(records) {
		return acknowledged{}, fmt.Errorf("produce %d records: %w", len(records), errCircuitOpen)
	}
	begun := time.Now()
	w := &waiting{producer: p, out: slices.Clone(records), settled: make(chan struct{})}
	crashpoint.Reach("ingest.produce")
	for _, r := range records {
		p.client.TryProduce(context.Background(), r, w.promise)
	}
	crashpoint.Reach("ingest.produced")
	timer := time.NewTimer(min(p.ackTimeout, within))
	defer timer.Stop()
	select {
	case <-w.settled:
	case <-timer.C:
		w.settle(errAckTimeout)
	}
	out, unknown, err := w.leave()
	p.metrics.ackDuration.WithLabelValues(result(err)).Observe(time.Since(begun).Seconds())
	if err == nil {
		return acknowledged{sealed: true}, nil
	}
	// Full buffers say nothing about the partition of this record.
	if !errors.Is(err, errBufferFull) {
		p.health.failed(out)
	}
	p.metrics.unknown.Add(float64(unknown))
	return acknowledged{}, fmt.Errorf("produce %d records: %w", len(records), err)
}

func result(err error) string {
	if err != nil {
		return "failed"
	}
	return "acknowledged"
}

// waiting is a delivery whose records are on their way.
type waiting struct {
	producer *producer
	settled  chan struct{}

	mu sync.Mutex
	// out are the records without an acknowledgement; failed of them are not on their
	// way any more.
	out    []*kgo.Record
	failed int
	err    error
	done   bool
	gone   bool
}

// promise is called by the client once per record. It must not block.
func (w *waiting) promise(r *kgo.Record, err error) {
	switch {
	case err == nil:
		w.producer.health.worked(r)
	case errors.Is(err, kerr.UnknownTopicID), errors.Is(err, kerr.UnknownTopicOrPartition):
		w.producer.health.lost()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		w.out = slices.DeleteFunc(w.out, func(o *kgo.Record) bool { return o == r })
	} else {
		w.failed++
	}
	switch {
	case w.gone:
		w.producer.metrics.late.WithLabelValues(result(err)).Inc()
	case errors.Is(err, kgo.ErrMaxBuffered):
		w.settleLocked(errBufferFull)
	case err != nil:
		w.settleLocked(fmt.Errorf("%w: %w", errNotStored, err))
	case len(w.out) == 0:
		w.settleLocked(nil)
	}
}

func (w *waiting) settle(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settleLocked(err)
}

// settleLocked ends the waiting; the first call decides.
func (w *waiting) settleLocked(err error) {
	if !w.done {
		w.done, w.err = true, err
		close(w.settled)
	}
}

// leave returns which records were not acknowledged when the waiting ended, how many of
// them are still on their way, and how it ended.
func (w *waiting) leave() (out []*kgo.Record, unknown int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gone = true
	return slices.Clone(w.out), len(w.out) - w.failed, w.err
}
