package bench

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"hookledger/internal/testkit"
)

const (
	shopToken = "shop-token-of-the-benchmark-0123456789"
	// payers are enough for callers to seldom meet in one.
	payers = 1000
)

func payer(n uint64) string { return fmt.Sprintf("a:%d", n%payers) }

// payee differs from payer, and no two callers go the same way round.
func payee(n uint64) string { return fmt.Sprintf("b:%d", (n*7+1)%payers) }

// measurePayments pays through the door, and by a bare transaction of the same two
// entries and two balances.
func measurePayments(b *bench) {
	url := b.database("ledger")
	exec1(b.tb, url, fmt.Sprintf(`insert into accounts (account_id, currency, balance, entry_count, updated_at)
		select p || n, 'EUR', 1000000000000, 1, now() from generate_series(0, %d) n, (values ('a:'), ('b:')) as v (p)`, payers-1))
	s := b.newSystem(testkit.Kafka(b.tb), "unused", url)
	addr := testkit.FreeAddr(b.tb)
	door := s.start("payments", "HOOKLEDGER_PAYMENTS_LISTEN="+addr)
	pool := openPool(b.tb, url, 8)
	callers := 32
	if b.tiny() {
		callers = 4
	}

	fresh := b.add(line{name: fmt.Sprintf("new payments, %d callers", callers), unit: "payments/s", floorName: "bare transaction, without HTTP and keys", want: least(0.6)})
	p99 := b.add(line{name: "new payments, p99", unit: "ms", floorName: "bare transaction, without HTTP and keys"})
	replay := b.add(line{name: "repeats of done keys", unit: "answers/s", floorName: "new payments", want: least(2)})
	known := uint64(0) // keys below are done
	pay := func(key func() uint64) func() (func() error, func(), error) {
		return func() (func() error, func(), error) {
			c, err := dial(addr)
			if err != nil {
				return nil, nil, err
			}
			return func() error { return c.pay(addr, key(), 201) }, c.close, nil
		}
	}
	var next, again atomic.Uint64
	b.alternate(
		func(rep int) {
			u := b.watch(door)
			l, err := load(callers, b.span/4, b.span, pay(func() uint64 { return next.Add(1) }))
			if err != nil {
				b.tb.Fatal(err)
			}
			own, postgres := u.per(max(l.done, 1))
			fresh.ours, p99.ours = append(fresh.ours, l.rate()), append(p99.ours, percentile(l.ms, 0.99))
			known = next.Load() - uint64(callers)
			r, err := load(callers, 0, b.span/2, pay(func() uint64 { return again.Add(1)%known + 1 }))
			if err != nil {
				b.tb.Fatal(err)
			}
			replay.ours, replay.floor = append(replay.ours, r.rate()), append(replay.floor, l.rate())
			fresh.note = fmt.Sprintf("µs/payment: door %.0f, Postgres %.0f", own, postgres)
		},
		func(int) {
			l, err := load(callers, b.span/4, b.span, func() (func() error, func(), error) {
				return func() error { return bareTransfer(b.tb.Context(), pool, numbers.Add(1)) }, func() {}, nil
			})
			if err != nil {
				b.tb.Fatal(err)
			}
			fresh.floor, p99.floor = append(fresh.floor, l.rate()), append(p99.floor, percentile(l.ms, 0.99))
		},
	)
	b.say("new %s, bare %s, repeats %s a second", figure(median(fresh.ours)), figure(median(fresh.floor)), figure(median(replay.ours)))
	b.crowd(addr, url)
}

// crowd has 300 callers come at once, with one key and with a key each.
func (b *bench) crowd(addr, url string) {
	size, rounds := 300, 10*b.reps
	if b.tiny() {
		size, rounds = 10, 2
	}
	callers := make([]*caller, size)
	for i := range callers {
		c, err := dial(addr)
		if err != nil {
			b.tb.Fatal(err)
		}
		defer c.close()
		callers[i] = c
	}
	conn := connect(b.tb, url)
	defer func() { _ = conn.Close(context.Background()) }()
	connections := 0
	l := b.add(line{name: fmt.Sprintf("%d callers on one key, p99", size), unit: "ms", floorName: fmt.Sprintf("%d callers with a key each", size)})
	number := uint64(1) << 40
	for range b.reps {
		var one, each []float64
		paid, busy := 0, 0
		for round := range rounds / b.reps {
			for _, distinct := range []bool{false, true} {
				number += uint64(size)
				var wg sync.WaitGroup
				var mu sync.Mutex
				for i, c := range callers {
					key := number
					if distinct {
						key += uint64(i)
					}
					wg.Go(func() {
						begin := time.Now()
						status, err := c.payStatus(addr, key)
						ms := float64(time.Since(begin)) / float64(time.Millisecond)
						mu.Lock()
						defer mu.Unlock()
						switch {
						case err != nil || status != 201 && (distinct || status != 409):
							b.tb.Errorf("round %d, distinct %v: answered %d, %v", round, distinct, status, err)
						case distinct:
							each = append(each, ms)
						default:
							one = append(one, ms)
							if status == 201 {
								paid++
							} else {
								busy++
							}
						}
					})
				}
				wg.Wait()
				var n int
				if err := conn.QueryRow(b.tb.Context(), `select count(*) from pg_stat_activity where datname = current_database() and application_name <> '' or usename is not null and datname = current_database()`).Scan(&n); err != nil {
					b.tb.Fatal(err)
				}
				connections = max(connections, n)
			}
		}
		l.ours, l.floor = append(l.ours, percentile(one, 0.99)), append(l.floor, percentile(each, 0.99))
		l.note = fmt.Sprintf("on one key 201 %d times, 409 %d times, nothing else; %d connections to Postgres at most, the benchmark's own among them", paid, busy, connections)
	}
	b.say("%s: %s and %s ms", l.name, figure(median(l.ours)), figure(median(l.floor)))
}

// pay posts payment n under key n.
func (c *caller) pay(host string, n uint64, want int) error {
	status, err := c.payStatus(host, n)
	if err == nil && status != want {
		err = fmt.Errorf("payment %d was answered %d", n, status)
	}
	return err
}

func (c *caller) payStatus(host string, n uint64) (int, error) {
	text := fmt.Appendf(nil, `{"from":%q,"to":%q,"amount":1,"currency":"EUR","reference":"order %d"}`, payer(n), payee(n), n)
	return c.post(fmt.Sprintf("POST /v1/payments HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\nIdempotency-Key: key-%d\r\n", host, shopToken, n), text)
}

// bareTransfer is what one writes without the door: begin, two entries, two balances in
// one order, commit. It knows no keys, keeps no payment and does not look whether there
// is enough.
func bareTransfer(ctx context.Context, pool *pgxpool.Pool, n uint64) error {
	var id [16]byte
	_, _ = rand.Read(id[:])
	from, to := payer(n), payee(n)
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `
			insert into ledger_entries (applied_at, effect_key, payment_id, line, account_id, contra, currency, amount, rule, movement_id)
			values (now(), gen_random_uuid(), $1, 0, $2, $3, 'EUR', -1, 'payment', 'bare'), (now(), gen_random_uuid(), $1, 1, $3, $2, 'EUR', 1, 'payment', 'bare')`,
			id, from, to); err != nil {
			return err
		}
		for _, leg := range []struct {
			account string
			amount  int64
		}{{from, -1}, {to, 1}} { // a: before b:
			if _, err := tx.Exec(ctx, `
				insert into accounts as a (balance, entry_count, updated_at, account_id, currency) values ($2, 1, now(), $1, 'EUR')
				    on conflict (account_id, currency) do update
				   set balance = a.balance + excluded.balance, entry_count = a.entry_count + 1, updated_at = now()`,
				leg.account, leg.amount); err != nil {
				return err
			}
		}
		return nil
	})
}
