package ingest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	// tripAfter is how many deliveries in a row must fail before others are spared the
	// wait.
	tripAfter = 5
	// probeEvery is how often a delivery is let through while a circuit is open.
	probeEvery = 250 * time.Millisecond
	// askEvery is how often the broker is asked while the circuit is open.
	askEvery = 500 * time.Millisecond
	// rest is how long after a failure an answer of the broker makes us ready again. A
	// broker may answer and yet not store, for want of replicas.
	rest = 2 * time.Second
	// idleAfter is how long no record was acknowledged until the broker is asked although
	// the circuit is closed: nothing comes in then that would tell.
	idleAfter = 2 * time.Second
	// silentAfter is how many such questions in a row, of two seconds at most, must fail
	// until we are not ready.
	silentAfter = 3
)

var (
	errCircuitOpen = errors.New("the broker does not acknowledge records")
	errSilent      = errors.New("the broker does not answer")
	errTopicGone   = errors.New("the topic was deleted: create it with `hookledger topics apply`")
)

// health knows whether the broker stores what it is sent: as a whole, and partition by
// partition, since a cluster that lost brokers may store into some and not into others.
// Without the second, records for one sick partition would fill the buffers, and every
// delivery would be refused (see the test: 1% of the rest was accepted).
type health struct {
	now func() time.Time
	// partitions is how many the topic has, 0 until the first record is sent.
	partitions atomic.Int32
	hash       kgo.TopicPartitioner

	mu    sync.Mutex
	whole circuit
	parts map[int32]*circuit
	// topicGone says that the topic which the client knows is there no more. The client
	// does not look for another of that name by itself (kgo v1.22.3).
	topicGone bool
	// lastWorked is when a record was acknowledged, or an idle broker answered, last;
	// unanswered how many questions to an idle one failed since.
	lastWorked time.Time
	unanswered int
}

func newHealth(now func() time.Time, topic string) *health {
	return &health{now: now, hash: kgo.StickyKeyPartitioner(nil).ForTopic(topic), parts: make(map[int32]*circuit)}
}

// partitioner returns the client's partitioner: the hash that Kafka's own client uses.
// It remembers how many partitions there are, so that partitionOf knows beforehand.
func (h *health) partitioner() kgo.Partitioner {
	return kgo.BasicConsistentPartitioner(func(string) func(*kgo.Record, int) int {
		return func(r *kgo.Record, n int) int {
			h.partitions.Store(int32(n))
			return h.hash.Partition(r, n) // r has a key, so nothing is kept between calls
		}
	})
}

// partitionOf returns where a record goes, or -1 if that is not known yet.
func (h *health) partitionOf(r *kgo.Record) int32 {
	n := int(h.partitions.Load())
	if n == 0 {
		return -1
	}
	return int32(h.hash.Partition(r, n))
}

// part returns the circuit of a partition; h.mu is held.
func (h *health) part(p int32) *circuit {
	if h.parts[p] == nil {
		h.parts[p] = &circuit{}
	}
	return h.parts[p]
}

// allow tells whether a delivery may be read.
func (h *health) allow() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.whole.allow(h.now())
}

// allowAll tells whether records may be sent.
func (h *health) allowAll(records []*kgo.Record) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.now()
	// One delivery probes a partition once, however many of its records go there.
	asked := make(map[int32]bool, 1)
	for _, r := range records {
		p := h.partitionOf(r)
		if p < 0 || asked[p] {
			continue
		}
		asked[p] = true
		if !h.part(p).allow(now) {
			return false
		}
	}
	return true
}

// worked says that the broker acknowledged a record, also one nobody waited for.
func (h *health) worked(r *kgo.Record) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lastWorked, h.unanswered = h.now(), 0
	h.whole.worked()
	h.part(r.Partition).worked()
}

// failed says that a delivery failed for want of these records.
func (h *health) failed(records []*kgo.Record) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.now()
	h.whole.failed(now)
	failed := make(map[int32]bool, 1)
	for _, r := range records {
		if p := h.partitionOf(r); p >= 0 && !failed[p] {
			failed[p] = true
			h.part(p).failed(now)
		}
	}
}

// answered says that the broker answers questions.
func (h *health) answered() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.whole.trial = h.whole.open && h.now().Sub(h.whole.lastFailed) >= rest
	h.unanswered = 0
}

// lost says that the broker does not know the topic.
func (h *health) lost() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.topicGone = true
}

func (h *health) isLost() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.topicGone
}

// found says that the client was told to look for the topic anew.
func (h *health) found() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.topicGone = false
}

func (h *health) isOpen() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.whole.open
}

func (h *health) isIdle() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.whole.open && h.now().Sub(h.lastWorked) >= idleAfter
}

// asked says whether an idle broker answered.
func (h *health) asked(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil {
		h.unanswered++
		return
	}
	h.lastWorked, h.unanswered = h.now(), 0
}

// openParts is the number of partitions into which nothing is stored.
func (h *health) openParts() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, c := range h.parts {
		if c.open {
			n++
		}
	}
	return n
}

// ready tells why deliveries would not be stored; nil if they would, or may.
func (h *health) ready() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.topicGone:
		return errTopicGone
	case h.whole.open && !h.whole.trial:
		return errCircuitOpen
	case h.unanswered >= silentAfter:
		return errSilent
	}
	return nil
}

// watch asks the broker while the circuit is open or nothing comes in, and looks for a
// topic that is gone, until ctx ends.
func (h *health) watch(ctx context.Context, ask, look func(context.Context) error) {
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		asking, cancel := context.WithTimeout(ctx, 2*time.Second)
		if h.isLost() && look(asking) == nil {
			h.found()
		}
		switch {
		case h.isOpen():
			if ask(asking) == nil {
				h.answered()
			}
		case h.isIdle():
			h.asked(ask(asking))
		}
		cancel()
	}
}

// circuit is open while deliveries fail: then they are refused at once, but for one in
// probeEvery. Only a record that is acknowledged closes it.
//
// Readiness follows it, with one exception: a receiver that is not ready gets no
// deliveries from a load balancer, so none would ever close the circuit. When the broker
// answers a question, the receiver is ready on trial, until the next delivery fails.
type circuit struct {
	failures   int
	open       bool
	trial      bool
	lastFailed time.Time
	lastProbe  time.Time
}

func (c *circuit) allow(now time.Time) bool {
	if !c.open {
		return true
	}
	if now.Sub(c.lastProbe) < probeEvery {
		return false
	}
	c.lastProbe = now
	return true
}

func (c *circuit) worked() { c.failures, c.open, c.trial = 0, false, false }

func (c *circuit) failed(now time.Time) {
	c.failures++
	c.lastFailed, c.trial = now, false
	if c.failures >= tripAfter {
		c.open = true
	}
}
