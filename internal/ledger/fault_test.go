package ledger

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"hookledger/internal/testkit"
	"hookledger/schema"
)

// open returns a pool on url, changed by change, that is closed after the test.
func open(tb testing.TB, url string, change func(*pgxpool.Config)) *pgxpool.Pool {
	tb.Helper()
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		tb.Fatal(err)
	}
	if change != nil {
		change(cfg)
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(pool.Close)
	return pool
}

// The connection is cut after the server has read COMMIT: nobody knows its outcome,
// and the same batch again comes out right.
func TestApply_CommitAnswerLost(t *testing.T) {
	t.Parallel()
	url := testkit.LedgerURL(t)
	direct := open(t, url, nil)
	target := fmt.Sprintf("%s:%d", direct.Config().ConnConfig.Host, direct.Config().ConnConfig.Port)
	proxy := testkit.NewProxy(t, target)
	b := setupOn(t, open(t, url, func(c *pgxpool.Config) {
		c.ConnConfig.DialFunc = proxy.Dial
		c.ConnConfig.LookupFunc = func(context.Context, string) ([]string, error) { return []string{"127.0.0.1"}, nil }
		c.ConnConfig.TLSConfig = nil
	}))
	lost, held := 0, 0
	for i := range 50 {
		batch := b.batch(0, paid(t, fmt.Sprintf("a%d", i), "alice", 3), paid(t, fmt.Sprintf("b%d", i), fmt.Sprintf("acc%d", i), 4))
		cut := proxy.CutAfterForwardOf("commit\x00")
		c, err := b.ledger.Apply(t.Context(), batch)
		if err == nil {
			t.Fatalf("round %d: the answer of COMMIT was cut, and Apply knows it: %+v", i, c)
		}
		if c.Next() != batch.Start || c.Records() != 0 {
			t.Fatalf("round %d: got next %d and %d records on an unknown outcome", i, c.Next(), c.Records())
		}
		<-cut
		lost++
		// On a new connection, against a server that may still be committing.
		c = b.applyBatch(batch)
		if c.Count(Duplicate) == 2 {
			held++
		} else {
			b.outcomes(c, map[Outcome]int64{Applied: 2})
		}
	}
	t.Logf("%d answers lost, of which %d had committed", lost, held)
	b = setupOn(t, direct)
	if got := b.balance("alice"); got != 150 {
		t.Errorf("balance: got %d, want 150", got)
	}
	b.lawful()
}

// The backend dies at each statement in turn. Nothing is visible, and the same batch
// again is applied.
func TestApply_BackendKilledAtEachStatement(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	b.apply(paid(t, "stored", "alice", 1), event(t, "ignored", body{}),
		event(t, "known", body{LatestWins: true, Status: status("p", "one", testNow, 0)}),
		event(t, "moved", body{Postings: []schema.Posting{pays("alice", 5, "shared")}}))
	events := []schema.Event{
		paid(t, "new", "alice", 2), paid(t, "ignored", "bob", 3), paid(t, "stored", "alice", 99),
		event(t, "known", body{LatestWins: true, Status: status("p", "two", testNow.Add(time.Second), 0)}),
		event(t, "same", body{Postings: []schema.Posting{pays("alice", 5, "shared")}}),
		event(t, "bad", body{Bad: schema.ReasonBadAmount}),
	}
	// A trigger on each table, in the order of the statements, ends its own backend.
	for _, table := range []string{"processed_events_0", "ledger_entries", "quarantined_events", "event_conflicts", "accounts", "payment_states", "consumer_progress"} {
		for _, sql := range []string{
			`create or replace function die() returns trigger language plpgsql as 'begin perform pg_terminate_backend(pg_backend_pid()); return new; end'`,
			`create trigger die before insert or update on ` + table + ` for each row execute function die()`,
		} {
			if _, err := b.pool.Exec(ctx, sql); err != nil {
				t.Fatal(err)
			}
		}
		before := fingerprint(t, b.pool)
		batch := b.batch(0, events...)
		c, err := b.ledger.Apply(ctx, batch)
		if err == nil || c.Next() != batch.Start {
			t.Fatalf("%s: got next %d and error %v, want none and an error", table, c.Next(), err)
		}
		if _, ok := isDataError(err); ok {
			t.Errorf("%s: a dead backend counts as bad data: %v", table, err)
		}
		if _, err := b.pool.Exec(ctx, `drop trigger die on `+table); err != nil {
			t.Fatal(err)
		}
		if after := fingerprint(t, b.pool); after != before {
			t.Errorf("%s: something of a failed transaction is visible", table)
		}
	}
	b.outcomes(b.apply(events...), map[Outcome]int64{Applied: 2, Conflict: 1, Ignored: 1, SameEffect: 1, Quarantined: 1})
	b.lawful()
}

// fingerprint is a hash over everything the ledger holds.
func fingerprint(tb testing.TB, pool *pgxpool.Pool) string {
	tb.Helper()
	return query1[string](tb, pool, `select md5(concat(
		(select string_agg(t::text, ';' order by event_key) from processed_events t),
		(select string_agg(t::text, ';' order by effect_key) from ledger_entries t),
		(select string_agg(t::text, ';' order by account_id, currency) from accounts t),
		(select string_agg(t::text, ';' order by source, object) from payment_states t),
		(select string_agg(t::text, ';' order by id) from quarantined_events t),
		(select string_agg(t::text, ';' order by event_key, body_sha256) from event_conflicts t),
		(select string_agg(t::text, ';' order by partition) from consumer_progress t)))`)
}

func TestApply_LockTimeoutIsRetried(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	b.apply(paid(t, "evt_1", "alice", 1))
	b.ledger = New(b.pool, mapBody, Options{LockTimeout: 50 * time.Millisecond})
	tx, err := b.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, `select from accounts where account_id = 'alice' for update`); err != nil {
		t.Fatal(err)
	}
	batch := b.batch(0, paid(t, "evt_2", "alice", 1))
	if c, err := b.ledger.Apply(ctx, batch); err == nil || c.Next() != batch.Start {
		t.Fatalf("got next %d and %v, want an error", c.Next(), err)
	}
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	b.outcomes(b.applyBatch(batch), map[Outcome]int64{Applied: 1})
}

// A worker that is paused inside its transaction loses it, and its locks, by itself.
func TestApply_IdleTransactionEnds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ledger = New(b.pool, func(e *schema.Event) (schema.Meaning, error) {
		// The mapping runs inside the transaction: wait until the server has ended it.
		testkit.Eventually(t, time.Minute, func() error {
			n := query1[int](t, b.pool, `select count(*) from pg_stat_activity where datname = current_database() and state like 'idle in transaction%'`)
			if n != 0 {
				return fmt.Errorf("%d idle transactions", n)
			}
			return nil
		})
		return mapBody(e)
	}, Options{IdleTimeout: 50 * time.Millisecond})
	batch := b.batch(0, paid(t, "evt_1", "alice", 1))
	if c, err := b.ledger.Apply(t.Context(), batch); err == nil || c.Next() != batch.Start {
		t.Fatalf("got next %d and %v, want an error", c.Next(), err)
	}
	b.ledger = New(b.pool, mapBody, Options{})
	b.outcomes(b.applyBatch(batch), map[Outcome]int64{Applied: 1})
}

func TestApply_CancelledContextLeavesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	batch := b.batch(0, paid(t, "evt_1", "alice", 1))
	ctx, cancel := context.WithCancel(t.Context())
	b.ledger.mapper = func(e *schema.Event) (schema.Meaning, error) {
		cancel()
		return mapBody(e)
	}
	if c, err := b.ledger.Apply(ctx, batch); !errors.Is(err, context.Canceled) || c.Next() != batch.Start {
		t.Fatalf("got next %d and %v, want context.Canceled", c.Next(), err)
	}
	b.ledger.mapper = mapBody
	b.outcomes(b.applyBatch(batch), map[Outcome]int64{Applied: 1})
}

func TestApply_ReadOnlyDatabaseIsRetried(t *testing.T) {
	t.Parallel()
	url := testkit.LedgerURL(t)
	b := setupOn(t, open(t, url, nil))
	batch := b.batch(0, paid(t, "evt_1", "alice", 1))
	frozen := setupOn(t, open(t, testkit.DirectURL(t, url), func(c *pgxpool.Config) {
		c.ConnConfig.RuntimeParams["default_transaction_read_only"] = "on"
	}))
	if c, err := frozen.ledger.Apply(t.Context(), batch); err == nil || c.Next() != 0 {
		t.Fatalf("got next %d and %v, want an error", c.Next(), err)
	}
	if b.count("quarantined_events") != 0 {
		t.Error("a frozen database quarantined a record")
	}
	b.outcomes(b.applyBatch(batch), map[Outcome]int64{Applied: 1})
}

// What a database has as its default level changes nothing.
func TestApply_IsolationIsItsOwn(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"serializable", "repeatable read"} {
		url := testkit.DirectURL(t, testkit.LedgerURL(t))
		pool := open(t, url, func(c *pgxpool.Config) {
			c.ConnConfig.RuntimeParams["default_transaction_isolation"] = level
		})
		b := setupOn(t, pool)
		b.start(0)
		b.start(1)
		var events, back []schema.Event
		for i := range 50 {
			e := paid(t, fmt.Sprintf("evt_%d", i), fmt.Sprintf("acc_%d", i%7), 1)
			events, back = append(events, e), append([]schema.Event{e}, back...)
		}
		var wg sync.WaitGroup
		batches := []Batch{b.batch(0, events...), b.batch(1, back...)}
		errs := make([]error, 2)
		for i := range batches {
			wg.Go(func() { _, errs[i] = b.ledger.Apply(t.Context(), batches[i]) })
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Errorf("%s: %v", level, err)
		}
		if got := b.count("ledger_entries"); got != 50 {
			t.Errorf("%s: got %d entries, want 50", level, got)
		}
		b.lawful()
	}
}

// No setting stays set, and what stays prepared is named by its text: a pooler may share
// connections. Where the pool prepares nothing, nothing is prepared.
func TestApply_LeavesNoSessionState(t *testing.T) {
	t.Parallel()
	for mode, want := range map[pgx.QueryExecMode]bool{pgx.QueryExecModeCacheStatement: true, pgx.QueryExecModeExec: false} {
		pool := open(t, testkit.DirectURL(t, testkit.LedgerURL(t)), func(c *pgxpool.Config) { c.MaxConns, c.ConnConfig.DefaultQueryExecMode = 1, mode })
		b := setupOn(t, pool)
		state := func() string {
			return query1[string](t, pool, `select concat(current_setting('synchronous_commit'), current_setting('statement_timeout'),
				current_setting('lock_timeout'), current_setting('idle_in_transaction_session_timeout'), current_setting('enable_seqscan'),
				(select count(*) from pg_prepared_statements where name !~ '^(stmtcache|ledger)_[0-9a-f]{32}'))`, pgx.QueryExecModeExec)
		}
		before := state()
		b.apply(paid(t, "evt_1", "alice", 1), event(t, "bad", body{Bad: schema.ReasonBadAmount}))
		if after := state(); after != before {
			t.Errorf("%s: got %s, want %s", mode, after, before)
		}
		n := query1[int](t, pool, `select count(*) from pg_prepared_statements where name like 'ledger%'`, pgx.QueryExecModeExec)
		if got := n > 0; got != want {
			t.Errorf("%s: got %d prepared statements, want some: %t", mode, n, want)
		}
	}
}

// Statements that another schema, or a pooler, left behind are given up with their
// connection; behind a pooler nothing is prepared any more.
func TestApply_GivesUpStatementsThatDoNotFit(t *testing.T) {
	t.Parallel()
	pool := open(t, testkit.DirectURL(t, testkit.LedgerURL(t)), func(c *pgxpool.Config) {
		c.MaxConns, c.ConnConfig.DefaultQueryExecMode = 1, pgx.QueryExecModeCacheStatement
	})
	b := setupOn(t, pool)
	b.apply(paid(t, "evt_1", "alice", 1))
	if _, err := pool.Exec(t.Context(), `deallocate all`, pgx.QueryExecModeExec); err != nil {
		t.Fatal(err)
	}
	batch := b.batch(0, paid(t, "evt_2", "alice", 1))
	if _, err := b.ledger.Apply(t.Context(), batch); err == nil {
		t.Error("got no error with the statements gone")
	}
	if _, err := b.ledger.Apply(t.Context(), batch); err != nil {
		t.Errorf("got %v, want the batch applied on a new connection", err)
	}
	if n := query1[int](t, pool, `select count(*) from pg_prepared_statements where name like 'ledger%'`, pgx.QueryExecModeExec); n != 0 {
		t.Errorf("got %d prepared statements, want none from now on", n)
	}
	b.lawful()
}
