package consumer

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/broker"
	"hookledger/internal/crashpoint"
	"hookledger/internal/ledger"
)

// confirmAfter is how long the rules look away before they look again at what would be
// a loss or a reset, so that metadata, leaders and coordinators can settle.
const confirmAfter = 500 * time.Millisecond

var (
	errRevoked = errors.New("the partition was revoked and its batch took too long")
	errLost    = errors.New("the group does not count on this worker any more")
)

// onAssigned decides where newly assigned partitions start; the client reads from
// there. It runs while the member sends heartbeats, so it may wait for Postgres or a
// broker as long as the assignment stands: ctx ends with that. Partitions left out of
// the answer are not read.
func (s *session) onAssigned(ctx context.Context, fetched map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	<-s.opened
	var ids []int32
	for id := range fetched[s.topic] {
		ids = append(ids, id)
	}
	crashpoint.Reach("consumer.assign")
	verdicts, err := s.position(ctx, ids)
	crashpoint.Reach("consumer.positioned")
	if err != nil {
		if ctx.Err() == nil {
			s.fail(err) // the rules refuse, which no retry mends
		}
		return nil, err
	}
	starts := make(map[int32]kgo.Offset, len(verdicts))
	var untold []committed
	for id, v := range verdicts {
		p := s.newPartition(id, v)
		if v.waits {
			s.waiting.add(p)
		} else {
			s.queues.assign(p)
			starts[id] = kgo.NewOffset().At(v.start).WithEpoch(v.epoch)
		}
		if v.commit {
			untold = append(untold, v.committed(p))
		}
	}
	s.commits.commit(untold...)
	s.w.metrics.assigned.Set(float64(len(s.queues.all())))
	return map[string]map[int32]kgo.Offset{s.topic: starts}, nil
}

// committed returns the start of p as a position that Postgres holds.
func (v verdict) committed(p *partition) committed {
	return committed{p, kgo.EpochOffset{Epoch: v.epoch, Offset: v.start}}
}

func (s *session) newPartition(id int32, v verdict) *partition {
	p := &partition{id: id, pos: s.positionOf(id), next: v.start, from: v.from, end: v.end, untold: v.commit}
	p.ctx, p.abort = context.WithCancelCause(s.ctx)
	return p
}

// position applies the rules to the partitions with these ids until each has a
// verdict that is written. It fails if the rules refuse, or when ctx ends.
func (s *session) position(ctx context.Context, ids []int32) (map[int32]verdict, error) {
	verdicts := make(map[int32]verdict, len(ids))
	suspected := make(map[int32]rule)
	assignment := rand.Text()
	defer s.w.health.positioned(nil)
	for attempt := 1; ; attempt++ {
		err := s.positionRound(ctx, ids, assignment, verdicts, suspected)
		switch {
		case ctx.Err() != nil:
			return nil, fmt.Errorf("find positions: %w", context.Cause(ctx))
		case errors.Is(err, ErrRefused):
			return nil, err
		case err == nil && len(verdicts) == len(ids):
			return verdicts, nil
		}
		wait := confirmAfter
		s.w.health.positioned(err)
		if err != nil {
			wait = backoff(attempt)
			s.w.metrics.retries.WithLabelValues(classOf(err)).Inc()
			s.w.log.Warn().Err(err).Int("attempt", attempt).Dur("retry_in", wait).Msg("positions not known yet")
		}
		s.client.ForceMetadataRefresh()
		if err := sleep(ctx, wait); err != nil {
			return nil, fmt.Errorf("find positions: %w", err)
		}
	}
}

// positionRound looks once at all partitions without a verdict. What must be seen twice
// is only suspected the first time.
func (s *session) positionRound(ctx context.Context, ids []int32, assignment string, verdicts map[int32]verdict, suspected map[int32]rule) error {
	look, err := s.look(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if _, done := verdicts[id]; done {
			continue
		}
		sight, err := s.sight(ctx, &look, id, assignment)
		if err != nil {
			return err
		}
		v := decide(sight)
		switch {
		case v.refused != nil:
			return fmt.Errorf("%w: %w", ErrRefused, v.refused)
		case v.rule.mustBeSeenTwice() && suspected[id] != v.rule:
			suspected[id] = v.rule
			continue
		}
		if v.write != nil {
			err := s.w.ledger.WritePosition(ctx, *v.write)
			if errors.Is(err, ledger.ErrPositionMoved) {
				continue // another worker's last transaction: look again
			}
			if err != nil {
				return err
			}
		}
		verdicts[id] = v
		s.tell(id, v)
	}
	return nil
}

// look is what the rules see of all partitions.
type look struct {
	committed, starts, ends map[int32]broker.Offset
	progress                []ledger.Progress
}

// look reads, in this order, commits, progress, and log starts and ends. An error of
// any of them is an error: it is never taken for "nothing there".
func (s *session) look(ctx context.Context) (look, error) {
	ctx, cancel := context.WithTimeout(ctx, s.w.cfg.batchTimeout())
	defer cancel()
	var l look
	var err error
	if l.committed, err = broker.CommittedOffsets(ctx, s.w.admin, s.w.kafka.Group, s.topic); err != nil {
		return l, err
	}
	if l.progress, err = s.w.ledger.ReadProgress(ctx, s.topic, s.topicID); err != nil {
		return l, err
	}
	if l.starts, err = broker.StartOffsets(ctx, s.w.admin, s.topic); err != nil {
		return l, err
	}
	l.ends, err = broker.EndOffsets(ctx, s.w.admin, s.topic)
	return l, err
}

// sight narrows l to one partition.
func (s *session) sight(ctx context.Context, l *look, id int32, assignment string) (sight, error) {
	start, ok := l.starts[id]
	end, ok2 := l.ends[id]
	if !ok || !ok2 {
		return sight{}, fmt.Errorf("list offsets of %s/%d: the partition is not in the answer", s.topic, id)
	}
	committed, hasCommit := l.committed[id]
	one := sight{
		position: s.positionOf(id), committed: committed, hasCommit: hasCommit, progress: l.progress,
		logStart: start.At, logEnd: end.At, assignment: assignment, loss: s.w.losses.confirmed(id),
	}
	if !one.recreated() {
		return one, nil
	}
	acknowledged, err := s.acknowledged(ctx, id)
	one.unacknowledged = !acknowledged
	return one, err
}

// acknowledged tells whether no incident about the new life of the topic keeps the
// partition waiting.
func (s *session) acknowledged(ctx context.Context, id int32) (bool, error) {
	i, err := s.w.ledger.FindIncident(ctx, recreatedKey(s.positionOf(id)))
	if errors.Is(err, ledger.ErrNoIncident) {
		return true, nil
	}
	return err == nil && !i.AcknowledgedAt.IsZero(), err
}

// tell reports a verdict that was written.
func (s *session) tell(id int32, v verdict) {
	s.w.metrics.rules.WithLabelValues(v.rule.String()).Inc()
	if v.rule == ruleTruncated {
		s.w.losses.forget(id)
	}
	event := s.w.log.Info()
	if v.write != nil && v.write.Incident != nil {
		i := v.write.Incident
		s.w.metrics.incidents.WithLabelValues(i.Kind).Inc()
		switch i.Severity {
		case ledger.Loss:
			event = s.w.log.Error()
		case ledger.Warning:
			event = s.w.log.Warn()
		}
		event = event.Str("incident", i.Kind).Int64("from", *i.From).Int64("to", *i.To)
	}
	event.Int32("partition", id).Int("rule", int(v.rule)).Int64("next", v.start).Bool("waits", v.waits).Msg("partition assigned")
}

// onJoined runs after each rebalance, before onAssigned.
func (s *session) onJoined(context.Context, *kgo.Client, map[string][]int32) {
	s.w.health.joined(nil)
}

// onRevoked gives partitions back in good order: what is in hand ends, or is rolled
// back if it takes too long, and Kafka is told before another worker asks.
func (s *session) onRevoked(_ context.Context, _ *kgo.Client, revoked map[string][]int32) {
	<-s.opened
	ids := revoked[s.topic]
	if len(ids) == 0 {
		return
	}
	ps := append(s.queues.remove(ids), s.waiting.remove(ids)...)
	crashpoint.Reach("consumer.revoked")
	s.queues.await(ps, s.w.cfg.finishTimeout(), errRevoked)
	s.commits.flush(s.w.cfg.finishTimeout())
	s.commits.drop(ps)
	s.w.health.partitionsRead(ids...)
	s.w.metrics.assigned.Set(float64(len(s.queues.all())))
	s.w.log.Info().Ints32("partitions", ids).Msg("partitions revoked")
}

// onLost drops partitions that may have another owner already: their work is rolled
// back and nothing is committed.
func (s *session) onLost(_ context.Context, _ *kgo.Client, lost map[string][]int32) {
	<-s.opened
	ids := lost[s.topic]
	if len(ids) == 0 {
		return
	}
	ps := append(s.queues.remove(ids), s.waiting.remove(ids)...)
	s.commits.drop(ps)
	s.queues.await(ps, 0, errLost)
	s.commits.drop(ps) // what ended meanwhile
	s.w.health.partitionsRead(ids...)
	s.w.metrics.assigned.Set(float64(len(s.queues.all())))
	s.w.log.Warn().Ints32("partitions", ids).Msg("partitions lost")
}
