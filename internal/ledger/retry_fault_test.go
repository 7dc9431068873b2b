package ledger

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"hookledger/internal/testkit"
	"hookledger/schema"
)

// The answer of COMMIT is lost: asking again settles it, once.
func TestRetry_CommitAnswerLost(t *testing.T) {
	t.Parallel()
	url := testkit.LedgerURL(t)
	direct := open(t, url, nil)
	proxy := testkit.NewProxy(t, fmt.Sprintf("%s:%d", direct.Config().ConnConfig.Host, direct.Config().ConnConfig.Port))
	through := open(t, url, func(c *pgxpool.Config) {
		c.ConnConfig.DialFunc = proxy.Dial
		c.ConnConfig.LookupFunc = func(context.Context, string) ([]string, error) { return []string{"127.0.0.1"}, nil }
		c.ConnConfig.TLSConfig = nil
	})
	b := setupOn(t, direct)
	const n = 15
	var events []schema.Event
	for i := range n {
		events = append(events, event(t, fmt.Sprintf("bad_%d", i), body{Bad: schema.ReasonBadAmount}))
	}
	b.apply(events...)
	core := New(through, fixed, Options{})
	stood := 0
	for range n {
		h := b.held()
		cut := proxy.CutAfterForwardOf("commit\x00")
		if r, err := core.Retry(t.Context(), h, Decision{By: "alice"}); err == nil {
			t.Fatalf("the answer of COMMIT was cut, and Retry knows it: %+v", r)
		}
		<-cut
		switch r, err := core.Retry(t.Context(), h, Decision{By: "alice"}); {
		case errors.Is(err, ErrResolvedBefore):
			stood++
		case err != nil || r.Outcome != Applied:
			t.Fatalf("again: got %+v %v", r, err)
		}
	}
	t.Logf("%d answers lost, of which %d had committed", n, stood)
	if got := b.balance("alice"); got != 7*n {
		t.Errorf("balance: got %d, want %d", got, 7*n)
	}
	b.lawful()
}

// The backend dies at each statement in turn: nothing is visible, and asking again works.
func TestRetry_BackendKilledAtEachStatement(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.apply(event(t, "bad", body{Bad: schema.ReasonBadAmount}))
	h := b.held()
	exec := func(sql string) {
		t.Helper()
		if _, err := b.pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	exec(`create function die() returns trigger language plpgsql as 'begin perform pg_terminate_backend(pg_backend_pid()); return new; end'`)
	core := New(b.pool, fixed, Options{})
	for _, table := range []string{"processed_events_0", "ledger_entries", "accounts", "quarantined_events"} {
		exec(`create trigger die before insert or update on ` + table + ` for each row execute function die()`)
		before := fingerprint(t, b.pool)
		if r, err := core.Retry(t.Context(), h, Decision{By: "alice"}); err == nil {
			t.Fatalf("%s: got %+v, want an error", table, r)
		}
		if after := fingerprint(t, b.pool); after != before {
			t.Errorf("%s: something is visible of a retry that died", table)
		}
		exec(`drop trigger die on ` + table)
	}
	if r := b.retry(fixed, h, false); r.Outcome != Applied {
		t.Errorf("got %+v", r)
	}
	b.lawful()
}

// Two people decide otherwise at once: one of them is first, and that stands.
func TestRetry_AgainstDiscard(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const n = 60
	var events []schema.Event
	for i := range n {
		events = append(events, event(t, fmt.Sprintf("bad_%d", i), body{Bad: schema.ReasonBadAmount}))
	}
	b.apply(events...)
	var retried, discarded atomic.Int64
	var all sync.WaitGroup
	for i, decide := range []func(*Ledger, context.Context, Held, Decision) (Resolved, error){(*Ledger).Retry, (*Ledger).Discard, (*Ledger).Retry, (*Ledger).Discard} {
		all.Go(func() {
			core := New(b.pool, fixed, Options{})
			for id := range int64(n) {
				_, err := decide(core, context.Background(), Held{ID: id + 1}, Decision{By: "somebody", Reason: "test"})
				switch {
				case errors.Is(err, ErrResolvedBefore):
				case err != nil:
					t.Error(err)
				case i%2 == 0:
					retried.Add(1)
				default:
					discarded.Add(1)
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d retried, %d discarded", retried.Load(), discarded.Load())
	if retried.Load()+discarded.Load() != n || b.balance("alice") != 7*retried.Load() {
		t.Errorf("got %d retried and %d discarded of %d, balance %d", retried.Load(), discarded.Load(), n, b.balance("alice"))
	}
	if wrong := query1[int64](t, b.pool, `
		select count(*) from quarantined_events q join processed_events p using (source, event_id)
		 where (q.resolution, p.outcome) not in (('retried', 'applied'), ('discarded', 'discarded'))`); wrong != 0 {
		t.Errorf("%d where the event and its quarantine tell otherwise", wrong)
	}
	b.lawful()
}
