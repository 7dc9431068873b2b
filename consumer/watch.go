package consumer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/broker"
	"hookledger/internal/ledger"
)

const (
	// probeInterval is how often readiness is found out.
	probeInterval = 2 * time.Second
	probeTimeout  = 3 * time.Second
)

// health is what the worker knows of its own ability to work. Safe for concurrent use.
type health struct {
	mu       sync.Mutex
	probed   bool
	postgres error
	group    error
	// join is why the last attempt to join the group failed, positions why the rules
	// could not look.
	join, positions error
	// unread are partitions that cannot be fetched.
	unread map[int32]error
	// lastApplied is when Postgres last took a batch.
	lastApplied time.Time
}

func (h *health) applied() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lastApplied = time.Now()
}

// grouped notes what came of asking the coordinator.
func (h *health) grouped(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.group = err
}

// joined notes what came of joining the group.
func (h *health) joined(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.join = err
}

// positioned notes what came of looking up positions.
func (h *health) positioned(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.positions = err
}

func (h *health) partitionFails(id int32, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.unread == nil {
		h.unread = make(map[int32]error)
	}
	h.unread[id] = err
}

// partitionsRead notes that the partitions can be read, or are no longer ours to read.
func (h *health) partitionsRead(ids ...int32) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, id := range ids {
		delete(h.unread, id)
	}
}

// forgetPartitions begins anew, as after joining the group again.
func (h *health) forgetPartitions() {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.unread)
	h.positions = nil
}

// unreadable returns why some partition cannot be read although a new client might.
func (h *health) unreadable() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var large *kgo.ErrDecompressTooLarge
	for id, err := range h.unread {
		if !errors.As(err, &large) {
			return fmt.Errorf("read partition %d: %w", id, err)
		}
	}
	return nil
}

// Ready returns nil when Postgres, its schema and the group's coordinator are in reach
// and every partition of ours that has records is being applied; else what is missing.
// A worker without partitions is ready. A partition that waits for a person, because of
// an unknown source or a recreated topic, has an incident and keeps nobody unready.
// It answers at once.
func (w *Worker) Ready() error {
	if err := w.health.ready(); err != nil {
		return err
	}
	s := w.session.Load()
	if s == nil {
		return errors.New("not a member of the group at the moment: positions are looked up again")
	}
	for _, p := range s.queues.standings() {
		if p.stuck != nil && !isWait(p.stuck) {
			return fmt.Errorf("partition %d retries from offset %d: %w", p.id, p.next, p.stuck)
		}
		if p.untold {
			return fmt.Errorf("partition %d has records: waiting until Kafka takes the commit of its start, %d", p.id, p.next)
		}
	}
	return nil
}

func (h *health) ready() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case !h.probed:
		return errors.New("starting")
	case h.postgres != nil:
		return fmt.Errorf("Postgres: %w", h.postgres)
	case h.group != nil:
		return fmt.Errorf("group coordinator: %w", h.group)
	case h.join != nil:
		return fmt.Errorf("join group: %w", h.join)
	case h.positions != nil:
		return fmt.Errorf("find positions: %w", h.positions)
	}
	for id, err := range h.unread {
		return fmt.Errorf("partition %d cannot be read: %w", id, err)
	}
	return nil
}

// isWait tells whether err is a record that only a person can help.
func isWait(err error) bool {
	var wait *ledger.WaitError
	return errors.As(err, &wait)
}

// probe finds out whether the worker could work, until ctx ends.
func (w *Worker) probe(ctx context.Context) {
	for {
		var both sync.WaitGroup
		both.Go(func() { w.probePostgres(ctx) })
		both.Go(func() { w.probeGroup(ctx) })
		both.Wait()
		w.health.mu.Lock()
		w.health.probed = true
		w.health.mu.Unlock()
		if sleep(ctx, min(probeInterval, w.cfg.CheckInterval)) != nil {
			return
		}
	}
}

func (w *Worker) probePostgres(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	err := w.schema(ctx)
	w.health.mu.Lock()
	if errors.Is(err, context.DeadlineExceeded) && time.Since(w.health.lastApplied) < probeTimeout {
		err = nil // the pool is busy, with success
	}
	before := w.health.postgres
	w.health.postgres = err
	w.health.mu.Unlock()
	if s := w.session.Load(); s != nil && before != nil && err == nil {
		s.check() // Postgres is back, and may have lost commits
	}
}

func (w *Worker) probeGroup(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	_, err := broker.CommittedOffsets(ctx, w.admin, w.kafka.Group, w.kafka.Topic)
	w.health.grouped(err)
}

// watch compares positions with Postgres and with the log until ctx ends, every check
// interval and when asked.
func (s *session) watch(ctx context.Context) {
	for attempt := 0; ; {
		wait := s.w.cfg.CheckInterval
		if attempt > 0 {
			wait = min(wait, backoff(attempt))
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-s.checkNow:
		case <-timer.C:
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
		err := s.checkPositions(ctx)
		if err == nil {
			attempt = 0
			continue
		}
		attempt++
		if ctx.Err() == nil {
			s.w.log.Warn().Err(err).Int("attempt", attempt).Msg("positions not checked")
		}
	}
}

// checkPositions ends the session if a position does not hold any more. It returns an
// error if it could not find out.
func (s *session) checkPositions(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.w.cfg.batchTimeout())
	defer cancel()
	// Ours first: what Postgres holds can only be further on.
	ours := s.queues.standings()
	next := make(map[int32]int64, len(ours))
	for _, p := range ours {
		next[p.id] = p.next
	}
	moved, err := s.w.ledger.CheckPositions(ctx, s.clusterID, s.topicID, next)
	if err != nil {
		return err
	}
	for _, p := range ours {
		// A partition that moved to another worker meanwhile is that one's matter.
		if slices.Contains(moved, p.id) && s.queues.isCurrent(p.of) {
			s.fail(&positionLost{p.id, "progress_check", fmt.Errorf("Postgres does not hold what was settled up to %d", p.next)})
			return nil
		}
	}
	if err := s.w.health.unreadable(); err != nil {
		// The client does not come back to such a partition by itself.
		s.fail(err)
		return nil
	}
	if err := s.checkWaiting(ctx); err != nil {
		return err
	}
	return s.checkTopic(ctx)
}

// checkWaiting ends the session when an operator acknowledged what a partition waits for.
func (s *session) checkWaiting(ctx context.Context) error {
	for _, id := range s.waiting.list() {
		acknowledged, err := s.acknowledged(ctx, id)
		if err != nil {
			return err
		}
		if acknowledged {
			s.fail(errAcknowledged)
		}
	}
	return nil
}

func (s *session) checkTopic(ctx context.Context) error {
	clusterID, topicID, _, err := broker.Identity(ctx, s.w.admin, s.topic)
	if err != nil {
		return err
	}
	if clusterID != s.clusterID || topicID != s.topicID {
		s.fail(errTopicChanged)
		return nil
	}
	ends, err := broker.EndOffsets(ctx, s.w.admin, s.topic)
	if err != nil {
		return err
	}
	s.queues.setEnds(ends)
	return nil
}
