package payments

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"hookledger/internal/testkit"
)

// faults are the places in Postgres at which a request can fail, in the order of its
// statements.
var faults = []struct{ name, before, table string }{
	{"the claim", "before insert", "idempotency_keys"},
	{"the answer", "before update of response_code", "idempotency_keys"},
	{"the payment", "before insert", "payments"},
	{"the entries", "before insert", "ledger_entries"},
	{"the balances", "before update", "accounts"},
	{"the commit", "after insert", "payments"},
}

// breakAt has a trigger do what the fault says at a place, until mend is called.
func (b *bundle) breakAt(before, table, fault string) (mend func()) {
	b.tb.Helper()
	kind, when := "", ""
	if before == "after insert" { // as late as can be
		kind, when = "constraint", "deferrable initially deferred"
	}
	b.exec(`create or replace function fault() returns trigger language plpgsql as $$ begin ` + fault + ` return new; end $$`)
	b.exec(fmt.Sprintf(`create %s trigger fault %s on %s %s for each row execute function fault()`, kind, before, table, when))
	return func() { b.exec(`drop trigger fault on ` + table) }
}

// Whichever statement fails, nothing of the others stays: no payment, and no answer that
// says there is one. The claim is given back, so that the next request need not wait.
func TestFault_AtEveryStatementRollsAllBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.fund("shop:1", 1000)
	b.fund("x", 1)
	for i, f := range faults {
		key, body := fmt.Sprint("k", i), payment("shop:1", "x", 1)
		mend := b.breakAt(f.before, f.table, `raise exception using errcode = 'disk_full';`)
		if r := b.post(key, body); r.code != 503 || r.problem() != "unavailable" || r.header.Get("Retry-After") == "" {
			t.Errorf("%s fails: got %s, want 503 unavailable", f.name, r)
		}
		if got := b.payments(); got != int64(i) {
			t.Errorf("%s failed: got %d payments, want %d", f.name, got, i)
		}
		b.lawful()
		mend()
		if r := b.post(key, body); r.code != 201 || r.header.Get("Idempotent-Replayed") != "" {
			t.Errorf("after %s failed: got %s, want 201 at once", f.name, r)
		}
		b.lawful()
	}
}

// The session ends in the middle of each statement, as by an administrator.
func TestFault_SessionEndedAtEveryStatement(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) { c.ClaimTTL = shortTTL })
	b.fund("shop:1", 1000)
	b.fund("x", 1)
	for i, f := range faults {
		key, body := fmt.Sprint("k", i), payment("shop:1", "x", 1)
		mend := b.breakAt(f.before, f.table, `perform pg_terminate_backend(pg_backend_pid()); perform pg_sleep(10);`)
		want := "unavailable"
		if f.name == "the commit" { // what ends there may have been waiting for its standby
			want = "unknown-outcome"
		}
		if r := b.post(key, body); r.code != 503 || r.problem() != want {
			t.Errorf("in %s: got %s, want 503 %s", f.name, r, want)
		}
		mend()
		if r := untilPaid(t, b.base, key, body); r.header.Get("Idempotent-Replayed") != "" {
			t.Errorf("after %s: got a replay of %s, want it new", f.name, r)
		}
		if got := b.payments(); got != int64(i+1) {
			t.Errorf("after %s: got %d payments, want %d", f.name, got, i+1)
		}
		b.lawful()
	}
}

// A lock that is not the key's makes no key busy: a page by which a table grows, or, to
// the same effect, somebody's lock of all of a table.
func TestPost_LockedTableIsNoBusyKey(t *testing.T) {
	t.Parallel()
	for _, table := range []string{"idempotency_keys", "payments", "ledger_entries", "accounts"} {
		t.Run(table, func(t *testing.T) {
			t.Parallel()
			// So long that no statement is ended for a slow machine.
			b := setup(t, func(c *Config) { c.ClaimTTL, c.AnswerTimeout = time.Minute, time.Minute })
			b.fund("shop:1", 100)
			abandon(t, b, "stale", payment("shop:1", "x", 1), "1 hour")
			b.connectAll()
			for _, key := range []string{"new", "stale"} {
				tx := b.lockTable(table)
				body := payment("shop:1", "x", 1)
				if r := b.post(key, body); r.code != 503 || r.problem() != "overloaded" {
					t.Errorf("%s key: got %s, want 503 overloaded", key, r)
				}
				if err := tx.Rollback(t.Context()); err != nil {
					t.Fatal(err)
				}
				if r, err := postPatiently(b.base, key, body); err != nil || r.code != 201 {
					t.Errorf("%s key, after the lock: got %s (%v), want 201", key, r, err)
				}
			}
			if n := counter(t, b.reg, "hookledger_payments_lock_retries_total", "", ""); n == 0 {
				t.Error("got no retries counted")
			}
			b.lawful()
		})
	}
}

// connectAll makes all of the door's connections: one that is made while a table is locked
// fails, and where that is the watcher's, the door takes no payments for a moment.
func (b *bundle) connectAll() {
	b.tb.Helper()
	pool := b.server.door.db.pool
	for range pool.Config().MaxConns {
		conn, err := pool.Acquire(b.tb.Context())
		if err != nil {
			b.tb.Fatal(err)
		}
		defer conn.Release()
	}
}

// lockTable keeps everybody from writing to a table.
func (b *bundle) lockTable(table string) pgx.Tx {
	b.tb.Helper()
	tx, err := b.pool.Begin(b.tb.Context())
	if err != nil {
		b.tb.Fatal(err)
	}
	if _, err := tx.Exec(b.tb.Context(), `lock table `+table+` in share mode`); err != nil {
		b.tb.Fatal(err)
	}
	return tx
}

// The cleaning removes the row behind which an insert gave way, before it was looked at
// again: the key is new.
func TestClaim_RowRemovedBetweenInsertAndLook(t *testing.T) {
	t.Parallel()
	url := testkit.LedgerURL(t)
	g := newGate(t, target(t, url))
	b := &bundle{tb: t, url: url, pool: openPool(t, url, 4)}
	b.fund("shop:1", 1000)
	b.startWith(testConfig(), openPool(t, through(t, url, g), 2))
	if r := b.post("warm", payment("shop:1", "x", 1)); r.code != 201 {
		t.Fatal(r)
	}
	body := payment("shop:1", "x", 1)
	// On a busy machine the insert may give up before the other one commits: then again.
	testkit.Eventually(t, time.Minute, func() error {
		key := testkit.UniqueName("k")
		tx, err := b.pool.Begin(t.Context())
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback(t.Context()) }()
		if _, err := tx.Exec(t.Context(), `insert into idempotency_keys (client, key, fingerprint, state, claimed_at, expires_at)
			values ('shop', $1, '\x00', 'processing', now() - interval '2 s', now() - interval '1 s')`, key); err != nil {
			return err
		}
		second := g.holdAt(t, is(queryClaim, 2))
		defer second.release()
		answer := postAsync(b.base, key, body)
		for query1[int](t, b.pool, `select count(*) from pg_stat_activity where datname = current_database() and wait_event = 'transactionid'`) == 0 {
			select {
			case r := <-answer:
				return fmt.Errorf("answered %s before it was seen to wait", r)
			default:
			}
		}
		if err := tx.Commit(t.Context()); err != nil {
			return err
		}
		select {
		case r := <-answer:
			return fmt.Errorf("answered %s: it did not wait long enough", r)
		case <-second.reached:
		}
		testkit.Eventually(t, time.Minute, func() error { // the server cleans too, and only one may
			if _, err := (&cleaner{door: &door{db: newDatabase(b.pool, testConfig()), metrics: b.server.metrics}}).batch(t.Context()); err != nil {
				return err
			}
			if n := query1[int](t, b.pool, `select count(*) from idempotency_keys where key = $1`, key); n > 0 {
				return errors.New("the row is there")
			}
			return nil
		})
		second.release()
		if r := await(t, answer, "an answer"); r.code != 201 || r.err != nil {
			t.Errorf("got %s %v, want 201", r, r.err)
		}
		if n := query1[int](t, b.pool, `select count(*) from payments where idempotency_key = $1`, key); n != 1 {
			t.Errorf("got %d payments, want 1", n)
		}
		return nil
	})
	b.lawful()
}
