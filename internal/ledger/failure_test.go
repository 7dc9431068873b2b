package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"hookledger/internal/testkit"
	"hookledger/internal/testkit/standby"
	"hookledger/migrations"
	"hookledger/schema"
)

// Each statement in turn is refused by Postgres for a reason that is none of the
// records': the disk is full, an operator cancels, memory runs out. Nothing is visible,
// nothing is set aside, and the same batch again is applied.
func TestApply_RefusalAtEachStatementLeavesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	b.apply(paid(t, "stored", "alice", 1), event(t, "ignored", body{}),
		event(t, "moved", body{Postings: []schema.Posting{pays("alice", 5, "shared")}}))
	events := []schema.Event{
		paid(t, "new", "alice", 2), paid(t, "ignored", "bob", 3), paid(t, "stored", "alice", 99),
		event(t, "state", body{Status: status("p", "two", testNow, 0)}),
		event(t, "same", body{Postings: []schema.Posting{pays("alice", 5, "shared")}}),
		event(t, "bad", body{Bad: schema.ReasonBadAmount}),
	}
	for _, code := range []string{"53100", "53200", "57014", "58030", "XX000"} {
		for _, table := range []string{"processed_events_0", "ledger_entries", "quarantined_events", "event_conflicts", "accounts", "payment_states", "consumer_progress"} {
			for _, sql := range []string{
				`create or replace function refuse() returns trigger language plpgsql as 'begin raise exception ''as the test wants'' using errcode = ''` + code + `''; end'`,
				`create trigger refuse before insert or update on ` + table + ` for each row execute function refuse()`,
			} {
				if _, err := b.pool.Exec(ctx, sql); err != nil {
					t.Fatal(err)
				}
			}
			before := fingerprint(t, b.pool)
			batch := b.batch(0, events...)
			c, err := b.ledger.Apply(ctx, batch)
			if err == nil || c.Next() != batch.Start || c.Records() != 0 {
				t.Fatalf("%s at %s: got next %d, %d records and error %v, want nothing and an error", code, table, c.Next(), c.Records(), err)
			}
			if _, ok := isDataError(err); ok {
				t.Errorf("%s at %s: counts as bad data: %v", code, table, err)
			}
			if _, err := b.pool.Exec(ctx, `drop trigger refuse on `+table); err != nil {
				t.Fatal(err)
			}
			if after := fingerprint(t, b.pool); after != before {
				t.Errorf("%s at %s: something of a failed transaction is visible", code, table)
			}
		}
	}
	b.outcomes(b.apply(events...), map[Outcome]int64{Applied: 2, Conflict: 1, Ignored: 1, SameEffect: 1, Quarantined: 1})
	b.lawful()
}

// The same event is in two transactions that are open at once. The second one waits for
// the first, and finds a duplicate if that commits, or a new event if it rolls back.
func TestApply_SameEventInTwoOpenTransactions(t *testing.T) {
	t.Parallel()
	for _, commits := range []bool{true, false} {
		t.Run(fmt.Sprintf("commits %t", commits), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			ctx := t.Context()
			b.start(0)
			b.start(1)
			b.apply(paid(t, "gate", "zz", 1))
			one, two := b.batch(0, paid(t, "evt_1", "alice", 5), paid(t, "first", "zz", 1)), b.batch(1, paid(t, "evt_1", "alice", 5))
			type result struct {
				c   Committed
				err error
			}
			first, second := make(chan result, 1), make(chan result, 1)
			err := pgx.BeginFunc(ctx, b.pool, func(tx pgx.Tx) error {
				// The last statement of the first batch waits here, its rows are written.
				if _, err := tx.Exec(ctx, `select from accounts where account_id = 'zz' for update`); err != nil {
					return err
				}
				go func() { // ends with the lock, or its backend
					c, err := b.ledger.Apply(ctx, one)
					first <- result{c, err}
				}()
				waitsForLocks(t, b.pool, 1)
				blocked := query1[int](t, b.pool, `select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`)
				go func() { // ends with the first
					c, err := b.ledger.Apply(ctx, two)
					second <- result{c, err}
				}()
				waitsForLocks(t, b.pool, 2)
				if !commits {
					_ = query1[bool](t, b.pool, `select pg_terminate_backend($1)`, blocked)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			r1, r2 := <-first, <-second
			if (r1.err == nil) != commits || r2.err != nil {
				t.Fatalf("got %v and %v", r1.err, r2.err)
			}
			want := Applied
			if commits {
				want = Duplicate
			}
			b.outcomes(r2.c, map[Outcome]int64{want: 1})
			if !commits {
				b.outcomes(b.applyBatch(one), map[Outcome]int64{Applied: 1, Duplicate: 1})
			}
			if got := b.balance("alice"); got != 5 {
				t.Errorf("balance: got %d, want 5", got)
			}
			b.lawful()
		})
	}
}

// Two bodies of one event, in two transactions at once: one is what the event means for
// good, the other is kept beside it, and nobody is paid for both.
func TestApply_TwoBodiesOfOneEventAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start(0)
	b.start(1)
	const rounds = 20
	for round := range rounds {
		id, account := fmt.Sprintf("evt_%d", round), fmt.Sprintf("acc_%d", round)
		batches := []Batch{b.batch(0, paid(t, id, account, 5)), b.batch(1, paid(t, id, account, 50))}
		type result struct {
			c   Committed
			err error
		}
		results := make(chan result, len(batches))
		for _, batch := range batches {
			go func() { // ends with its transaction
				c, err := b.ledger.Apply(t.Context(), batch)
				results <- result{c, err}
			}()
		}
		applied, conflicts := int64(0), int64(0)
		for range batches {
			r := <-results
			if r.err != nil {
				t.Fatal(r.err)
			}
			applied, conflicts = applied+r.c.Count(Applied), conflicts+r.c.Count(Conflict)
			b.next[r.c.Position().Partition] = r.c.Next()
		}
		if got := b.balance(account); applied != 1 || conflicts != 1 || got != 5 && got != 50 {
			t.Errorf("round %d: got %d applied, %d conflicts, balance %d; want 1, 1 and one of the two amounts", round, applied, conflicts, got)
		}
	}
	if got := query1[int64](t, b.pool, `select count(*) from event_conflicts c join processed_events p using (event_key)
		where c.body_sha256 <> p.body_sha256 and c.first_body_sha256 = p.body_sha256`); got != rounds {
		t.Errorf("got %d conflicts that name both bodies, want %d", got, rounds)
	}
	b.lawful()
}

// A refund may come before its charge, and a fee before both: the sum is the same in
// every order, and the balance may be negative meanwhile.
func TestApply_EveryOrderOfChargeRefundAndFee(t *testing.T) {
	t.Parallel()
	b := setup(t)
	amounts := []int64{100, -30, -100, 45}
	orders := permutations(len(amounts))
	negative := 0
	for n, order := range orders {
		account, sum := fmt.Sprintf("acc_%d", n), int64(0)
		for _, i := range order {
			b.outcomes(b.apply(paid(t, fmt.Sprintf("evt_%d_%d", n, i), account, amounts[i])), map[Outcome]int64{Applied: 1})
			sum += amounts[i]
			if got := b.balance(account); got != sum {
				t.Fatalf("order %v: balance: got %d, want %d", order, got, sum)
			}
			if sum < 0 {
				negative++
			}
		}
	}
	if negative == 0 {
		t.Error("no balance was ever negative: the test needs some")
	}
	b.lawful()
}

// permutations returns every order of 0 to n-1.
func permutations(n int) [][]int {
	if n == 0 {
		return [][]int{nil}
	}
	var all [][]int
	for _, p := range permutations(n - 1) {
		for at := range n {
			all = append(all, slices.Insert(slices.Clone(p), at, n-1))
		}
	}
	return all
}

// Five statuses of one payment, two of them of the same second: in each of the 120
// orders the latest stands at the end, and each event is ignored (it moved the status)
// or stale (something later stood).
func TestApply_FiveStatusesInEveryOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	names := []string{"created", "authorized", "captured", "refunded", "disputed"}
	says := func(object string, i int) schema.Event {
		at := testNow.Add(time.Duration(min(i, 3)) * time.Second) // refunded and disputed: by rank
		return event(t, object+"_"+names[i], body{Status: status(object, names[i], at, i)})
	}
	orders := permutations(len(names))
	if len(orders) != 120 {
		t.Fatalf("got %d orders, want 120", len(orders))
	}
	want := map[string]string{}
	for n, order := range orders {
		object, latest := fmt.Sprintf("pay_%d", n), -1
		var events []schema.Event
		for _, i := range order {
			events = append(events, says(object, i))
			want[object+"_"+names[i]] = "ignored"
			if i < latest {
				want[object+"_"+names[i]] = "stale"
			}
			latest = max(latest, i)
		}
		cut := n % (len(events) + 1) // in one batch or in two
		b.apply(events[:cut]...)
		b.apply(events[cut:]...)
	}
	got := query1[map[string]string](t, b.pool, `select jsonb_object_agg(event_id, outcome) from processed_events`)
	for id, outcome := range want {
		if got[id] != outcome {
			t.Errorf("%s: got %s, want %s", id, got[id], outcome)
		}
	}
	if n := query1[int64](t, b.pool, `select count(*) from payment_states where status = 'disputed' and rank = 4`); n != 120 {
		t.Errorf("got %d payments that are disputed, want 120", n)
	}
}

// Nothing but records that Postgres refuses: each is set aside, none stops the others.
func TestApply_BatchOfNothingButPoison(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var events []schema.Event
	for i := range 100 {
		events = append(events, paid(t, fmt.Sprintf("evt_%d", i), "alice", schema.MaxAmount+1))
	}
	c := b.apply(events...)
	b.outcomes(c, map[Outcome]int64{Quarantined: 100})
	if got := query1[int64](t, b.pool, `select count(distinct "offset") from quarantined_events where reason = 'refused_by_database' and body is not null`); got != 100 || c.Next() != 100 {
		t.Errorf("got %d records in quarantine and next %d, want 100 and 100", got, c.Next())
	}
	b.outcomes(b.apply(paid(t, "good", "alice", 1)), map[Outcome]int64{Applied: 1})
	b.lawful()
}

// Three postings of which two are known by other events, and then by none but the
// ledger: only what is new is written, once.
func TestApply_SeveralPostingsOfWhichSomeAreKnown(t *testing.T) {
	t.Parallel()
	for _, inOneBatch := range []bool{true, false} {
		b, _ := setupMemory(t)
		sale, fee, tip := pays("alice", 100, "sale"), pays("alice", -3, "fee"), pays("bob", 10, "tip")
		first := event(t, "first", body{Postings: []schema.Posting{sale}})
		second := event(t, "second", body{Postings: []schema.Posting{fee}})
		all := event(t, "all", body{Postings: []schema.Posting{sale, fee, tip}})
		again := event(t, "again", body{Postings: []schema.Posting{tip, fee}})
		want := map[Outcome]int64{Applied: 3, SameEffect: 1}
		if inOneBatch {
			b.outcomes(b.apply(first, second, all, again), want)
		} else {
			b.outcomes(b.apply(first), map[Outcome]int64{Applied: 1})
			b.outcomes(b.apply(second, all), map[Outcome]int64{Applied: 2})
			b.outcomes(b.apply(again), map[Outcome]int64{SameEffect: 1})
		}
		check := func(when string) {
			t.Helper()
			if alice, bob, n := b.balance("alice"), b.balance("bob"), b.count("ledger_entries"); alice != 97 || bob != 10 || n != 3 {
				t.Errorf("%s: got %d, %d and %d entries, want 97, 10 and 3", when, alice, bob, n)
			}
			b.lawful()
		}
		check("applied")
		b.rewind()
		b.outcomes(b.apply(again, all, second, first), map[Outcome]int64{Duplicate: 4})
		check("replayed")
		b.rotate()
		b.forget()
		b.rewind()
		b.apply(again, all, second, first)
		check("replayed after it was forgotten")
	}
}

// A database whose commits do not wait for the disk would lose the last ones with the
// server's death. The ledger's do wait.
func TestApply_CommitWaitsForTheDiskWhateverTheDatabaseSays(t *testing.T) {
	t.Parallel()
	// What is not waited for is written ten seconds later: longer than this test needs.
	cluster := testkit.NewPostgres(t, "synchronous_commit=off", "wal_writer_delay=10s", "wal_writer_flush_after=0", "bgwriter_delay=10s", "autovacuum=off")
	if err := migrations.Up(t.Context(), cluster.URL("postgres")); err != nil {
		t.Fatal(err)
	}
	b := setupOn(t, open(t, cluster.URL("postgres"), nil))
	b.apply(paid(t, "evt_1", "alice", 5), paid(t, "evt_2", "bob", 7))
	cluster.Kill()
	cluster.Start()
	b = setupOn(t, open(t, cluster.URL("postgres"), nil))
	if alice, bob, events := b.balance("alice"), b.balance("bob"), b.count("processed_events"); alice != 5 || bob != 7 || events != 2 {
		t.Errorf("after the server was killed: got %d, %d and %d events, want 5, 7 and 2", alice, bob, events)
	}
	b.lawful()
}

// COMMIT waits for a synchronous standby that is away, longer than statements may take.
// It is not ended by a timeout of the server's: then it would count as committed, on one
// machine.
func TestApply_CommitThatWaitsForAStandbyIsNotEndedByTheServer(t *testing.T) {
	t.Parallel()
	cluster := testkit.NewPostgres(t)
	if err := migrations.Up(t.Context(), cluster.URL("postgres")); err != nil {
		t.Fatal(err)
	}
	b := setupOn(t, open(t, cluster.URL("postgres"), nil))
	b.ledger = New(b.pool, mapBody, Options{StatementTimeout: 500 * time.Millisecond, LockTimeout: 300 * time.Millisecond, IdleTimeout: 500 * time.Millisecond})
	b.start(0)
	standby.Want(t, cluster.URL("postgres"), "nowhere")
	batch := b.batch(0, paid(t, "evt_1", "alice", 5))
	done := make(chan error, 1)
	go func() { // ends with the standby's name
		_, err := b.ledger.Apply(context.WithoutCancel(t.Context()), batch)
		done <- err
	}()
	testkit.Eventually(t, time.Minute, func() error {
		if n := query1[int](t, b.pool, `select count(*) from pg_stat_activity where wait_event = 'SyncRep' and now() - state_change > interval '2 seconds'`); n != 1 {
			return errors.New("no COMMIT has waited for the standby for four times the timeout of statements")
		}
		return nil
	})
	select {
	case err := <-done:
		t.Fatalf("the COMMIT ended with %v while no standby had it", err)
	default:
	}
	if got := b.balance("alice"); got != 0 {
		t.Errorf("balance: got %d, want 0: no standby has it", got)
	}
	standby.Want(t, cluster.URL("postgres"), "")
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := b.balance("alice"); got != 5 {
		t.Errorf("balance: got %d, want 5", got)
	}
}
