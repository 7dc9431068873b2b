package ledger

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"hookledger/internal/ledger/memory"
	"hookledger/internal/testkit"
	"hookledger/schema"
	"hookledger/schema/provider"
	"hookledger/schema/source"
)

// everyKind is an event of every kind that leaves a row, in an order in which each gets
// its outcome.
func everyKind(tb testing.TB) ([]schema.Event, map[Outcome]int64) {
	tb.Helper()
	later := testNow.Add(time.Hour)
	return []schema.Event{
			paid(tb, "money", "alice", 10),
			event(tb, "two lines", body{Postings: []schema.Posting{pays("alice", 3, "first"), pays("bob", 4, "second")}}),
			event(tb, "same effect", body{Postings: []schema.Posting{pays("alice", 3, "first")}}),
			event(tb, "money and status", body{Postings: []schema.Posting{pays("bob", 7, "third")}, Status: status("order", "paid", testNow, 1)}),
			event(tb, "status", body{Status: status("order", "shipped", later, 2)}),
			event(tb, "stale", body{Status: status("order", "packed", testNow, 2)}),
			event(tb, "latest", body{LatestWins: true, Status: status("plan", "active", testNow, 1)}),
			event(tb, "ignored", body{}),
		}, map[Outcome]int64{
			Applied: 3, SameEffect: 1, Ignored: 3, Stale: 1,
		}
}

// books is everything but the memory of events: what money and statuses are.
func (b *bundle) books() string {
	b.tb.Helper()
	return query1[string](b.tb, b.pool, `select concat(
		(select string_agg(t::text, ';' order by effect_key) from ledger_entries t),
		(select string_agg(t::text, ';' order by account_id, currency) from accounts t),
		(select string_agg(t::text, ';' order by source, object) from payment_states t),
		(select string_agg(t::text, ';' order by id) from quarantined_events t),
		(select string_agg(t::text, ';' order by event_key, body_sha256) from event_conflicts t))`)
}

// resent is e as a provider sends it again: other bytes, another receive time.
func resent(tb testing.TB, e schema.Event) schema.Event {
	tb.Helper()
	var again body
	if m, err := mapBody(&e); err != nil {
		tb.Fatal(err)
	} else {
		again = body{Postings: m.Postings, Status: m.Status, LatestWins: m.LatestWins, Envelope: "attempt 2"}
	}
	r := event(tb, e.ID, again)
	r.ReceivedAt = r.ReceivedAt.Add(1000 * time.Hour)
	return r
}

// Money, statuses and what was ignored: replayed, in any order, or resent after it was
// forgotten, nothing moves; nor the time after.
func TestForgotten_ReplayedOrResentMovesNothing(t *testing.T) {
	t.Parallel()
	b, _ := setupMemory(t)
	events, want := everyKind(t)
	b.outcomes(b.apply(events...), want)
	books := b.books()
	check := func(what string) {
		t.Helper()
		if got := b.books(); got != books {
			t.Fatalf("%s: the books moved: got\n%s\nwant\n%s", what, got, books)
		}
		b.lawful()
		b.remembers(0)
	}
	forget := func() {
		b.rotate()
		b.forget()
		if n := b.count("processed_events"); n != 0 {
			t.Fatalf("%d events are remembered", n)
		}
	}
	forget()
	check("forgotten")
	b.rewind()
	// Three are known by their entries; the others are looked at as if they were new.
	b.outcomes(b.apply(events...), map[Outcome]int64{Duplicate: 3, SameEffect: 1, Ignored: 3, Stale: 1})
	check("replayed")
	forget()
	for i := len(events) - 1; i >= 0; i-- {
		b.apply(resent(t, events[i]))
	}
	check("resent, backwards")
	for _, e := range events {
		b.apply(e, resent(t, e), e)
	}
	check("replayed and resent, in one batch each")
}

// At the instant of a rotation two transactions hold the same event, each with a row in
// a generation of its own, and neither sees the other's. Whichever generation is
// forgotten first, nothing moves twice.
func TestForgotten_EventInBothGenerationsOfARotation(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"money", "two lines", "status", "latest", "ignored", "wary: money", "wary: two lines", "wary: ignored"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kind, wary := strings.CutPrefix(name, "wary: ")
			b, owner := setupMemory(t)
			if wary {
				b.ledger.wary.Store(1000)
			}
			ctx := t.Context()
			b.start(0)
			b.start(1)
			// Both batches end with an account of the test's, which holds up the first one
			// when its rows and entries are written.
			all, _ := everyKind(t)
			var e schema.Event
			for _, a := range all {
				if a.ID == kind {
					e = a
				}
			}
			b.apply(paid(t, "gate", "zz", 1))
			type result struct {
				c   Committed
				err error
			}
			old, young := make(chan result, 1), make(chan result, 1)
			apply := func(into chan result, batch Batch) {
				c, err := b.ledger.Apply(ctx, batch)
				into <- result{c, err}
			}
			first, second := b.batch(0, e, paid(t, "old", "zz", 1)), b.batch(1, e, paid(t, "young", "zz", 1))
			err := pgx.BeginFunc(ctx, owner, func(tx pgx.Tx) error {
				if _, err := tx.Exec(ctx, `select from accounts where account_id = 'zz' for update`); err != nil {
					return err
				}
				go apply(old, first) // ends with the lock
				waitsForLocks(t, owner, 1)
				b.rotate()
				go apply(young, second) // ends with the first
				waitsForLocks(t, owner, 2)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range []result{<-old, <-young} {
				if r.err != nil {
					t.Fatal(r.err)
				}
				b.next[r.c.Position().Partition] = r.c.Next()
			}
			rows := query1[int64](t, b.pool, `select count(*) from processed_events where event_id = $1`, kind)
			t.Logf("%s: %d rows in %d generations", kind, rows, query1[int64](t, b.pool, `select count(distinct generation) from processed_events`))
			// A batch that meets a wall, where all looked new, runs again and finds the other
			// row; one that looks at what RETURNING says makes a second.
			if inBoth := wary || kind == "ignored"; inBoth && rows != 2 {
				t.Errorf("got %d rows, want one in each generation", rows) // else this tests something easier
			}
			want := int64(0)
			switch kind {
			case "money":
				want = 10
			case "two lines":
				want = 3
			}
			if got := b.balance("alice"); got != want {
				t.Errorf("balance: got %d, want %d", got, want)
			}
			if got := b.balance("zz"); got != 3 {
				t.Errorf("balance of the gate: got %d, want 3", got)
			}
			books := b.books()
			b.lawful()
			for range 2 {
				b.remembers(0)
				b.rewind()
				b.apply(e, resent(t, e))
				b.rotate()
				b.forget()
				if got := b.books(); got != books {
					t.Fatalf("the books moved: got\n%s\nwant\n%s", got, books)
				}
			}
			b.lawful()
		})
	}
}

// waitsForLocks waits until n sessions of this database wait for a lock.
func waitsForLocks(tb testing.TB, owner *pgxpool.Pool, n int) {
	tb.Helper()
	testkit.Eventually(tb, time.Minute, func() error {
		got := query1[int](tb, owner, `select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`)
		if got != n {
			return fmt.Errorf("%d sessions wait for locks, want %d", got, n)
		}
		return nil
	})
}

// After the event was forgotten, its source and its rule were renamed (their keys are
// what they were), the mapping was changed, or the account lies elsewhere: nothing moves.
func TestForgotten_RenamedAndRemappedMovesNothing(t *testing.T) {
	t.Parallel()
	b, owner := setupMemory(t)
	mapper := func(c provider.Config) Mapper {
		t.Helper()
		set, err := provider.NewSet([]provider.Config{c})
		if err != nil {
			t.Fatal(err)
		}
		return set.Map
	}
	before := shop("acme", "", "", "amount", "payment")
	acme := func(id, typ, text string) schema.Event {
		e := event(t, id, body{})
		e.Type, e.Body = typ, []byte(text)
		e.BodySHA256 = sha256.Sum256(e.Body)
		return e
	}
	events := []schema.Event{
		acme("e1", "payment.succeeded", `{"id":"e1","type":"payment.succeeded","user":"alice","currency":"EUR","amount":10,"net":9,"payment":"p1"}`),
		acme("e2", "payment.succeeded", `{"id":"e2","type":"payment.succeeded","user":"bob","currency":"EUR","amount":20,"net":18,"payment":"p2"}`),
		// Another event about p1, with its money: no entry of its own remembers it.
		acme("e3", "payment.succeeded", `{"id":"e3","type":"payment.succeeded","user":"alice","currency":"EUR","amount":10,"net":9,"payment":"p1"}`),
		acme("e4", "payment.created", `{"id":"e4","type":"payment.created","user":"alice","currency":"EUR","amount":10,"net":9,"payment":"p1"}`),
	}
	b.ledger.mapper = mapper(before)
	b.outcomes(b.apply(events...), map[Outcome]int64{Applied: 2, SameEffect: 1, Ignored: 1})
	books := b.books()
	for _, c := range []struct {
		what    string
		changed provider.Config
		// mismatches: e3, about p1 with other money than what stands, is for a person.
		mismatches bool
	}{
		{"nothing", before, false},
		{"the name of the source", shop("acme-emea", "acme", "", "amount", "payment"), false},
		{"the names of source and rule", shop("acme-emea", "acme", "payment.succeeded", "amount", "payment"), false},
		{"where the amount stands", shop("acme", "", "", "net", "payment"), true},
		{"everything else", shop("acme-emea", "acme", "payment.succeeded", "net", "payment"), true},
		// What is never to be changed: the wall by event and line stands all the same for
		// what has entries.
		{"the key of the rule, by a slip", shop("acme", "", "renamed", "amount", "payment"), false},
		{"the movement, by a slip", shop("acme", "", "", "net", "id"), false},
	} {
		b.rotate()
		b.forget()
		b.ledger.mapper = mapper(c.changed)
		replay := []schema.Event{events[0], events[1], events[3]}
		if !strings.HasSuffix(c.what, "by a slip") {
			replay = events
		}
		b.rewind()
		done := b.apply(replay...)
		if c.mismatches {
			if done.Count(Quarantined) != 1 || query1[string](t, b.pool, `select reason from quarantined_events`) != reasonEffectMismatch {
				t.Errorf("changed meanwhile: %s: got no effect_mismatch", c.what)
			}
			b.exec(owner, `delete from quarantined_events`)
		}
		if got := b.books(); got != books {
			t.Fatalf("changed meanwhile: %s: the books moved: got\n%s\nwant\n%s", c.what, got, books)
		}
		b.lawful()
		b.remembers(0)
	}
}

// shop is a source whose one rule credits a user.
func shop(name, key, rule, amount, movement string) provider.Config {
	return provider.Config{
		Name: name, Key: key, Provider: "generic",
		Secrets:   []provider.SecretConfig{{Value: "0123456789abcdef0123456789abcdef"}},
		Signature: provider.SignatureConfig{Header: "X-Signature"},
		Event:     provider.EventConfig{ID: source.Locator{Path: "id"}, Type: source.Locator{Path: "type"}},
		Postings: []provider.PostingConfig{{
			Key: rule, Type: []string{"payment.succeeded"}, Account: []string{"user"}, Amount: amount, Unit: "minor", Currency: source.Locator{Path: "currency"},
			Direction: source.Direction{Always: "credit"}, Movement: movement,
		}},
	}
}

func (b *bundle) exec(pool *pgxpool.Pool, sql string, args ...any) {
	b.tb.Helper()
	if _, err := pool.Exec(b.tb.Context(), sql, args...); err != nil {
		b.tb.Fatalf("%s: %v", sql, err)
	}
}

// What a person decided against has no entry to stand in its way, so it stays in memory
// however often its generation is forgotten.
func TestForgotten_DiscardedEventStaysDiscarded(t *testing.T) {
	t.Parallel()
	b, owner := setupMemory(t)
	b.outcomes(b.apply(event(t, "bad", body{Bad: schema.ReasonBadAmount}), paid(t, "good", "alice", 1)), map[Outcome]int64{Quarantined: 1, Applied: 1})
	id := query1[int64](t, owner, `select id from quarantined_events`)
	if _, err := New(owner, mapBody, Options{}).Discard(t.Context(), Held{ID: id}, Decision{By: "anna", Reason: "a test of the provider's"}); err != nil {
		t.Fatal(err)
	}
	fixed := paid(t, "bad", "alice", 1_000)
	for range memory.Generations + 1 {
		b.rotate()
		b.forget()
		if got := b.outcome("bad"); got != "discarded" {
			t.Fatalf("got the outcome %s, want discarded", got)
		}
		if got := b.outcome("good"); got != "none" {
			t.Fatalf("got the outcome %s, want none", got)
		}
	}
	b.outcomes(b.apply(fixed, paid(t, "good", "alice", 1)), map[Outcome]int64{Conflict: 1, Duplicate: 1})
	if got := b.balance("alice"); got != 1 {
		t.Errorf("balance: got %d, want 1", got)
	}
	b.lawful()
}
