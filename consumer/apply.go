package consumer

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"hookledger/internal/crashpoint"
	"hookledger/internal/ledger"
)

// apply takes batches and applies them until the queues are closed.
func (s *session) apply() {
	for {
		b, ok := s.queues.take()
		if !ok {
			return
		}
		s.settle(s.applyBatch(b))
	}
}

// applyBatch gives b to the ledger. What is durable is in the outcome, also when it
// failed half way.
func (s *session) applyBatch(b batch) outcome {
	ctx, cancel := context.WithTimeout(b.of.ctx, s.w.cfg.batchTimeout())
	defer cancel()
	began := time.Now()
	crashpoint.Reach("consumer.taken")
	done, err := s.w.ledger.Apply(ctx, b.records)
	crashpoint.Reach("consumer.applied")
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) {
		err = errors.Join(cause, err)
	}
	result := "ok"
	if err != nil {
		result = "error"
	}
	s.w.metrics.applySeconds.WithLabelValues(result).Observe(time.Since(began).Seconds())
	s.w.metrics.batchRecords.Observe(float64(len(b.records.Records)))
	o := outcome{of: b.of, done: done, settled: done.Next() > b.records.Start, epoch: -1, err: err}
	for _, r := range b.records.Records {
		if r.Offset < done.Next() {
			o.epoch = r.LeaderEpoch
		}
	}
	return o
}

// settle gives a batch back, tells Kafka what is durable, and decides about an error.
func (s *session) settle(o outcome) {
	if o.settled {
		s.w.metrics.settled(o.done, time.Now())
		s.flag(o)
	}
	if o.err != nil {
		s.failed(o)
	}
	// Noted first: a partition that leaves waits for finish, then sends what is noted. A
	// position noted later would move the next owner's back.
	if c, ok := o.committed(); ok {
		s.commits.commit(c)
	}
	recovered := s.queues.finish(o, func(attempts int) time.Duration { return restFor(o.err, attempts) })
	if o.err == nil {
		s.w.health.applied()
		s.w.losses.forget(o.of.id)
	}
	if recovered {
		// Postgres may be another one than before.
		s.check()
		s.w.log.Info().Int32("partition", o.of.id).Msg("partition goes on")
	}
}

// flag says what a person must look at. A flood of it is said in part.
func (s *session) flag(o outcome) {
	quarantined, conflicts := o.done.Count(ledger.Quarantined), o.done.Count(ledger.Conflict)
	if quarantined > 0 || conflicts > 0 {
		s.w.floods.Warn().Int32("partition", o.of.id).Int64("next", o.done.Next()).
			Int64("quarantined", quarantined).Int64("conflicts", conflicts).
			Msg("records wait for a person: see `hookledger quarantine list`")
	}
	for _, source := range o.done.Surging() {
		s.w.floods.Warn().Str("source", source).
			Msg("quarantine_surge: so many records of the source cannot be applied that its mapping is more likely wrong than they are")
	}
}

// failed tells of an error. All errors are retried for as long as the partition is
// ours; a position that moved ends the session, since only the rules may mend it.
func (s *session) failed(o outcome) {
	if o.of.ctx.Err() != nil {
		return // rolled back on purpose
	}
	class := classOf(o.err)
	s.w.metrics.retries.WithLabelValues(class).Inc()
	s.w.log.Warn().Err(o.err).Int32("partition", o.of.id).Str("class", class).Int64("next", o.done.Next()).Msg("batch not applied")
	if errors.Is(o.err, ledger.ErrPositionMoved) {
		s.fail(&positionLost{o.of.id, "progress_check", o.err})
	}
}

// classOf names the kind of an error, from a bounded set, for metrics.
func classOf(err error) string {
	var wait *ledger.WaitError
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &wait):
		return wait.Kind
	case errors.Is(err, ledger.ErrPositionMoved):
		return "position"
	case isDeadline(err):
		return "timeout"
	case errors.As(err, &pg) && len(pg.Code) == 5:
		return "sqlstate_" + pg.Code[:2]
	case pgconn.SafeToRetry(err):
		return "connection"
	}
	return "other"
}

// isDeadline tells whether the work took longer than it may: our own deadline, or the
// database's statement (57014) or lock (55P03) timeout.
func isDeadline(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code == "57014" || pg.Code == "55P03"
	}
	return errors.Is(err, context.DeadlineExceeded)
}

const (
	backoffFirst = 100 * time.Millisecond
	// backoffMost keeps the time from "Postgres is back" to "money moves" short; one
	// attempt costs a partition one connection and one round trip.
	backoffMost = 5 * time.Second
)

// restFor is how long a partition rests after its attempts-th failure in a row.
func restFor(err error, attempts int) time.Duration {
	var wait *ledger.WaitError
	if errors.As(err, &wait) {
		attempts = max(attempts, 5) // nothing changes within a second
	}
	return backoff(attempts)
}

// backoff returns the wait before attempt+1: doubling, capped, and shortened by up to
// half at random so that partitions and workers do not come back in step.
func backoff(attempt int) time.Duration {
	d := backoffMost
	if attempt < 7 {
		d = min(backoffFirst<<max(attempt-1, 0), backoffMost)
	}
	return d - rand.N(d/2)
}

// sleep waits, or returns the cause of ctx's end.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
