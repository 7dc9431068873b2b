package consumer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"hookledger/internal/testkit"
)

// watchCommits fails the test if an offset is ever committed that Postgres does not
// hold durably.
func (b *bundle) watchCommits() {
	b.tb.Helper()
	var mu sync.Mutex
	var seen []kmsg.OffsetCommitRequest
	b.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Observe: true, Count: -1, When: func(req kmsg.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, *req.(*kmsg.OffsetCommitRequest))
		return true
	}})
	stop, done := make(chan struct{}), make(chan struct{})
	go func() { // ends with the test
		defer close(done)
		for {
			mu.Lock()
			commits := seen
			seen = nil
			mu.Unlock()
			for _, c := range commits {
				for _, t := range c.Topics {
					for _, p := range t.Partitions {
						// Progress only grows here, so a commit that was ahead of it when it was
						// sent may have been caught up with; one that still is shows for certain.
						var next int64
						err := b.pool.QueryRow(context.Background(), `select coalesce(max(next_offset), 0) from consumer_progress where partition = $1`, p.Partition).Scan(&next)
						if err == nil && p.Offset > next {
							b.tb.Errorf("partition %d: committed %d, Postgres holds %d", p.Partition, p.Offset, next)
						}
					}
				}
			}
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	b.tb.Cleanup(func() {
		close(stop)
		<-done
	})
}

func TestCommit_NeverAheadOfPostgres(t *testing.T) {
	t.Parallel()
	b := setup(t, 3)
	b.cfg.BatchMaxRecords = 7
	b.watchCommits()
	b.start()
	for range 20 {
		for p := range int32(3) {
			b.pay(p, "anna", 10)
		}
	}
	b.hasBalance("anna", 600)
	for p := range int32(3) {
		b.isCommitted(p, 200)
	}
	b.lawful()
}

// TestCommit_HeldTransactionHoldsTheOffset: while the transaction waits, nothing is
// committed, however long.
func TestCommit_HeldTransactionHoldsTheOffset(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.pay(0, "anna", 1)
	w := b.start()
	b.isCommitted(0, 1)
	ahead := b.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Observe: true, Count: -1, When: func(req kmsg.Request) bool {
		return req.(*kmsg.OffsetCommitRequest).Topics[0].Partitions[0].Offset > 1
	}})
	held := b.lockProgress()
	b.pay(0, "anna", 1)
	w.notReadyFor(`partition 0 retries from offset 1`) // after the lock timeout
	if n := ahead.Hits(); n != 0 {
		t.Errorf("commits ahead of the transaction: got %d, want 0", n)
	}
	held.release()
	b.isCommitted(0, 2)
	w.ready()
}

func TestCommit_EachRefusalIsCountedAndGoesOn(t *testing.T) {
	t.Parallel()
	for _, code := range []*kerr.Error{kerr.RebalanceInProgress, kerr.IllegalGeneration, kerr.UnknownMemberID, kerr.CoordinatorNotAvailable, kerr.RequestTimedOut} {
		t.Run(code.Message, func(t *testing.T) {
			t.Parallel()
			b := setup(t, 1)
			w := b.start()
			b.pay(0, "anna", 1)
			b.isCommitted(0, 1)
			fault := b.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Err: code, Count: 3})
			b.pay(0, "anna", 1)
			b.hasBalance("anna", 2)
			if err := fault.Wait(t.Context(), 3); err != nil {
				t.Fatal(err)
			}
			b.pay(0, "anna", 1)
			b.hasBalance("anna", 3)
			b.isCommitted(0, 3)
			if w.Ready() != nil && w.err != nil {
				t.Errorf("the worker ended: %v", w.err)
			}
			b.lawful()
			if got := b.balance("anna"); got != 3 {
				t.Errorf("balance: got %d, want 3", got)
			}
		})
	}
}

// proxied returns a pool through a proxy.
func proxied(tb testing.TB, pool *pgxpool.Pool) (*pgxpool.Pool, *testkit.Proxy) {
	tb.Helper()
	cfg := pool.Config()
	proxy := testkit.NewProxy(tb, net.JoinHostPort(cfg.ConnConfig.Host, fmt.Sprint(cfg.ConnConfig.Port)))
	u := url.URL{Scheme: "postgres", User: url.UserPassword(cfg.ConnConfig.User, cfg.ConnConfig.Password), Host: proxy.Addr(), Path: cfg.ConnConfig.Database}
	through, err := pgxpool.New(context.Background(), u.String())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(through.Close)
	return through, proxy
}

func TestApply_LostAnswerOfCommitAppliesOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	through, proxy := proxied(t, b.pool)
	b.cfg.CheckInterval = soon
	w := b.start(func(d *Deps) { d.Pool = through })
	b.pay(0, "anna", 1)
	b.isCommitted(0, 1)
	for range 5 {
		cut := proxy.CutAfterForwardOf("commit")
		b.pay(0, "anna", 3)
		<-cut
	}
	b.hasBalance("anna", 16)
	b.isCommitted(0, 16)
	if got := w.records("applied") + w.records("duplicate"); got != 16 {
		t.Errorf("settled: got %v, want each record once", got)
	}
	b.lawful()
}

func TestWorker_PostgresAwayThenBack(t *testing.T) {
	t.Parallel()
	for name, hurt := range map[string]func(*testkit.Proxy){"reset": (*testkit.Proxy).Reset, "stalled": (*testkit.Proxy).Stall} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, 2)
			through, proxy := proxied(t, b.pool)
			w := b.start(func(d *Deps) {
				d.Pool = through
				d.Schema = through.Ping
			})
			b.pay(0, "anna", 2)
			b.isCommitted(0, 2)
			w.ready()
			hurt(proxy)
			b.pay(0, "anna", 3)
			b.pay(1, "anna", 3)
			if err := w.notReady(); err == nil {
				t.Error("ready without Postgres")
			}
			if got := b.committed(0); got != 2 {
				t.Errorf("committed while Postgres is away: got %d, want 2", got)
			}
			proxy.Pass()
			b.hasBalance("anna", 8)
			w.ready()
			b.isCommitted(0, 5)
			b.isCommitted(1, 3)
			b.lawful()
		})
	}
}

func TestWorker_StartsWhilePostgresIsAway(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	through, proxy := proxied(t, b.pool)
	proxy.Reset()
	b.pay(0, "anna", 2)
	w := b.start(func(d *Deps) {
		d.Pool = through
		d.Schema = through.Ping
	})
	if err := w.notReady(); err == nil {
		t.Error("ready without Postgres")
	}
	proxy.Pass()
	b.hasBalance("anna", 2)
	w.ready()
}

func TestWorker_BrokerAwayThenBack(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	addr := b.kafka.Brokers[0]
	proxy := testkit.NewProxy(t, addr)
	w := b.start(func(d *Deps) { d.Kafka.Brokers = []string{proxy.Addr()} }, b.dialThrough(proxy))
	b.pay(0, "anna", 2)
	b.isCommitted(0, 2)
	w.ready()
	proxy.Reset()
	b.pay(0, "anna", 3)
	// Whoever notices first says it: who asks for the coordinator, or who is a member.
	w.notReadyFor(`coordinator|join group`)
	proxy.Pass()
	b.hasBalance("anna", 5)
	b.isCommitted(0, 5)
	w.ready()
	b.lawful()
}

// dialThrough makes the worker reach the broker through proxy, whatever address the
// broker advertises.
func (b *bundle) dialThrough(proxy *testkit.Proxy) func(*Deps) {
	return func(*Deps) { b.extra = []kgo.Opt{kgo.Dialer(proxy.Dial)} }
}

func TestQueue_BadRecordAmongManyIsQuarantined(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.pay(0, "anna", 20)
	b.produce(
		b.record(0, "acme", "bad_mapping", told{Account: "anna", Amount: 1, Bad: true}),
		b.record(0, "acme", "bad_amount", told{Account: "anna", Amount: 0}),
		&kgo.Record{Topic: b.kafka.Topic, Key: []byte("k"), Value: []byte("not an event")},
		&kgo.Record{Topic: b.kafka.Topic, Key: []byte("k")},
	)
	b.pay(0, "anna", 20)
	w := b.start()
	b.hasBalance("anna", 40)
	b.isCommitted(0, 44)
	if got := w.records("quarantined"); got != 4 {
		t.Errorf("quarantined: got %v, want 4", got)
	}
	b.lawful()
}

func TestWorker_UnknownSourceWaitsAndOthersGoOn(t *testing.T) {
	t.Parallel()
	b := setup(t, 2)
	b.pay(0, "anna", 2)
	b.produce(b.record(0, "elsewhere", "evt_x", told{Account: "bert", Amount: 5}))
	b.pay(0, "anna", 2)
	w := b.start()
	b.hasBalance("anna", 2)
	b.isCommitted(0, 2)
	b.hasIncidents(0, "unknown_source/warning/2/3")
	b.pay(1, "anna", 3)
	b.hasBalance("anna", 5)
	w.ready() // waiting for a person is no illness
	b.elsewhere.Store(true)
	b.hasBalance("bert", 5)
	b.hasBalance("anna", 7)
	b.isCommitted(0, 5)
	b.hasIncidents(0, "unknown_source/warning/2/3")
}

func TestWorker_StoppedWhileFrozenWorkIsRolledBack(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.pay(0, "anna", 1)
	w := b.start()
	b.isCommitted(0, 1)
	held := b.lockProgress()
	b.pay(0, "anna", 1)
	testkit.Eventually(t, soon, func() error {
		if s := w.session.Load(); s == nil || s.queues.standings()[0].bytes == 0 {
			return errors.New("not read yet")
		}
		return nil
	})
	began := time.Now()
	w.halt()
	if took, most := time.Since(began), b.cfg.finishTimeout()+leaveTimeout; took > 2*most {
		t.Errorf("stopping took %s, want at most %s", took, most)
	}
	b.groupIsEmpty()
	held.release()
	if got := b.committed(0); got != 1 {
		t.Errorf("committed: got %d, want 1", got)
	}
	b.start()
	b.hasBalance("anna", 2)
	b.lawful()
}

func TestWorker_StaticMemberLeavesTheGroupEmpty(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.cfg.InstanceID = "worker-1"
	b.pay(0, "anna", 3)
	b.consumed(3)
	b.pay(0, "anna", 2)
	b.consumed(5)
}
