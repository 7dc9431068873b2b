package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"hookledger/internal/testkit"
)

// change is what a migration of a later release does to the tables beneath a worker.
type change struct {
	name string
	sql  []string
	// alone: each statement by itself, for those that run in no transaction.
	alone bool
}

// changes lock tables in the worker's order where there are several in one transaction:
// against it they meet deadlocks, and need many tries.
var changes = []change{
	{name: "new columns", sql: []string{
		`alter table consumer_progress add column note text not null default ''`,
		`alter table processed_events add column note text`,
		`alter table ledger_entries add column note text`,
		`alter table accounts add column note text not null default ''`,
	}},
	{name: "constraints that are not checked yet", sql: []string{
		`alter table consumer_progress add constraint consumer_progress_note_short check (length(note) < 100) not valid`,
		`alter table processed_events add constraint processed_events_note_short check (length(note) < 100) not valid`,
		`alter table ledger_entries add constraint ledger_entries_note_short check (length(note) < 100) not valid`,
		`alter table accounts add constraint accounts_note_short check (length(note) < 100) not valid`,
	}},
	{name: "constraints checked", sql: []string{
		`alter table consumer_progress validate constraint consumer_progress_note_short`,
		`alter table processed_events validate constraint processed_events_note_short`,
		`alter table ledger_entries validate constraint ledger_entries_note_short`,
		`alter table accounts validate constraint accounts_note_short`,
	}},
	{name: "indexes", alone: true, sql: []string{
		`create index concurrently on ledger_entries (account_id, applied_at)`,
		`create index concurrently on accounts (updated_at)`,
		`create index concurrently on processed_events_0 (received_at)`,
	}},
	// What prepared statements return has another type then: 0A000, "cached plan must not
	// change result type".
	{name: "another type", sql: []string{
		`alter table processed_events alter column outcome type varchar`,
	}},
}

// migrate does a change as one does it beside work: it waits for a lock for a moment only,
// since whoever comes after waits behind it, and tries again. It returns how often.
func (s *system) migrate(c change) (tries int) {
	s.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*wait)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.opts.database)
	if err != nil {
		s.tb.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if c.alone {
		for _, sql := range c.sql {
			if _, err := conn.Exec(ctx, sql); err != nil {
				s.tb.Fatalf("%s: %v", sql, err)
			}
		}
		return 1
	}
	testkit.Eventually(s.tb, wait, func() error {
		tries++
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			for _, sql := range append([]string{`set local lock_timeout = '1s'`}, c.sql...) {
				if _, err := tx.Exec(ctx, sql); err != nil {
					return fmt.Errorf("%s: %w", sql, err)
				}
			}
			return nil
		})
	})
	return tries
}

// pauses notes the longest time without progress, until it is stopped.
type pauses struct {
	stop    chan struct{}
	done    sync.WaitGroup
	longest time.Duration
	// err is why it could not look; read it after end.
	err error
}

func (s *system) startPauses() *pauses {
	s.tb.Helper()
	conn, err := pgx.Connect(context.Background(), s.opts.database)
	if err != nil {
		s.tb.Fatal(err)
	}
	p := &pauses{stop: make(chan struct{})}
	p.done.Go(func() { // ends with stop
		defer func() { _ = conn.Close(context.Background()) }()
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		at, moved := int64(-1), time.Now()
		for p.err == nil {
			var next int64
			ctx, cancel := context.WithTimeout(context.Background(), 2*wait)
			p.err = conn.QueryRow(ctx, `select coalesce(sum(next_offset), 0)::bigint from consumer_progress`, pgx.QueryExecModeExec).Scan(&next)
			cancel()
			p.longest = max(p.longest, time.Since(moved))
			if next != at {
				at, moved = next, time.Now()
			}
			select {
			case <-tick.C:
			case <-p.stop:
				return
			}
		}
	})
	s.tb.Cleanup(p.end)
	return p
}

func (p *pauses) end() {
	select {
	case <-p.stop:
	default:
		close(p.stop)
	}
	p.done.Wait()
}

// appliedMore waits until n more events have an entry than now.
func (s *system) appliedMore(n int) {
	s.tb.Helper()
	count := func() (n int) {
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		defer cancel()
		conn, err := pgx.Connect(ctx, s.opts.database)
		if err != nil {
			s.tb.Fatal(err)
		}
		defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
		if err := conn.QueryRow(ctx, `select count(*) from ledger_entries`).Scan(&n); err != nil {
			s.tb.Fatal(err)
		}
		return n
	}
	want := count() + n
	testkit.Eventually(s.tb, wait, func() error {
		if got := count(); got < want {
			return fmt.Errorf("%d entries, want %d", got, want)
		}
		return nil
	})
}

// The schema changes beneath workers under load, as by migrations of a later release:
// statements and plans that were made for the old one survive it or are made again, and
// nothing is lost, doubled or set aside. Once the schema's version is another release's, a
// worker that runs says so and goes on, and one that starts refuses.
func TestMigration_UnderLoadLosesNothing(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testkit.Kafka(t), options{database: testkit.DirectURL(t, testkit.PostgresURL(t))})
	s.startIngest()
	s.startConsume()
	s.startConsume()
	s.startSampler()
	l := s.startLoad(21, workload(21, 20000), 1, 12, 100)
	s.appliedMore(50)
	for _, c := range changes {
		p := s.startPauses()
		began := time.Now()
		tries := s.migrate(c)
		took := time.Since(began)
		s.appliedMore(50)
		p.end()
		if p.err != nil {
			t.Fatal(p.err)
		}
		t.Logf("%s: %s, %d tries; longest time without progress %s", c.name, took.Round(time.Millisecond), tries, p.longest.Round(time.Millisecond))
	}
	outdated := 0.0
	for _, r := range s.consume {
		outdated += r.metric(t, "hookledger_consumer_retries_total", `class="sqlstate_0A"`)
	}
	if outdated == 0 {
		t.Error("no statement met a plan of the old schema: the test needs one")
	}

	s.exec(`insert into hookledger_schema (version_id, is_applied) values (99999, true)`)
	for _, r := range s.consume {
		testkit.Eventually(t, wait, r.wantStatus("/readyz", 503))
		if _, body, err := r.get("/readyz"); err != nil || !strings.Contains(body, "schema is newer than this program") {
			t.Errorf("/readyz of %s: got %s, %v, want the reason", r.name, body, err)
		}
	}
	s.appliedMore(50)
	s.consume[0].mustStop(t)
	if _, stderr, code := s.run("consume"); code != 2 || !strings.Contains(stderr, "deploy the release that migrated it") {
		t.Errorf("a start on a newer schema: got exit code %d and %s, want 2 and what to do", code, stderr)
	}
	s.appliedMore(50) // the other one has all partitions
	s.exec(`delete from hookledger_schema where version_id = 99999`)
	for _, r := range s.consume[1:] {
		testkit.Eventually(t, wait, r.wantStatus("/readyz", 200))
	}
	s.startConsume()
	l.finish()
	s.settle(verdict{})
}
