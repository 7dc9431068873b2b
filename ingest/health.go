package ingest

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	// tripAfter is how many deliveries in a row must fail before others are spared the
	// wait. One slow broker out of several does not get there: the others succeed.
	tripAfter = 5
	// probeEvery is how often a delivery is let through while the circuit is open.
	probeEvery = 250 * time.Millisecond
	// askEvery is how often the broker is asked while the circuit is open.
	askEvery = 500 * time.Millisecond
	// rest is how long after a failure an answer of the broker makes us ready again. A
	// broker may answer and yet not store, for want of replicas.
	rest = 2 * time.Second
)

var errCircuitOpen = errors.New("the broker does not acknowledge records")

// health is a circuit breaker between deliveries and the broker. While it is open,
// deliveries are answered 503 without being read, but for one in probeEvery. Only a
// record that is acknowledged closes it.
//
// Readiness follows it, with one exception: a receiver that is not ready gets no
// deliveries from a load balancer, so none would ever close the circuit. When the broker
// answers a question, the receiver says ready until the next delivery fails.
type health struct {
	now func() time.Time

	mu         sync.Mutex
	failures   int
	open       bool
	trial      bool
	lastFailed time.Time
	lastProbe  time.Time
}

// allow tells whether a delivery may try.
func (h *health) allow() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.open {
		return true
	}
	now := h.now()
	if now.Sub(h.lastProbe) < probeEvery {
		return false
	}
	h.lastProbe = now
	return true
}

// worked says that the broker acknowledged a record, also one nobody waited for.
func (h *health) worked() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failures, h.open, h.trial = 0, false, false
}

// failed says that a delivery was not acknowledged.
func (h *health) failed() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failures++
	h.lastFailed, h.trial = h.now(), false
	if h.failures >= tripAfter {
		h.open = true
	}
}

// answered says that the broker answers questions.
func (h *health) answered() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.trial = h.open && h.now().Sub(h.lastFailed) >= rest
}

func (h *health) isOpen() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.open
}

// ready tells why deliveries would not be stored; nil if they would, or may.
func (h *health) ready() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open && !h.trial {
		return errCircuitOpen
	}
	return nil
}

// watch asks the broker while the circuit is open, until ctx ends.
func (h *health) watch(ctx context.Context, ask func(context.Context) error) {
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !h.isOpen() {
			continue
		}
		asking, cancel := context.WithTimeout(ctx, 2*time.Second)
		if ask(asking) == nil {
			h.answered()
		}
		cancel()
	}
}
