package consumer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hookledger/internal/ledger/memory"
)

// Memory says how long events are remembered: the keys dedupe.* of the configuration.
type Memory struct {
	// Rotate is the age at which a new generation of the memory of events is opened.
	Rotate time.Duration
	// Keep is how long an event is remembered at least, from Rotate to memory.MaxKept
	// times that, so that a generation is always free.
	Keep time.Duration
}

// interval is how often a worker looks whether something is due. All of them look, and
// one finds it first; a look reads one row.
func (m Memory) interval() time.Duration {
	return max(min(m.Rotate/10, time.Minute), 100*time.Millisecond)
}

// patienceMost bounds the pause after a failure, with interval as the first.
const patienceMost = 15 * time.Minute

// tender rotates and forgets on schedule.
type tender struct {
	w      *Worker
	memory Memory
	// rotation and forgetting are how often each failed since it last did not, and when it
	// is tried again.
	rotation, forgetting patience
}

// patience spaces out what fails again and again.
type patience struct {
	failures int
	until    time.Time
}

func (p *patience) over() bool { return !time.Now().Before(p.until) }

func (p *patience) failed(first time.Duration) {
	pause := patienceMost
	if p.failures < 10 {
		pause = min(first<<p.failures, patienceMost)
	}
	p.failures++
	p.until = time.Now().Add(pause)
}

// tend keeps the memory of events, off the path of the records, until ctx ends.
func (w *Worker) tend(ctx context.Context) {
	t := &tender{w: w, memory: w.memory}
	for {
		t.look(ctx)
		pause := t.memory.interval()
		// Workers that were started together do not look together.
		if sleep(ctx, pause-pause/4+rand.N(pause/2+1)) != nil {
			return
		}
	}
}

// look does what is due. Failures are logged and counted; none is urgent.
func (t *tender) look(ctx context.Context) {
	ring, err := t.read(ctx)
	if err != nil {
		t.failed(ctx, "look", err)
		return
	}
	if ring.ForgettingDue(t.memory.Keep) && t.forgetting.over() {
		ring = t.forget(ctx, ring)
	}
	if ring.RotationDue(t.memory.Rotate) && t.rotation.over() {
		t.rotate(ctx, ring)
	}
}

// forget forgets everything that is due, and returns the ring as it is then.
func (t *tender) forget(ctx context.Context, ring memory.Ring) memory.Ring {
	for ring.ForgettingDue(t.memory.Keep) {
		done, err := memory.Forget(ctx, t.w.pool, ring, t.memory.Keep)
		if err != nil {
			t.failed(ctx, "forget", err)
			t.forgetting.failed(t.memory.interval())
			return ring
		}
		t.forgetting = patience{}
		if !done {
			return ring // another worker is at it
		}
		t.w.memoryMetrics.forgotten.Inc()
		t.w.log.Info().Int("generation", ring.Oldest).Time("closed_at", ring.ClosedAt(ring.Oldest)).Msg("generation of the memory of events forgotten")
		if ring, err = t.read(ctx); err != nil {
			t.failed(ctx, "look", err)
			return memory.Ring{}
		}
	}
	return ring
}

func (t *tender) rotate(ctx context.Context, ring memory.Ring) {
	done, err := memory.Rotate(ctx, t.w.pool, ring, t.memory.Rotate)
	if err != nil {
		t.failed(ctx, "rotate", err)
		t.rotation.failed(t.memory.interval())
		return
	}
	t.rotation = patience{}
	if !done {
		return // another worker was faster
	}
	t.w.memoryMetrics.rotations.Inc()
	if ring, err = t.read(ctx); err != nil {
		t.failed(ctx, "look", err)
		return
	}
	t.w.log.Info().Int("generation", ring.Open).Int("generations", ring.Used()).Msg("generation of the memory of events opened")
}

func (t *tender) read(ctx context.Context) (memory.Ring, error) {
	ctx, cancel := context.WithTimeout(ctx, t.w.cfg.batchTimeout())
	defer cancel()
	ring, err := memory.Read(ctx, t.w.pool)
	if err == nil {
		t.w.memoryMetrics.saw(ring, time.Now())
	}
	return ring, err
}

func (t *tender) failed(ctx context.Context, step string, err error) {
	if ctx.Err() != nil {
		return
	}
	t.w.memoryMetrics.failures.WithLabelValues(step).Inc()
	t.w.log.Warn().Err(err).Str("step", step).Msg("memory of events not tended; it is tried again, and records are applied meanwhile")
}

// memoryMetrics are what a Worker says of the memory of events.
type memoryMetrics struct {
	rotations, forgotten prometheus.Counter
	failures             *prometheus.CounterVec

	mu     sync.Mutex
	ring   memory.Ring
	seenAt time.Time
}

func newMemoryMetrics(reg prometheus.Registerer) *memoryMetrics {
	counter := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Namespace: "hookledger", Subsystem: "consumer", Name: name, Help: help}
	}
	m := &memoryMetrics{
		rotations: prometheus.NewCounter(counter("memory_rotations_total", "Generations of the memory of events that this worker opened.")),
		forgotten: prometheus.NewCounter(counter("memory_forgotten_generations_total", "Generations of the memory of events that this worker emptied.")),
		failures: prometheus.NewCounterVec(counter("memory_failures_total",
			"Attempts to look at the memory of events, to open a generation or to forget one that failed, by step; they are repeated, and money is never at stake."), []string{"step"}),
	}
	for _, step := range []string{"look", "rotate", "forget"} {
		m.failures.WithLabelValues(step)
	}
	gauge := func(name, help string, value func(r memory.Ring, since time.Duration) float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "hookledger", Subsystem: "consumer", Name: name, Help: help}, func() float64 {
			m.mu.Lock()
			defer m.mu.Unlock()
			if m.seenAt.IsZero() {
				return -1
			}
			return value(m.ring, time.Since(m.seenAt))
		})
	}
	reg.MustRegister(m.rotations, m.forgotten, m.failures,
		gauge("memory_generations", fmt.Sprintf("Generations of the memory of events in use, of %d; -1 before the first look.", memory.Generations),
			func(r memory.Ring, _ time.Duration) float64 { return float64(r.Used()) }),
		gauge("memory_open_age_seconds", "Seconds for which the generation that takes new events has been open, by Postgres's clock; -1 before the first look.",
			func(r memory.Ring, since time.Duration) float64 { return max((r.OpenAge() + since).Seconds(), 0) }),
		gauge("memory_last_rotation_timestamp_seconds", "When the generation that takes new events was opened, in Unix seconds; -1 before the first look.",
			func(r memory.Ring, _ time.Duration) float64 { return float64(r.OpenedAt[r.Open].UnixMilli()) / 1000 }),
	)
	return m
}

func (m *memoryMetrics) saw(r memory.Ring, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ring, m.seenAt = r, now
}

var errNoMemory = errors.New("how long events are remembered is not set: set dedupe.rotate and dedupe.keep")
