package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"hookledger/internal/ledger/memory"
	"hookledger/internal/testkit"
	"hookledger/schema"
)

// setupMemory is setup with the rights of a worker, and a pool of the owner beside it,
// which may do what no worker may.
func setupMemory(tb testing.TB) (*bundle, *pgxpool.Pool) {
	tb.Helper()
	url := testkit.LedgerURL(tb)
	return setupOn(tb, as(tb, url, "hookledger_worker")), open(tb, testkit.DirectURL(tb, url), nil)
}

func (b *bundle) ring() memory.Ring {
	b.tb.Helper()
	r, err := memory.Read(context.Background(), b.pool)
	if err != nil {
		b.tb.Fatal(err)
	}
	return r
}

// rotate opens the next generation, whatever the age of the open one.
func (b *bundle) rotate() {
	b.tb.Helper()
	if done, err := memory.Rotate(b.tb.Context(), b.pool, b.ring(), 0); err != nil || !done {
		b.tb.Fatalf("rotate: got %v, %v", done, err)
	}
}

// forget forgets the oldest generation, whatever its age.
func (b *bundle) forget() {
	b.tb.Helper()
	if done, err := memory.Forget(b.tb.Context(), b.pool, b.ring(), 0); err != nil || !done {
		b.tb.Fatalf("forget: got %v, %v", done, err)
	}
}

// remembers checks that memory holds what it must: an entry of an event from the oldest
// generation on has its event's row, and what is not in use holds nothing.
func (b *bundle) remembers(slack time.Duration) {
	b.tb.Helper()
	if n := query1[int64](b.tb, b.pool, `
		select count(*) from ledger_entries l, event_ring r
		 where (r.forgotten_count = 0 or l.applied_at >= r.opened_at[r.oldest_generation + 1] + make_interval(secs => $1))
		   and not exists (select from processed_events p where p.event_key = l.event_key and p.outcome = 'applied')`, slack.Seconds()); n != 0 {
		b.tb.Errorf("%d entries within memory have no event", n)
	}
	if n := query1[int64](b.tb, b.pool, `
		select count(*) from processed_events p, event_ring r
		 where (p.generation - r.oldest_generation + 8) % 8 > (r.open_generation - r.oldest_generation + 8) % 8`); n != 0 {
		b.tb.Errorf("%d events lie in generations that are not in use", n)
	}
}

func TestRotate_ExactlyOneOfTenWorkers(t *testing.T) {
	t.Parallel()
	b, owner := setupMemory(t)
	const workers = 10
	for round := range 20 {
		seen := b.ring()
		if round%2 == 1 { // on schedule: due since a minute
			if _, err := owner.Exec(t.Context(), `update event_ring set opened_at[open_generation + 1] = now() - interval '61 minutes'`); err != nil {
				t.Fatal(err)
			}
		}
		age := time.Duration(round%2) * time.Hour
		begin := make(chan struct{})
		var wg sync.WaitGroup
		did, errs := make([]bool, workers), make([]error, workers)
		for i := range workers {
			wg.Go(func() {
				<-begin
				did[i], errs[i] = memory.Rotate(t.Context(), b.pool, seen, age)
			})
		}
		close(begin)
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		n := 0
		for _, d := range did {
			if d {
				n++
			}
		}
		r := b.ring()
		if n != 1 || r.Open != (seen.Open+1)%memory.Generations || r.Used() != 2 || r.OpenAge() > time.Minute {
			t.Fatalf("round %d: %d of %d workers opened a generation, the ring was %+v and is %+v", round, n, workers, seen, r)
		}
		// And one of ten forgets.
		for i := range workers {
			wg.Go(func() { did[i], errs[i] = memory.Forget(t.Context(), b.pool, r, 0) })
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		n = 0
		for _, d := range did {
			if d {
				n++
			}
		}
		if after := b.ring(); n != 1 || after.Used() != 1 || after.Forgotten != seen.Forgotten+1 {
			t.Fatalf("round %d: %d of %d workers forgot the oldest generation, and the ring is %+v", round, n, workers, after)
		}
	}
}

// What is not due is not done, and the clock that counts is that of Postgres.
func TestRing_DoesWhatIsDue(t *testing.T) {
	t.Parallel()
	b, owner := setupMemory(t)
	ctx := t.Context()
	b.apply(paid(t, "evt_1", "alice", 5))
	if done, err := memory.Rotate(ctx, b.pool, b.ring(), time.Hour); done || err != nil {
		t.Errorf("rotate what is young: got %v, %v", done, err)
	}
	if done, err := memory.Forget(ctx, b.pool, b.ring(), 0); done || err != nil {
		t.Errorf("forget the open generation: got %v, %v", done, err)
	}
	b.rotate()
	// Opened long ago, but closed just now: its youngest event is young.
	if _, err := owner.Exec(ctx, `update event_ring set opened_at[1] = now() - interval '100 hours'`); err != nil {
		t.Fatal(err)
	}
	if r := b.ring(); r.ForgettingDue(time.Hour) {
		t.Errorf("a generation that was closed just now is due: %+v", r)
	}
	if done, err := memory.Forget(ctx, b.pool, b.ring(), time.Hour); done || err != nil {
		t.Errorf("forget what is young: got %v, %v", done, err)
	}
	if _, err := owner.Exec(ctx, `update event_ring set opened_at[2] = now() - interval '61 minutes'`); err != nil {
		t.Fatal(err)
	}
	if r := b.ring(); !r.ForgettingDue(time.Hour) || !r.RotationDue(time.Hour) {
		t.Errorf("nothing is due: %+v", r)
	}
	if done, err := memory.Forget(ctx, b.pool, b.ring(), time.Hour); !done || err != nil {
		t.Errorf("forget what is due: got %v, %v", done, err)
	}
	if b.outcome("evt_1") != "none" {
		t.Error("a forgotten event has a row")
	}
}

func TestRotate_NeverOpensWhatHoldsEvents(t *testing.T) {
	t.Parallel()
	b, _ := setupMemory(t)
	for g := range memory.Generations {
		b.apply(paid(t, fmt.Sprintf("evt_%d", g), "alice", 1))
		if g < memory.Generations-1 {
			b.rotate()
		}
	}
	if done, err := memory.Rotate(t.Context(), b.pool, b.ring(), 0); done || !errors.Is(err, memory.ErrFull) {
		t.Fatalf("rotate a full ring: got %v, %v", done, err)
	}
	// Whoever saw it before it was full is not let in either.
	stale := b.ring()
	stale.Oldest = 3
	if done, err := memory.Rotate(t.Context(), b.pool, stale, 0); done || err != nil {
		t.Fatalf("rotate a full ring, seen before: got %v, %v", done, err)
	}
	b.forget()
	// No worker writes into what is not in use; should another program have done so:
	if _, err := b.pool.Exec(t.Context(), `insert into processed_events
		select "offset", received_at, processed_at, occurred_at, event_key, meaning, partition, 0::smallint, body_sha256, outcome, source, event_id, type, topic
		  from processed_events where event_id = 'evt_5'`); err != nil {
		t.Fatal(err)
	}
	b.rotate()
	if n := b.count("processed_events_0"); n != 0 {
		t.Errorf("the generation that was opened holds %d events", n)
	}
	if r := b.ring(); r.Open != 0 || r.Oldest != 1 || r.Forgotten != 2 {
		t.Errorf("the ring is %+v", r)
	}
	b.rewind()
	var all []schema.Event
	for g := range memory.Generations {
		all = append(all, paid(t, fmt.Sprintf("evt_%d", g), "alice", 1))
	}
	b.outcomes(b.apply(all...), map[Outcome]int64{Duplicate: memory.Generations})
	b.remembers(0)
}

// The backend dies after the UPDATE and inside TRUNCATE: nothing happened, and the next
// attempt does both.
func TestForget_CrashBetweenUpdateAndTruncateHeals(t *testing.T) {
	t.Parallel()
	b, owner := setupMemory(t)
	ctx := t.Context()
	b.apply(paid(t, "evt_1", "alice", 5))
	b.rotate()
	for _, sql := range []string{
		`create function die() returns trigger language plpgsql security definer as 'begin perform pg_terminate_backend(pg_backend_pid()); return null; end'`,
		`create trigger die before truncate on processed_events_0 execute function die()`,
	} {
		if _, err := owner.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	before := b.ring()
	if done, err := memory.Forget(ctx, b.pool, before, 0); done || err == nil {
		t.Fatalf("got %v, %v, want an error", done, err)
	}
	if after := b.ring(); after.Oldest != before.Oldest || after.Forgotten != 0 || b.outcome("evt_1") != "applied" {
		t.Errorf("a part of what was rolled back is visible: %+v", after)
	}
	b.remembers(0)
	if _, err := owner.Exec(ctx, `drop trigger die on processed_events_0`); err != nil {
		t.Fatal(err)
	}
	b.forget()
	if b.outcome("evt_1") != "none" || b.ring().Forgotten != 1 {
		t.Errorf("not forgotten: %+v", b.ring())
	}
	b.rewind()
	b.outcomes(b.apply(paid(t, "evt_1", "alice", 5)), map[Outcome]int64{Duplicate: 1})
	b.lawful()
}

// Beside an analyst's SELECT and a transaction somebody left open, forgetting says who
// is in the way and does not queue; then it is done.
func TestForget_WaitsForNobody(t *testing.T) {
	t.Parallel()
	b, owner := setupMemory(t)
	ctx := t.Context()
	b.apply(paid(t, "evt_1", "alice", 5))
	b.rotate()
	tx, err := owner.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, `select set_config('application_name', 'analyst', true), count(*) from processed_events`); err != nil {
		t.Fatal(err)
	}
	done, err := memory.Forget(ctx, b.pool, b.ring(), 0)
	var busy *memory.BusyError
	if done || !errors.As(err, &busy) || len(busy.Holders) != 1 || !strings.Contains(err.Error(), fmt.Sprintf("pid %d", tx.Conn().PgConn().PID())) {
		t.Fatalf("got %v, %v, want the pid of the transaction", done, err)
	}
	b.outcomes(b.apply(paid(t, "evt_2", "alice", 5)), map[Outcome]int64{Applied: 1})
	b.rotate() // a rotation asks nobody
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	b.forget()
}

// Somebody holds the row of the ring: another one is at it.
func TestForget_LeavesItToWhoIsAtIt(t *testing.T) {
	t.Parallel()
	b, owner := setupMemory(t)
	ctx := t.Context()
	b.rotate()
	err := pgx.BeginFunc(ctx, owner, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select from event_ring for no key update`); err != nil {
			return err
		}
		if done, err := memory.Forget(ctx, b.pool, b.ring(), 0); done || err != nil {
			t.Errorf("got %v, %v, want to leave it", done, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	b.forget()
}
