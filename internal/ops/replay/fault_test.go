package replay

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"hookledger/internal/ledger"
	"hookledger/internal/testkit"
)

// cutAt returns a replayer that is stopped once its work has passed n offsets.
func (w *world) cutAt(n int64) (*Replayer, context.Context) {
	ctx, cancel := context.WithCancel(w.t.Context())
	w.t.Cleanup(cancel)
	r := w.replayer("hookledger_operator")
	r.Progress = func(stage string, done, _ int64) {
		if stage == "replaying" && done >= n {
			cancel()
		}
	}
	return r, ctx
}

func TestRun_CutInTheMiddleGoesOnThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pay(0, "known", 1500)
	w.work()
	w.pay(0, "p", 2500)
	w.pay(1, "q", 1500)
	p := w.plan(Selection{})
	r, ctx := w.cutAt(2000)
	_, err := r.Run(ctx, p, order)
	wantErr(t, "cut", err, context.Canceled)
	if err == nil || !strings.Contains(err.Error(), "run the same plan again") {
		t.Errorf("got %v, want what to do", err)
	}
	if got := w.sql(`select concat_ws(' ', state, records > 1000 and records < 5500, detail) from replays`); got != "stopped t stopped by a signal" {
		t.Errorf("audit: got %s", got)
	}
	res := w.mustRun(p, order)
	if !res.MatchesPlan || !res.Resumed || counts(res.Outcome) != "map[applied:4000 duplicate:1500]" || res.Records != 5500 {
		t.Errorf("got %+v", res)
	}
	if got, want := w.books(), "5500 5500 5500 0@1500,1@0"; got != want {
		t.Errorf("books: got %s, want %s", got, want)
	}
	want := "1 done 2 stopped by a signal; gone on with by " + order.By + ": " + order.Reason
	if got := w.sql(`select concat_ws(' ', count(*), min(state), min(attempt), min(detail)) from replays`); got != want {
		t.Errorf("audit: got %s, want one row, %s", got, want)
	}
}

// A runner that was killed leaves its row running; it is succeeded once it showed no life
// for Lease, and until then nobody else runs.
func TestRun_SucceedsARunnerThatDied(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pay(0, "p", 2500)
	p, other := w.plan(Selection{}), w.plan(Selection{FromOffset: ptr(int64(1))})
	r, ctx := w.cutAt(1000)
	if _, err := r.Run(ctx, p, order); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want it cut", err)
	}
	w.exec(`update replays set state = 'running', detail = null, beat_at = now()`)
	for name, plan := range map[string]*Plan{"the same plan": p, "another plan": other} {
		_, err := w.run(plan, order)
		wantErr(t, name, err, ErrBusy)
	}
	if _, err := w.replayer("hookledger_operator").Store.Start(t.Context(), Begin{Kind: KindReset, Position: w.position(), By: "b", Reason: "r", Plan: p}); !errors.Is(err, ErrBusy) {
		t.Errorf("a reset beside a run: got %v, want ErrBusy", err)
	}
	w.exec(`update replays set beat_at = now() - make_interval(secs => $1)`, Lease.Seconds()+1)
	if res := w.mustRun(p, order); !res.MatchesPlan || !res.Resumed {
		t.Errorf("got %+v", res)
	}
	if got, want := w.books(), "2500 2500 2500"; got != want {
		t.Errorf("books: got %s, want %s", got, want)
	}
}

func TestRun_TwoAtOnceOneRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pay(0, "p", 3000)
	p := w.plan(Selection{})
	const runners = 4
	var wg sync.WaitGroup
	errs := make([]error, runners)
	for i := range runners {
		r := w.replayer("hookledger_operator")
		wg.Go(func() { _, errs[i] = r.Run(t.Context(), p, order) })
	}
	wg.Wait()
	won := 0
	for _, err := range errs {
		var changed *ChangedError
		switch {
		case err == nil:
			won++
		case !errors.Is(err, ErrBusy) && !errors.Is(err, ErrPlanDone) && !errors.As(err, &changed):
			t.Errorf("got %v, want a refusal", err)
		}
	}
	if got := w.sql(`select concat_ws(' ', count(*) filter (where state = 'done'), count(*) filter (where state = 'running')) from replays`); won != 1 || got != "1 0" {
		t.Errorf("%d of %d runs went through, audit %s: want one", won, runners, got)
	}
	if got, want := w.books(), "3000 3000 3000"; got != want {
		t.Errorf("books: got %s, want %s", got, want)
	}
}

// Whoever looked before the other was through, and claims after, is too late.
func TestStore_StartsAPlanOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.replayer("hookledger_operator").Store
	b := Begin{Kind: KindRun, PlanHash: "h", Position: w.position(), By: "b", Reason: "r", Plan: map[string]int{}}
	first, err := s.Start(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Finish(t.Context(), first, StateDone, ""); err != nil {
		t.Fatal(err)
	}
	_, err = s.Start(t.Context(), b)
	wantErr(t, "the same plan again", err, ErrBusy)
	b.Kind = KindReset
	if _, err := s.Start(t.Context(), b); err != nil {
		t.Errorf("a reset like one before: got %v", err)
	}
}

// A run that was taken over cannot write any more, wherever it was.
func TestRun_StopsWhenItIsTakenOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pay(0, "p", 3000)
	p := w.plan(Selection{})
	r := w.replayer("hookledger_operator")
	var once sync.Once
	r.Progress = func(stage string, _, _ int64) {
		if stage == "replaying" {
			once.Do(func() { w.exec(`update replays set attempt = attempt + 1`) })
		}
	}
	_, err := r.Run(t.Context(), p, order)
	wantErr(t, "taken over", err, ledger.ErrReplayTaken)
	if got := w.sql(`select concat_ws(' ', state, records) from replays`); got != "running 1000" {
		t.Errorf("audit: got %s, want it as the successor has it", got)
	}
}

// The connection of every second transaction is lost, with or without its COMMIT: counts
// and money are exact all the same.
func TestRun_CountsOnceWhateverAnswersAreLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pay(0, "p", 5000)
	p := w.plan(Selection{})
	r := w.replayer("hookledger_operator")
	cfg := r.Store.Pool.Config().Copy()
	cfg.ConnConfig.RuntimeParams["application_name"] = "victim"
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	r.Books = ledger.New(pool, r.Mapper, ledger.Options{})
	killing, stop := context.WithCancel(t.Context())
	var killed sync.WaitGroup
	var kills int
	killed.Go(func() {
		for killing.Err() == nil && kills < 6 {
			tag, err := w.pool.Exec(context.WithoutCancel(killing),
				`select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'victim' and datname = current_database() and xact_start is not null`)
			if err == nil {
				kills += int(tag.RowsAffected())
			}
		}
	})
	// Cut before it began or in its midst, it is run again until it is through.
	var res *Result
	for range 20 {
		if res, err = r.Run(t.Context(), p, order); err == nil {
			break
		}
	}
	stop()
	killed.Wait()
	t.Logf("%d connections were killed", kills)
	if err != nil {
		t.Fatal(err)
	}
	if !res.MatchesPlan || counts(res.Outcome) != "map[applied:5000]" {
		t.Errorf("after %d kills: got %+v", kills, res)
	}
	if got, want := w.books(), "5000 5000 5000"; got != want {
		t.Errorf("books: got %s, want %s", got, want)
	}
}

// forget drops the memory of everything so far.
func (w *world) forget() {
	w.t.Helper()
	w.exec(`truncate processed_events`)
	w.exec(`update event_ring set forgotten_count = forgotten_count + 1`)
}

func TestRun_OlderThanTheMemoryOfEventsMovesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pay(0, "p", 1500)
	w.work()
	w.forget()
	before := w.books()
	p := w.plan(Selection{})
	if got := counts(p.Would); got != "map[duplicate:1500]" || len(p.Moves) != 0 {
		t.Errorf("plan: got %s %v, want all known by their entries", got, p.Moves)
	}
	if res := w.mustRun(p, order); !res.MatchesPlan || w.books() != before {
		t.Errorf("got %+v, books %s, want %s", res, w.books(), before)
	}
}

func TestRun_AcrossAGenerationDrop(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pay(0, "p", 1500)
	w.produce(w.event(1, "acme", "empty", fact{}))
	w.work()
	before := w.books()
	p := w.plan(Selection{})
	w.forget()
	// What had no money is not known any more, so it would be ignored once more.
	_, err := w.run(p, order)
	var changed *ChangedError
	if !errors.As(err, &changed) || !strings.Contains(err.Error(), "1 ignored instead of 0") {
		t.Errorf("got %v, want a ChangedError", err)
	}
	if res := w.mustRun(p, Order{By: "t", Reason: "r", Accept: true}); counts(res.Outcome) != "map[duplicate:1500 ignored:1]" || w.books() != before {
		t.Errorf("got %+v, books %s, want %s", res, w.books(), before)
	}
}

// The ring's own way of forgetting, between the look and the work.
func TestRun_ForgettingInItsMidstMovesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pay(0, "p", 1500)
	w.work()
	w.pay(1, "q", 1500)
	p := w.plan(Selection{})
	r := w.replayer("hookledger_operator")
	var once sync.Once
	r.Progress = func(stage string, _, _ int64) {
		if stage == "replaying" {
			once.Do(w.forget)
		}
	}
	res, err := r.Run(t.Context(), p, order)
	if err != nil || !res.MatchesPlan {
		t.Errorf("got %+v (%v)", res, err)
	}
	if got, want := w.books(), "3000 3000 3000 0@1500,1@0"; got != want {
		t.Errorf("books: got %s, want %s", got, want)
	}
}

// A backup from before is restored: what the plan took for known is not any more. A run
// that was begun before the backup has lost its row, too.
func TestRun_OnARestoredDatabase(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pay(0, "p", 1500)
	w.work()
	p := w.plan(Selection{})
	r, ctx := w.cutAt(1)
	if _, err := r.Run(ctx, p, order); err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	w.exec(`truncate processed_events, ledger_entries, accounts, replays, replay_moves, event_conflicts, quarantined_events`)
	w.exec(`update consumer_progress set next_offset = 0, from_offset = 0`)
	_, err := w.run(p, order)
	var changed *ChangedError
	if !errors.As(err, &changed) || !strings.Contains(err.Error(), "1500 applied instead of 0") {
		t.Errorf("got %v, want a ChangedError", err)
	}
	if got, want := w.books(), "0 0 0 0@0,1@0"; got != want {
		t.Errorf("a refusal changed the books: got %s, want %s", got, want)
	}
	if res := w.mustRun(w.plan(Selection{}), order); !res.MatchesPlan || res.Resumed {
		t.Errorf("a new plan: got %+v", res)
	}
	if got, want := w.books(), "1500 1500 1500 0@0,1@0"; got != want {
		t.Errorf("books: got %s, want %s", got, want)
	}
}

func TestStore_NamesWhatIsNotThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.replayer("hookledger_reader").Store
	_, err := s.Read(t.Context(), 7)
	wantErr(t, "read", err, ErrNoReplay)
	if rows, err := s.List(t.Context(), 0); err != nil || len(rows) != 0 {
		t.Errorf("got %v (%v)", rows, err)
	}
}

// Nothing is prepared and nothing held between transactions, so any connection will do.
func TestRun_ThroughAPoolerInTransactionMode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pay(0, "known", 1200)
	w.work()
	w.pay(0, "p", 1200)
	w.url = testkit.PgBouncer(t, w.url, "transaction").URL
	r := w.replayer("")
	p, err := r.Plan(t.Context(), Selection{}, "tester")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r.Progress = func(stage string, _, _ int64) {
		if stage == "replaying" {
			cancel()
		}
	}
	if _, err := r.Run(ctx, p, order); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want it cut", err)
	}
	res, err := w.replayer("").Run(t.Context(), p, order)
	if err != nil || !res.MatchesPlan || !res.Resumed || counts(res.Outcome) != "map[applied:1200 duplicate:1200]" {
		t.Errorf("got %+v (%v)", res, err)
	}
	if got, want := w.books(), "2400 2400 2400 0@1200,1@0"; got != want {
		t.Errorf("books: got %s, want %s", got, want)
	}
}
