package payments

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"hookledger/internal/ledger/commit"
	"hookledger/internal/testkit"
	"hookledger/internal/testkit/standby"
	"hookledger/migrations"
)

func newServer(t *testing.T, c Config, pool *pgxpool.Pool, schema func(context.Context) error) *Server {
	t.Helper()
	s, err := NewServer(Deps{Config: c, Pool: pool, Schema: schema, Registerer: prometheus.NewRegistry(), Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestRun_RefusesAPrimaryWithoutStandby(t *testing.T) {
	t.Parallel()
	c := testConfig()
	c.Durability = Replicated
	c.Tokens = []Token{{Client: "shop", File: tokenFile(t)}}
	s := newServer(t, c, openPool(t, testkit.LedgerURL(t), 4), nil)
	if err := s.Run(t.Context()); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "payments.durability: single") {
		t.Errorf("got %v, want ErrRefused with what mends it", err)
	}
}

// With a standby that commits wait for, payments are taken as configured for production.
func TestRun_TakesPaymentsWithAStandby(t *testing.T) {
	t.Parallel()
	cluster := testkit.NewPostgres(t)
	url := cluster.URL("postgres")
	migrate(t, url)
	b := &bundle{tb: t, url: url, pool: openPool(t, url, 4)}
	b.fund("shop:1", 100)
	standby.Attach(t, url, "one")
	b.exec(`alter system set synchronous_standby_names = 'one'`)
	b.exec(`select pg_reload_conf()`)
	testkit.Eventually(t, time.Minute, func() error {
		if state := query1[string](t, b.pool, `select coalesce(max(sync_state), 'none') from pg_stat_replication`); state != "sync" {
			return fmt.Errorf("the standby is %s", state)
		}
		return nil
	})
	c := testConfig()
	c.Durability, c.Tokens = Replicated, []Token{{Client: "shop", File: tokenFile(t), From: []string{"shop:*"}}}
	b.startWith(c, openPool(t, url, 4))
	for i := range 3 {
		if r := b.post(fmt.Sprint("k", i), payment("shop:1", "x", 1)); r.code != 201 {
			t.Errorf("got %s, want 201", r)
		}
	}
	b.lawful()
}

// tokenFile is a file that holds shopToken.
func tokenFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(shopToken), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRun_RefusesAnotherSchema(t *testing.T) {
	t.Parallel()
	pool := openPool(t, testkit.PostgresURL(t), 4)
	s := newServer(t, testConfig(), pool, func(ctx context.Context) error { return migrations.Check(ctx, pool) })
	if err := s.Run(t.Context()); !errors.Is(err, migrations.ErrSchemaOlder) {
		t.Errorf("got %v, want ErrSchemaOlder", err)
	}
}

// A COMMIT that waits for its standby is not cancelled when the request gives up: then
// it would count as committed on one machine, and a repeat would be told so.
func TestCommit_WaitingForTheStandbyIsNotCancelled(t *testing.T) {
	t.Parallel()
	cluster := testkit.NewPostgres(t)
	url := cluster.URL("postgres")
	migrate(t, url)
	b := &bundle{tb: t, url: url, pool: openPool(t, url, 4)}
	b.fund("shop:1", 100)
	c := testConfig()
	c.AnswerTimeout, c.ClaimTTL = 300*time.Millisecond, 1200*time.Millisecond
	b.startWith(c, openPool(t, url, 3))
	// From here on COMMIT waits for a standby that does not exist.
	standby.Want(t, url, "nowhere")
	body := payment("shop:1", "x", 1)
	if r := b.post("k", body); r.code != 503 || r.problem() != "unknown-outcome" {
		t.Fatalf("got %s, want 503 unknown-outcome", r)
	}
	began := time.Now()
	for time.Since(began) < 2*c.ClaimTTL { // beyond the statement timeout and the TTL
		if r := b.post("k", body); r.code != 409 && r.code != 503 {
			t.Fatalf("got %s, want 409 or 503: no standby has it", r)
		}
	}
	if n := b.payments(); n != 0 {
		t.Errorf("%d payments can be seen that no standby has", n)
	}
	standby.Want(t, url, "")
	if r := untilPaid(t, b.base, "k", body); r.header.Get("Idempotent-Replayed") != "true" || b.payments() != 1 {
		t.Errorf("got %s and %d payments, want a replay of the one", r, b.payments())
	}
	b.lawful()
}

// Postgres is killed and started again under load. What was answered 201 is there, and
// every key ends with one payment.
func TestPostgres_KilledAndRestarted(t *testing.T) {
	t.Parallel()
	cluster := testkit.NewPostgres(t, "fsync=on", "synchronous_commit=on", "full_page_writes=on")
	url := cluster.URL("postgres")
	migrate(t, url)
	b := &bundle{tb: t, url: url, pool: openPool(t, url, 4)}
	b.fund("shop:1", 1_000_000)
	c := testConfig()
	c.ClaimTTL = 2 * time.Second
	b.startWith(c, openPool(t, url, 8))

	stop := make(chan struct{})
	var load sync.WaitGroup
	var mu sync.Mutex
	answered := map[string]string{}
	var sent atomic.Int64
	for i := range 8 {
		load.Go(func() { // ends with stop
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				key := fmt.Sprint(i, "-", n)
				sent.Add(1)
				r, err := postTo(b.base, shopToken, key, payment("shop:1", "x", 1))
				mu.Lock()
				switch {
				case err != nil:
					t.Errorf("got %v: the door does not go away with Postgres", err)
				case r.code == 201:
					answered[key] = string(r.body)
				case r.code != 503:
					t.Errorf("got %s, want 201 or 503", r)
				default:
					answered[key] = ""
				}
				mu.Unlock()
				for r.code == 503 && b.server.Ready() != nil {
					select { // a few keys that were refused are enough
					case <-time.After(20 * time.Millisecond):
					case <-stop:
						return
					}
				}
			}
		})
	}
	for range 2 {
		before := sent.Load()
		testkit.Eventually(t, time.Minute, func() error {
			if sent.Load() < before+100 {
				return errors.New("the load does not move")
			}
			return nil
		})
		cluster.Kill()
		if r := b.post("down", payment("shop:1", "x", 1)); r.code != 503 || r.header.Get("Retry-After") == "" {
			t.Errorf("without Postgres: got %s, want 503 with Retry-After", r)
		}
		cluster.Start()
		testkit.Eventually(t, time.Minute, b.server.Ready)
	}
	close(stop)
	load.Wait()
	asked := 0
	for key, body := range answered {
		if body != "" && asked > 50 {
			continue // the law below covers them
		}
		asked++
		r := untilPaid(t, b.base, key, payment("shop:1", "x", 1))
		if body != "" && string(r.body) != body {
			t.Errorf("key %s: got %s, want %s", key, r.body, body)
		}
		answered[key] = string(r.body)
	}
	for key, body := range answered {
		if n := query1[int](t, b.pool, `select count(*) from idempotency_keys where key = $1 and response_body = convert_to($2, 'UTF8')`, key, body); n != 1 {
			t.Errorf("key %s: what was answered is not what is kept", key)
		}
	}
	b.lawful()
}

// The role of the migration is enough, and cannot do more.
func TestRole_IsEnough(t *testing.T) {
	t.Parallel()
	url := testkit.LedgerURL(t)
	b := &bundle{tb: t, url: url, pool: openPool(t, url, 4)}
	cfg, err := pgxpool.ParseConfig(testkit.RoleURL(t, url, "hookledger_payments"))
	if err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), PoolConfig(cfg, 4))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	b.startWith(testConfig(), pool)
	b.fund("shop:1", 10)
	for key, want := range map[string]int{"a": 201, "b": 402} {
		if r := b.post(key, payment("shop:1", "x", 6)); r.code != want && r.code != 402+201-want {
			t.Errorf("got %s", r)
		}
	}
	abandon(t, b, "old", payment("shop:1", "x", 1), "1 hour")
	if r := b.post("old", payment("shop:1", "x", 1)); r.code != 201 {
		t.Errorf("takeover: got %s, want 201", r)
	}
	if _, err := (&cleaner{door: b.server.door}).batch(t.Context()); err != nil {
		t.Error(err)
	}
	if err := b.server.watch.count(t.Context()); err != nil {
		t.Error(err)
	}
	for _, sql := range []string{
		`delete from ledger_entries`, `update ledger_entries set amount = 1`, `delete from payments`, `update payments set amount = 1`,
		`delete from accounts`, `select * from processed_events`, `insert into incidents (raised_at, severity, kind) values (now(), 'info', 'x')`,
	} {
		if _, err := pool.Exec(t.Context(), sql); err == nil {
			t.Errorf("%s: got no error, want it forbidden", sql)
		}
	}
	b.lawful()
}

func TestPool_SendsNoCancelRequest(t *testing.T) {
	t.Parallel()
	conn, err := openPool(t, testkit.PostgresURL(t), 1).Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if err := conn.Conn().PgConn().CancelRequest(t.Context()); !errors.Is(err, commit.ErrNoCancel) {
		t.Errorf("got %v, want ErrNoCancel", err)
	}
}

// A database whose default level is above READ COMMITTED costs retries and nothing else.
func TestPay_WhateverTheDefaultIsolation(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"repeatable read", "serializable"} {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			url := testkit.LedgerURL(t)
			b := &bundle{tb: t, url: url, pool: openPool(t, url, 4)}
			b.exec(`do $$ begin execute format('alter database %I set default_transaction_isolation = "` + level + `"', current_database()); end $$`)
			b.startWith(testConfig(), openPool(t, url, 8))
			b.fund("shop:1", 10)
			for round := range 12 {
				key, body := fmt.Sprint("k", round), payment("shop:1", "x", 1)
				if round%2 == 1 {
					abandon(t, b, key, body, "1 hour")
				}
				replies := make([]reply, 30)
				each(len(replies), func(i int) { replies[i], _ = postTo(b.base, shopToken, key, body) })
				if round >= 10 {
					for _, r := range replies {
						if r.code != 402 && r.code != 409 {
							t.Errorf("round %d: got %s, want 402 or 409", round, r)
						}
					}
				} else if n, err := oneOutcome(replies); err != nil || n < 1 {
					t.Errorf("round %d: %d answered 201: %v", round, n, err)
				}
			}
			if b.balance("shop:1") != 0 || b.payments() != 10 {
				t.Errorf("got %d left and %d payments, want 0 and 10", b.balance("shop:1"), b.payments())
			}
			b.lawful()
		})
	}
}
