package consumer

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"hookledger/internal/crashpoint"
)

const (
	// commitInterval is the least time between two commits. One commit tells of all
	// partitions, so its cost does not grow with the load; a crash repeats this much
	// work, as duplicates.
	commitInterval = 100 * time.Millisecond
	// commitRetry is how long a failed commit waits when nothing newer comes.
	commitRetry = time.Second
	// commitTimeout bounds one commit.
	commitTimeout = 10 * time.Second
)

// commits tells Kafka which positions Postgres holds. Appliers only note them; one
// commit at a time carries the latest of each partition, so that they never go
// backwards within an assignment. Failures are counted and go on: Postgres decides
// where to start, Kafka's copy is what operators see and reset.
type commits struct {
	client  *kgo.Client
	topic   string
	metrics *metrics
	// acknowledged is called for each partition whose commit Kafka confirmed.
	acknowledged func(committed)
	// current tells whether the partition is still ours. Kafka takes the commit of any
	// member for any partition, so a late one would move the next owner's back.
	current func(*partition) bool

	// sending is held while a commit is on its way.
	sending sync.Mutex

	mu      sync.Mutex
	pending map[int32]committed
	kick    chan struct{}
}

func newCommits(topic string, m *metrics, q *queues) *commits {
	return &commits{
		topic: topic, metrics: m, acknowledged: q.acknowledge, current: q.isCurrent,
		pending: make(map[int32]committed), kick: make(chan struct{}, 1),
	}
}

// commit notes positions that are durable. It does not wait.
func (c *commits) commit(durable ...committed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, done := range durable {
		if before, ok := c.pending[done.of.id]; ok && before.of == done.of && before.at.Offset >= done.at.Offset {
			continue
		}
		c.pending[done.of.id] = done
	}
	select {
	case c.kick <- struct{}{}:
	default:
	}
}

// drop forgets what was noted for ps.
func (c *commits) drop(ps []*partition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range ps {
		if c.pending[p.id].of == p {
			delete(c.pending, p.id)
		}
	}
}

// dropAll forgets everything that was noted.
func (c *commits) dropAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.pending)
}

// run sends commits until ctx ends.
func (c *commits) run(ctx context.Context) {
	retry := time.NewTimer(time.Hour)
	defer retry.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.kick:
		case <-retry.C:
		}
		if !c.send(ctx, commitTimeout) {
			retry.Reset(commitRetry)
		}
		if sleep(ctx, commitInterval) != nil {
			return
		}
	}
}

// flush sends what is noted and waits for the answer.
func (c *commits) flush(within time.Duration) { c.send(context.Background(), within) }

// send tells Kafka everything that is noted. It returns false if some of it is to be
// tried again.
func (c *commits) send(ctx context.Context, within time.Duration) bool {
	c.sending.Lock()
	defer c.sending.Unlock()
	c.mu.Lock()
	sent := c.pending
	c.pending = make(map[int32]committed, len(sent))
	c.mu.Unlock()
	if len(sent) == 0 {
		return true
	}
	offsets := make(map[int32]kgo.EpochOffset, len(sent))
	for id, done := range sent {
		offsets[id] = done.at
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	failed := sent
	crashpoint.Reach("consumer.commit")
	c.client.CommitOffsetsSync(ctx, map[string]map[int32]kgo.EpochOffset{c.topic: offsets},
		func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, err error) {
			failed = c.failures(sent, resp, err)
		})
	crashpoint.Reach("consumer.committed")
	for id, done := range sent {
		if _, ok := failed[id]; !ok {
			c.acknowledged(done)
		}
	}
	crashpoint.Reach("consumer.acknowledged")
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, done := range failed {
		if _, newer := c.pending[id]; !newer && c.current(done.of) {
			c.pending[id] = done
		}
	}
	return len(failed) == 0
}

// failures counts what failed of sent and returns it.
func (c *commits) failures(sent map[int32]committed, resp *kmsg.OffsetCommitResponse, err error) map[int32]committed {
	if err != nil {
		c.metrics.commitFailures.WithLabelValues(commitCode(err)).Inc()
		return sent
	}
	failed := make(map[int32]committed)
	for id, done := range sent {
		failed[id] = done // unless the answer says otherwise
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				c.metrics.commitFailures.WithLabelValues(commitCode(err)).Inc()
				continue
			}
			delete(failed, p.Partition)
		}
	}
	return failed
}

// commitCode names an error of a commit by Kafka's code, from a bounded set.
func commitCode(err error) string {
	var ke *kerr.Error
	switch {
	case errors.As(err, &ke):
		return ke.Message
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return "TIMEOUT"
	}
	return "CONNECTION"
}
