package payments

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"hookledger/internal/testkit"
	"hookledger/migrations"
)

const (
	shopToken  = "shop-token-0123456789"
	otherToken = "other-token-0123456789"
)

func testConfig() Config {
	c := DefaultConfig()
	c.Listen = "127.0.0.1:0"
	c.Durability = Single
	c.Rate = Rate{PerSecond: 1e6, Burst: 1_000_000}
	c.Tokens = []Token{
		{Client: "shop", Value: shopToken, From: []string{"shop:*", "a:*"}},
		{Client: "other", Value: otherToken},
	}
	return c
}

// bundle is a door on a database of its own.
type bundle struct {
	tb  testing.TB
	url string
	// pool is the test's own, a superuser's.
	pool   *pgxpool.Pool
	server *Server
	reg    *prometheus.Registry
	base   string
	stop   func() error
}

func setup(tb testing.TB, change ...func(*Config)) *bundle {
	tb.Helper()
	return setupOn(tb, testkit.LedgerURL(tb), change...)
}

func setupOn(tb testing.TB, url string, change ...func(*Config)) *bundle {
	tb.Helper()
	b := &bundle{tb: tb, url: url, pool: openPool(tb, url, 8)}
	b.start(change...)
	return b
}

func openPool(tb testing.TB, url string, most int) *pgxpool.Pool {
	tb.Helper()
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		tb.Fatal(err)
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), PoolConfig(cfg, most))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(pool.Close)
	return pool
}

// start starts a server; several may serve one database.
func (b *bundle) start(change ...func(*Config)) {
	b.tb.Helper()
	c := testConfig()
	for _, f := range change {
		f(&c)
	}
	b.startWith(c, openPool(b.tb, b.url, 0))
}

func (b *bundle) startWith(c Config, pool *pgxpool.Pool) {
	b.tb.Helper()
	b.reg = prometheus.NewRegistry()
	s, err := NewServer(Deps{Config: c, Pool: pool, Registerer: b.reg, Log: testLog(b.tb)})
	if err != nil {
		b.tb.Fatal(err)
	}
	b.server, b.base = s, "http://"+s.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	b.stop = sync.OnceValue(func() error { cancel(); return <-done })
	b.tb.Cleanup(func() {
		if err := b.stop(); err != nil {
			b.tb.Errorf("run: %v", err)
		}
	})
	testkit.Eventually(b.tb, time.Minute, s.Ready)
}

func testLog(tb testing.TB) zerolog.Logger {
	if os.Getenv("HOOKLEDGER_TEST_LOG") == "" {
		return zerolog.Nop()
	}
	return zerolog.New(zerolog.NewTestWriter(tb))
}

// client keeps its connections: 50 callers at once otherwise run out of ports.
var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 400, MaxIdleConns: 400}}

// reply is an answer of the door.
type reply struct {
	code   int
	header http.Header
	body   []byte
}

func (r reply) problem() string {
	var p struct{ Type string }
	_ = json.Unmarshal(r.body, &p)
	return strings.TrimPrefix(p.Type, problemPrefix)
}

func (r reply) String() string { return fmt.Sprintf("%d %s", r.code, r.body) }

// post posts a payment and fails the test if no answer comes.
func (b *bundle) post(key, body string) reply {
	b.tb.Helper()
	r, err := postTo(b.base, shopToken, key, body)
	if err != nil {
		b.tb.Fatal(err)
	}
	return r
}

func postTo(base, token, key, body string) (reply, error) {
	req, err := http.NewRequest(http.MethodPost, base+"/v1/payments", strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return do(req)
}

func do(req *http.Request) (reply, error) {
	resp, err := client.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, body}, err
}

func (b *bundle) get(path, token string) reply {
	b.tb.Helper()
	req, err := http.NewRequest(http.MethodGet, b.base+path, http.NoBody)
	if err != nil {
		b.tb.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	r, err := do(req)
	if err != nil {
		b.tb.Fatal(err)
	}
	return r
}

func payment(from, to string, amount int64) string {
	return fmt.Sprintf(`{"from":%q,"to":%q,"amount":%d,"currency":"EUR","reference":"r"}`, from, to, amount)
}

// fund gives an account a balance, with the entry of an event behind it.
func (b *bundle) fund(account string, amount int64) {
	b.tb.Helper()
	fund(b.tb, b.pool, account, amount)
}

func fund(tb testing.TB, pool *pgxpool.Pool, account string, amount int64) {
	tb.Helper()
	_, err := pool.Exec(context.Background(), `
		with e as (
			insert into ledger_entries (amount, applied_at, effect_key, event_key, line, currency, account_id, source, event_id, contra, rule, movement_id)
			values ($2, now(), gen_random_uuid(), gen_random_uuid(), 0, 'EUR', $1, 'test', 'fund', 'external:test', 'fund', 'fund'))
		insert into accounts as a (balance, entry_count, updated_at, account_id, currency) values ($2, 1, now(), $1, 'EUR')
		    on conflict (account_id, currency) do update set balance = a.balance + excluded.balance, entry_count = a.entry_count + 1`, account, amount)
	if err != nil {
		tb.Fatal(err)
	}
}

// query1 returns the first column of the first row as T.
func query1[T any](tb testing.TB, pool *pgxpool.Pool, sql string, args ...any) T {
	tb.Helper()
	var v T
	if err := pool.QueryRow(context.Background(), sql, args...).Scan(&v); err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
	return v
}

func (b *bundle) exec(sql string, args ...any) {
	b.tb.Helper()
	if _, err := b.pool.Exec(context.Background(), sql, args...); err != nil {
		b.tb.Fatalf("%s: %v", sql, err)
	}
}

func (b *bundle) balance(account string) int64 {
	b.tb.Helper()
	return query1[int64](b.tb, b.pool, `select coalesce(sum(balance), 0)::bigint from accounts where account_id = $1`, account)
}

func (b *bundle) payments() int64 {
	b.tb.Helper()
	return query1[int64](b.tb, b.pool, `select count(*) from payments`)
}

// lawful checks the laws that hold after every transaction.
func (b *bundle) lawful() {
	b.tb.Helper()
	lawful(b.tb, b.pool)
}

func lawful(tb testing.TB, pool *pgxpool.Pool) {
	tb.Helper()
	lawfulLedger(tb, pool)
	expectNone(tb, pool, map[string]string{
		"a stored success has its payment, and a payment its stored success": `
			select count(*) from
			  (select client, key, convert_from(response_body, 'UTF8')::jsonb ->> 'payment_id' as id
			     from idempotency_keys where response_code = 201) k
			  full join payments p on p.payment_id::text = k.id and p.client = k.client and p.idempotency_key = k.key
			 where k.id is null or p.payment_id is null`,
		"a key has one payment": `
			select count(*) from (select 1 from payments group by client, idempotency_key having count(*) > 1) x`,
	})
}

// lawfulLedger checks the laws that hold also when keys were used again after they
// expired.
func lawfulLedger(tb testing.TB, pool *pgxpool.Pool) {
	tb.Helper()
	expectNone(tb, pool, map[string]string{
		"balance is the sum of the entries": `
			select count(*) from accounts a full join
			  (select account_id, currency, sum(amount) s, count(*) n from ledger_entries group by 1, 2) e using (account_id, currency)
			 where a.balance is distinct from e.s or a.entry_count is distinct from e.n`,
		"a payment has two entries with the sum 0, and as it says": `
			select count(*) from payments p
			 where (select array_agg((account_id, contra, amount, currency, line)::text order by line) from ledger_entries e where e.payment_id = p.payment_id)
			       is distinct from array[(p.from_account, p.to_account, -p.amount, p.currency, 0)::text,
			                              (p.to_account, p.from_account, p.amount, p.currency, 1)::text]`,
		"entries of a payment have a payment": `
			select count(*) from ledger_entries e
			 where payment_id is not null and not exists (select from payments p where p.payment_id = e.payment_id)`,
	})
}

func expectNone(tb testing.TB, pool *pgxpool.Pool, laws map[string]string) {
	tb.Helper()
	for name, sql := range laws {
		if n := query1[int64](tb, pool, sql); n != 0 {
			tb.Errorf("law broken: %s: %d violations", name, n)
		}
	}
}

// each calls f n times at once and waits for all.
func each(n int, f func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() { <-start; f(i) })
	}
	close(start)
	wg.Wait()
}

// oneOutcome checks what callers of one key were told: 201 and 409 alone, every 201
// byte by byte the same. It returns how many were 201.
func oneOutcome(replies []reply) (int, error) {
	var first []byte
	n := 0
	for _, r := range replies {
		switch {
		case r.code == http.StatusConflict:
			if r.header.Get("Retry-After") == "" {
				return n, errors.New("409 without Retry-After")
			}
		case r.code != http.StatusCreated:
			return n, fmt.Errorf("answered %s", r)
		case first == nil:
			first, n = r.body, 1
		case !bytes.Equal(first, r.body):
			return n, fmt.Errorf("two answers: %s and %s", first, r.body)
		default:
			n++
		}
	}
	return n, nil
}

func migrate(tb testing.TB, url string) {
	tb.Helper()
	if err := migrations.Up(context.Background(), url); err != nil {
		tb.Fatal(err)
	}
}

// counter reads a counter or gauge, summed over the series whose label has the value.
func counter(tb testing.TB, reg *prometheus.Registry, name, label, value string) float64 {
	tb.Helper()
	families, err := reg.Gather()
	if err != nil {
		tb.Fatal(err)
	}
	var sum float64
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			match := label == ""
			for _, l := range m.GetLabel() {
				match = match || l.GetName() == label && l.GetValue() == value
			}
			if match {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}
