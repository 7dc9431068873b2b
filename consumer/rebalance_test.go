package consumer

import (
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/testkit"
)

func TestRebalance_TwoWorkersShareAndTakeOver(t *testing.T) {
	t.Parallel()
	b := setup(t, 4)
	b.cfg.SessionTimeout = 2 * soon // taking over by time would be too late
	b.watchCommits()
	first := b.start()
	first.owns(4)
	for p := range int32(4) {
		b.pay(p, "anna", 50)
	}
	second := b.start()
	first.owns(2)
	second.owns(2)
	for p := range int32(4) {
		b.pay(p, "anna", 50)
	}
	b.hasBalance("anna", 400)
	first.halt()
	second.owns(4)
	for p := range int32(4) {
		b.pay(p, "anna", 50)
	}
	b.hasBalance("anna", 600)
	for p := range int32(4) {
		b.isCommitted(p, 150)
		b.hasIncidents(p)
	}
	if got := first.records("duplicate") + second.records("duplicate"); got != 0 {
		t.Errorf("duplicates: got %v, want none from orderly rebalances", got)
	}
	b.lawful()
}

// TestRebalance_Churn joins and ends workers under load: all is applied once.
func TestRebalance_Churn(t *testing.T) {
	t.Parallel()
	b := setup(t, 6)
	b.watchCommits()
	b.cfg.BatchMaxRecords = 20
	stay := b.start()
	sent := int64(0)
	for round := range 4 {
		w := b.start()
		for range 5 {
			for p := range int32(6) {
				b.pay(p, "anna", 10)
				sent += 10
			}
		}
		if round%2 == 0 {
			w.owns(3)
		}
		w.halt()
	}
	b.hasBalance("anna", sent)
	for p := range int32(6) {
		b.isCommitted(p, sent/6)
		b.hasIncidents(p)
	}
	if stay.err != nil {
		t.Error(stay.err)
	}
	b.lawful()
}

// TestRebalance_SlowDatabase holds what the worker's transaction needs while its
// partitions are to move: it rolls back in time, and the group goes on.
func TestRebalance_SlowDatabase(t *testing.T) {
	t.Parallel()
	b := setup(t, 2)
	b.cfg.SessionTimeout = 10 * time.Second
	first := b.start()
	b.pay(0, "anna", 1)
	b.pay(1, "anna", 1)
	b.isCommitted(0, 1)
	b.isCommitted(1, 1)
	held := b.lockRows(`select from accounts for update`)
	b.pay(0, "anna", 5)
	b.pay(1, "anna", 5)
	testkit.Eventually(t, soon, func() error {
		for _, p := range first.session.Load().queues.standings() {
			if p.bytes == 0 {
				return errors.New("not read yet")
			}
		}
		return nil
	})
	began := time.Now()
	second := b.start()
	first.owns(1)
	second.owns(1)
	if took := time.Since(began); took > b.cfg.rebalanceTimeout() {
		t.Errorf("the rebalance took %s, want less than the rebalance timeout %s", took, b.cfg.rebalanceTimeout())
	}
	held.release()
	b.hasBalance("anna", 12)
	b.isCommitted(0, 6)
	b.isCommitted(1, 6)
	b.hasIncidents(0)
	b.hasIncidents(1)
	b.lawful()
}

// TestRebalance_ZombieHarmsNobody freezes a worker's way to Kafka beyond its session
// while Postgres still answers it: another worker takes over, the zombie wakes up.
func TestRebalance_ZombieHarmsNobody(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.watchCommits()
	proxy := testkit.NewProxy(t, b.kafka.Brokers[0])
	b.extra = []kgo.Opt{kgo.Dialer(proxy.Dial)}
	zombie := b.start()
	b.extra = nil
	b.pay(0, "anna", 3)
	b.isCommitted(0, 3)
	// The zombie's transaction waits; then it loses Kafka; then its session.
	held := b.lockRows(`select from accounts for update`)
	b.pay(0, "anna", 3)
	testkit.Eventually(t, soon, func() error {
		if zombie.session.Load().queues.standings()[0].bytes == 0 {
			return errors.New("not read yet")
		}
		return nil
	})
	proxy.Stall()
	heir := b.start()
	heir.owns(1)
	held.release()
	b.hasBalance("anna", 6)
	b.pay(0, "anna", 3)
	b.hasBalance("anna", 9)
	b.isCommitted(0, 9)
	proxy.Pass()
	b.pay(0, "anna", 3)
	b.hasBalance("anna", 12)
	b.isCommitted(0, 12)
	zombie.ready()
	b.lawful()
	b.hasIncidents(0)
}

// TestRebalance_LateCommitIsNotSentForWhatLeft: a commit that failed is not repeated
// once the partition has another owner.
func TestRebalance_LateCommitIsNotSentForWhatLeft(t *testing.T) {
	t.Parallel()
	p := &partition{id: 3}
	q := newQueues(limits{batchRecords: 10, batchBytes: 1 << 20, bufferBytes: 1 << 20, partitionBytes: 1 << 20}, func(int32) {}, func(int32) {})
	q.assign(p)
	c := newCommits("events", nil, q)
	p.gone = true
	if c.current(p) {
		t.Error("a partition that is gone counts as ours")
	}
	c.commit(committed{p, kgo.EpochOffset{Offset: 9}})
	c.drop([]*partition{p})
	if len(c.pending) != 0 {
		t.Errorf("pending after the partition left: got %v, want none", c.pending)
	}
}

func TestWorker_SameInstanceTwiceEndsTheFirst(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.cfg.InstanceID = "worker-1"
	first := b.start()
	first.owns(1)
	b.start()
	select {
	case <-first.done:
	case <-time.After(soon):
		t.Fatal("two workers with one instance ID both go on")
	}
	if first.err == nil {
		t.Error("Run: got nil, want an error that names consume.instance_id")
	}
	b.pay(0, "anna", 1)
	b.hasBalance("anna", 1)
}

func TestWorker_KilledStaticMemberIsBackAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.cfg.InstanceID = "worker-1"
	b.cfg.SessionTimeout = 2 * soon // taking over by time would be too late
	proxy := testkit.NewProxy(t, b.kafka.Brokers[0])
	b.extra = []kgo.Opt{kgo.Dialer(proxy.Dial)}
	b.start()
	b.extra = nil
	b.pay(0, "anna", 1)
	b.isCommitted(0, 1)
	proxy.Stall() // what a killed process looks like from outside
	b.pay(0, "anna", 1)
	b.start()
	b.hasBalance("anna", 2)
	proxy.Reset()
}
