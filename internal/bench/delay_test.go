package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/testkit"
)

// measureDelay measures from "the body was read" to "the commit is seen by another
// connection", beside one acknowledged record and one commit after it.
func measureDelay(b *bench) {
	kafka := testkit.Kafka(b.tb)
	s := b.newSystem(kafka, b.newTopic(kafka), b.database("ledger"))
	_, addr := s.startIngest()
	s.start("consume")
	pool := openPool(b.tb, s.database, 4)
	f := &produceAndCommit{b: b, topic: b.newTopic(kafka), pool: openPool(b.tb, b.database("bare"), 32),
		client: b.client(kafka, kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProducerLinger(0))}

	const beside = "one acks=all produce + one commit"
	for _, c := range []struct {
		name string
		rate float64 // beside the delivery that is watched
	}{{"idle", 0}, {"500 a second", 500}} {
		p50 := b.add(line{name: c.name + ", median", unit: "ms", floorName: beside, want: most(1.5)})
		p99 := b.add(line{name: c.name + ", p99", unit: "ms", floorName: beside, want: most(5)})
		side := func(rate float64, one func() (float64, error), background func() error, p50s, p99s *[]float64) {
			ms, err := b.sample(rate, one, background)
			if err != nil {
				b.tb.Fatal(err)
			}
			*p50s, *p99s = append(*p50s, percentile(ms, 0.5)), append(*p99s, percentile(ms, 0.99))
		}
		probe, err := dialWebhook(addr)
		if err != nil {
			b.tb.Fatal(err)
		}
		senders := newSenders(b, addr, 16)
		b.alternate(
			func(int) {
				side(c.rate, func() (float64, error) { return watched(b.tb.Context(), probe, pool) }, senders.send, &p50.ours, &p99.ours)
			},
			func(int) { side(c.rate, f.timed, f.once, &p50.floor, &p99.floor) },
		)
		probe.close()
		senders.close()
		b.say("%s: median %s and %s ms, p99 %s and %s ms", c.name, figure(median(p50.ours)), figure(median(p50.floor)), figure(median(p99.ours)), figure(median(p99.floor)))
	}
}

// sample times one thing after the other for a while, with a rate of the same going on
// beside it.
func (b *bench) sample(rate float64, one func() (float64, error), background func() error) ([]float64, error) {
	ctx, stop := context.WithCancel(b.tb.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	failed := make(chan error, 1)
	if rate > 0 {
		all.Go(func() {
			tick := time.NewTicker(time.Duration(float64(time.Second) / rate))
			defer tick.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
				all.Go(func() {
					if err := background(); err != nil && ctx.Err() == nil {
						select {
						case failed <- err:
						default:
						}
					}
				})
			}
		})
	}
	var ms []float64
	begin := time.Now()
	for time.Since(begin) < 2*b.span || len(ms) < 5 {
		select {
		case err := <-failed:
			return nil, err
		default:
		}
		x, err := one()
		if err != nil {
			return nil, err
		}
		ms = append(ms, x)
		<-time.After(5 * time.Millisecond) // idle between two
	}
	return ms, nil
}

// lookEvery is the pause before each look for a commit, so that the figure of our side is
// half of it too high at most. Looking at 200 µs took so much of two cores from what is
// measured that the median at 500 a second was 8 ms instead of 3.
const lookEvery = 500 * time.Microsecond

// watched posts one event and looks until its commit is seen.
func watched(ctx context.Context, w *webhook, pool *pgxpool.Pool) (float64, error) {
	n := numbers.Add(1)
	if err := w.send(n); err != nil {
		return 0, err
	}
	for begin := time.Now(); time.Since(begin) < time.Minute; {
		<-time.After(lookEvery)
		var received time.Time
		err := pool.QueryRow(ctx, `select received_at from processed_events where event_key = $1`, keyOf(n)).Scan(&received)
		seen := time.Now()
		if err == nil {
			return float64(seen.Sub(received)) / float64(time.Millisecond), nil
		}
		if !errors.Is(err, pgx.ErrNoRows) {
			return 0, err
		}
	}
	return 0, fmt.Errorf("event %d was not applied within a minute", n)
}

// senders keep connections for deliveries at a rate.
type senders struct {
	b    *bench
	addr string
	idle chan *webhook
}

func newSenders(b *bench, addr string, n int) *senders {
	b.tb.Helper()
	s := &senders{b: b, addr: addr, idle: make(chan *webhook, n)}
	for range n {
		w, err := dialWebhook(addr)
		if err != nil {
			b.tb.Fatal(err)
		}
		s.idle <- w
	}
	return s
}

func (s *senders) send() error {
	w := <-s.idle
	defer func() { s.idle <- w }()
	return w.send(numbers.Add(1))
}

func (s *senders) close() {
	for range cap(s.idle) {
		(<-s.idle).close()
	}
}

// produceAndCommit is the least that keeps an event twice: acknowledged by the brokers,
// and committed by Postgres as an event with its entry and its balance.
type produceAndCommit struct {
	b      *bench
	topic  string
	client *kgo.Client
	pool   *pgxpool.Pool
}

func (f *produceAndCommit) once() error {
	ctx := f.b.tb.Context()
	n := numbers.Add(1)
	r := newRecord(f.topic, n, uniform, time.Now())
	if err := f.client.ProduceSync(ctx, r).FirstErr(); err != nil {
		return err
	}
	_, err := f.pool.Exec(ctx, bareOne, r.Offset, r.Timestamp, r.Partition, eventID(n), fmt.Sprint("acct_", uniform(n)))
	return err
}

func (f *produceAndCommit) timed() (float64, error) {
	begin := time.Now()
	err := f.once()
	return float64(time.Since(begin)) / float64(time.Millisecond), err
}

// bareOne applies one event in one statement, which is its own transaction.
const bareOne = `
with fresh as (
	insert into bare_events (partition_offset, received_at, occurred_at, partition, body_sha256, event_id, type)
	values ($1, $2, $2, $3, '\x00', $4, 'payment_intent.succeeded') on conflict do nothing returning event_id),
entry as (
	insert into bare_entries (amount, event_id, account_id, currency, movement_id) select 5000, event_id, $5, 'USD', event_id from fresh returning account_id)
insert into bare_accounts as a (account_id, currency, balance, entry_count) select account_id, 'USD', 5000, 1 from entry
    on conflict (account_id, currency) do update set balance = a.balance + 5000, entry_count = a.entry_count + 1`
