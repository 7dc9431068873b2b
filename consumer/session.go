package consumer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/broker"
	"hookledger/internal/ledger"
)

const (
	// maxDecompressBytes bounds what one batch of the topic may unpack to: a producer of
	// ours makes batches of little more than one body.
	maxDecompressBytes = 64 << 20
	// fetchMaxBytes bounds one answer of one broker, which is unpacked as a whole. With
	// 16 MiB here and 64 MiB of buffers a worker under a backlog took 220 to 270 MiB, with
	// 4 and 16 it takes 149 (60,000 records of 2 KiB in snappy, 6 partitions); with 1, 135
	// instead of 149 to 172, and the same rate (40,000 records, 12 partitions, more alike).
	fetchMaxBytes = 1 << 20
	// fetchMaxWait is how long a broker may hold an empty fetch. A partition whose pause
	// ends is in the next fetch, so it waits this long at most; kgo's default is 5 s.
	fetchMaxWait = 500 * time.Millisecond
	// leaveTimeout bounds leaving the group when the brokers do not answer.
	leaveTimeout = 5 * time.Second
)

// session is one membership of the group, from joining to leaving. When a position does
// not hold any more the session ends and another begins, so that the rules run.
type session struct {
	w     *Worker
	topic string
	// clusterID and topicID are what the topic was when the session began.
	clusterID string
	topicID   [16]byte

	// client is set when opened is closed: the group may call back while the client is
	// still being made.
	client  *kgo.Client
	opened  chan struct{}
	queues  *queues
	commits *commits
	waiting waiting

	// ctx ends when the session fails: what is in hand is rolled back. Its cause says why.
	ctx  context.Context
	fail context.CancelCauseFunc
	// checkNow asks for a comparison of positions at once.
	checkNow chan struct{}
}

// runSession joins the group, works until ctx ends or the session fails, and leaves.
// It returns why the session failed, or nil after a graceful stop.
func (w *Worker) runSession(ctx context.Context) error {
	s, closeClient, err := w.open(ctx)
	if err != nil {
		return err
	}
	polling, stopPolling := context.WithCancel(context.WithoutCancel(ctx))
	var poller, others sync.WaitGroup
	poller.Go(func() { s.poll(polling) }) // ends with stopPolling
	for range w.cfg.Appliers {
		others.Go(s.apply) // ends with queues.close
	}
	sending, stopSending := context.WithCancel(context.WithoutCancel(ctx))
	others.Go(func() { s.commits.run(sending) })
	others.Go(func() { s.watch(sending) })
	w.health.forgetPartitions()
	w.session.Store(s)

	select {
	case <-ctx.Done():
		w.log.Info().Msg("stopping: finishing what is in hand")
	case <-s.ctx.Done():
	}

	// Nothing new is read; then nothing new is begun; then what is in hand ends; then
	// Kafka is told; then the group is left, and only now may another worker read on.
	w.session.Store(nil)
	stopPolling()
	s.queues.close()
	poller.Wait()
	s.queues.await(s.queues.all(), w.cfg.finishTimeout(), errRevoked)
	stopSending()
	others.Wait()
	failure := context.Cause(s.ctx)
	if failure != nil {
		s.commits.dropAll() // what Postgres does not hold must not be committed
	} else {
		s.commits.flush(w.cfg.finishTimeout())
		s.commits.dropAll()
	}
	closeClient()
	s.fail(context.Canceled) // frees the context
	return failure
}

// open finds out what the topic is and joins the group.
func (w *Worker) open(ctx context.Context) (*session, func(), error) {
	asking, cancel := context.WithTimeout(ctx, w.cfg.batchTimeout())
	defer cancel()
	clusterID, topicID, partitions, err := broker.Identity(asking, w.admin, w.kafka.Topic)
	if err != nil {
		return nil, nil, err
	}
	s := &session{w: w, topic: w.kafka.Topic, clusterID: clusterID, topicID: topicID, opened: make(chan struct{}), checkNow: make(chan struct{}, 1)}
	s.ctx, s.fail = context.WithCancelCause(context.WithoutCancel(ctx))
	s.queues = newQueues(limits{
		batchRecords: w.cfg.BatchMaxRecords, batchBytes: w.cfg.BatchMaxBytes,
		bufferBytes: w.cfg.BufferBytes, partitionBytes: max(w.cfg.BufferBytes/max(partitions, 1), 1<<20),
	}, s.pause, s.resume)
	s.commits = newCommits(s.topic, w.metrics, s.queues)

	// kgo uses this context when it leaves the group, which must not take for ever.
	living, kill := context.WithCancel(context.WithoutCancel(ctx))
	s.client, err = kgo.NewClient(append(slices.Clone(w.options), s.options(living)...)...)
	if err != nil {
		kill()
		return nil, nil, fmt.Errorf("open Kafka client: %w", err)
	}
	s.commits.client = s.client
	close(s.opened)
	return s, func() {
		timer := time.AfterFunc(leaveTimeout, kill)
		defer timer.Stop()
		defer kill()
		s.client.CloseAllowingRebalance()
		if !errors.Is(context.Cause(s.ctx), kerr.FencedInstanceID) { // else another worker would leave
			w.leaveStatic(ctx)
		}
	}, nil
}

func (s *session) options(living context.Context) []kgo.Opt {
	cfg := &s.w.cfg
	opts := []kgo.Opt{
		kgo.WithContext(living),
		kgo.ConsumeTopics(s.topic),
		kgo.ConsumerGroup(s.w.kafka.Group),
		kgo.Balancers(kgo.CooperativeStickyBalancer()),
		kgo.SessionTimeout(cfg.SessionTimeout),
		kgo.RebalanceTimeout(cfg.rebalanceTimeout()),
		kgo.HeartbeatInterval(cfg.heartbeatInterval()),

		// Positions are ours alone. A start comes from onAssigned; should one ever be
		// missing, the log is read from its start. A position out of range is an error
		// that comes to us, not a jump.
		kgo.DisableAutoCommit(),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.AdjustFetchOffsetsFn(s.onAssigned),
		kgo.OnPartitionsAssigned(s.onJoined),
		kgo.OnPartitionsRevoked(s.onRevoked),
		kgo.OnPartitionsLost(s.onLost),
		// Between a poll and the queues nothing may be revoked: records of the old
		// assignment would stand in the queue of the new one, above a hole.
		kgo.BlockRebalanceOnPoll(),

		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.FetchMaxBytes(fetchMaxBytes),
		kgo.FetchMaxWait(fetchMaxWait),
		kgo.MaxDecompressBatchBytes(maxDecompressBytes),
	}
	if cfg.InstanceID != "" {
		opts = append(opts, kgo.InstanceID(cfg.InstanceID))
	}
	return opts
}

// leaveStatic removes a static member, which closing its client does not: an operator's
// reset of offsets needs an empty group.
func (w *Worker) leaveStatic(ctx context.Context) {
	if w.cfg.InstanceID == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	rs, err := kadm.NewClient(w.admin).LeaveGroup(ctx, kadm.LeaveGroup(w.kafka.Group).InstanceIDs(w.cfg.InstanceID).Reason("the worker stopped"))
	if err == nil {
		err = rs.Error()
	}
	if err != nil {
		w.log.Warn().Err(err).Str("instance_id", w.cfg.InstanceID).Msg("leave group: the partitions stay reserved until the session timeout")
	}
}

func (s *session) positionOf(id int32) ledger.Position {
	return ledger.Position{ClusterID: s.clusterID, Topic: s.topic, TopicID: s.topicID, Partition: id}
}

func (s *session) pause(id int32) {
	s.client.PauseFetchPartitions(map[string][]int32{s.topic: {id}})
}

func (s *session) resume(id int32) {
	s.client.ResumeFetchPartitions(map[string][]int32{s.topic: {id}})
}

// check asks for a comparison of positions soon.
func (s *session) check() {
	select {
	case s.checkNow <- struct{}{}:
	default:
	}
}

// waiting is the set of partitions that are ours and not read, because a person is to
// decide. It is safe for concurrent use.
type waiting struct {
	mu         sync.Mutex
	partitions map[int32]*partition
}

func (w *waiting) add(p *partition) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.partitions == nil {
		w.partitions = make(map[int32]*partition)
	}
	w.partitions[p.id] = p
}

// remove returns those of the partitions with these ids that waited.
func (w *waiting) remove(ids []int32) []*partition {
	w.mu.Lock()
	defer w.mu.Unlock()
	var removed []*partition
	for _, id := range ids {
		if p, ok := w.partitions[id]; ok {
			delete(w.partitions, id)
			removed = append(removed, p)
		}
	}
	return removed
}

func (w *waiting) list() []int32 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.partitions))
}

// positionLost says that Postgres, or the log, does not hold the position of a
// partition any more.
type positionLost struct {
	partition int32
	reason    string
	err       error
}

func (e *positionLost) Error() string {
	return fmt.Sprintf("position of partition %d is gone: %s: %v", e.partition, e.reason, e.err)
}

func (e *positionLost) Unwrap() error { return e.err }

var (
	errTopicChanged = errors.New("the topic has another ID than before: it was deleted and created again")
	errAcknowledged = errors.New("a waiting partition was acknowledged")
)

// reopenReason names why a session ended, from a bounded set.
func reopenReason(err error) string {
	var lost *positionLost
	switch {
	case errors.As(err, &lost):
		return lost.reason
	case errors.Is(err, errTopicChanged):
		return "topic_changed"
	case errors.Is(err, errAcknowledged):
		return "acknowledged"
	}
	return "kafka"
}
