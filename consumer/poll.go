package consumer

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// pollMaxRecords bounds one poll, and with it how far the queues may overshoot: 10,000
// records of 2 KiB were more than consume.buffer_bytes by themselves.
const pollMaxRecords = 2_000

// poll moves what the client fetched to the queues until ctx ends. It reads on while
// there is room and never pauses the client as a whole.
func (s *session) poll(ctx context.Context) {
	for s.queues.waitRoom() {
		fetches := s.client.PollRecords(ctx, pollMaxRecords)
		if ctx.Err() == nil && !fetches.IsClientClosed() {
			fetches.EachError(s.fetchFailed)
			fetches.EachPartition(s.fetched)
		}
		s.client.AllowRebalance()
		if ctx.Err() != nil || fetches.IsClientClosed() {
			return
		}
	}
}

func (s *session) fetched(p kgo.FetchTopicPartition) {
	if p.Err != nil {
		return // told by fetchFailed; nothing of such a partition is to be trusted
	}
	s.w.health.partitionsRead(p.Partition)
	gap := s.queues.add(p.Partition, p.HighWatermark, p.Records)
	if gap > 0 {
		// Compaction, control records or transactions: offsets without records.
		s.w.log.Info().Int32("partition", p.Partition).Int64("offsets", gap).Msg("offsets without records")
	}
}

// fetchFailed decides what an error beside the records means.
func (s *session) fetchFailed(_ string, id int32, err error) {
	var loss *kgo.ErrDataLoss
	var group *kgo.ErrGroupSession
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, kgo.ErrClientClosed):
	case errors.As(err, &loss):
		s.w.losses.report(id, lossReport{loss.ResetTo, loss.ConsumedTo})
		s.fail(&positionLost{id, "data_loss", err})
	case errors.Is(err, kerr.OffsetOutOfRange):
		s.fail(&positionLost{id, "offset_out_of_range", err})
	case errors.Is(err, kerr.UnknownTopicID), errors.Is(err, kerr.UnknownTopicOrPartition), errors.Is(err, kerr.InconsistentTopicID):
		s.fail(fmt.Errorf("read %s/%d: %w", s.topic, id, err))
	case errors.Is(err, kerr.FencedInstanceID):
		s.fail(fmt.Errorf("another worker uses consume.instance_id %q: give each worker its own: %w", s.w.cfg.InstanceID, err))
	case errors.Is(err, kerr.InvalidSessionTimeout):
		s.fail(fmt.Errorf("%w: the brokers do not allow consume.session_timeout %s: set it between their group.min.session.timeout.ms and group.max.session.timeout.ms: %w",
			ErrRefused, s.w.cfg.SessionTimeout, err))
	case errors.As(err, &group):
		// The client rejoins by itself.
		s.w.metrics.retries.WithLabelValues("group").Inc()
		s.w.health.joined(err)
		s.w.log.Warn().Err(err).Msg("group membership failed: joining again")
	default:
		// A new client is tried after the next check, except for a batch too large to
		// unpack, which a new client would not read either.
		s.w.metrics.retries.WithLabelValues("fetch").Inc()
		s.w.health.partitionFails(id, err)
		s.w.log.Warn().Err(err).Int32("partition", id).Msg("partition cannot be read")
	}
}

// losses counts what the client reports as lost records, across sessions: a report is
// believed when it comes again after the positions and the metadata were read anew.
type losses struct {
	mu      sync.Mutex
	reports map[int32]lossReport
	times   map[int32]int
}

func (l *losses) report(id int32, r lossReport) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reports == nil {
		l.reports, l.times = make(map[int32]lossReport), make(map[int32]int)
	}
	l.reports[id] = r
	l.times[id]++
}

// confirmed returns what was reported twice, or nil.
func (l *losses) confirmed(id int32) *lossReport {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.times[id] < 2 {
		return nil
	}
	r := l.reports[id]
	return &r
}

// forget ends a suspicion: it was acted upon, or the partition was read without it.
func (l *losses) forget(id int32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.reports, id)
	delete(l.times, id)
}
