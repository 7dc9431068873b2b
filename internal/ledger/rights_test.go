package ledger

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"hookledger/internal/testkit"
	"hookledger/migrations"
	"hookledger/schema"
)

// as returns a pool whose connections have the rights of role and no others.
func as(tb testing.TB, url, role string) *pgxpool.Pool {
	tb.Helper()
	return open(tb, testkit.RoleURL(tb, url, role), nil)
}

func refused(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "42501"
}

// The worker's role can do all that Apply does, and cannot touch what is written.
func TestRights_Worker(t *testing.T) {
	t.Parallel()
	url := testkit.LedgerURL(t)
	b := setupOn(t, as(t, url, "hookledger_worker"))
	ctx := t.Context()
	if err := migrations.Check(ctx, b.pool); err != nil {
		t.Fatal(err)
	}
	b.apply(paid(t, "evt_1", "alice", 1), event(t, "known", body{}),
		event(t, "s1", body{LatestWins: true, Status: status("p", "one", testNow, 0)}),
		event(t, "m1", body{Postings: []schema.Posting{pays("alice", 5, "shared")}}))
	b.outcomes(b.apply(
		paid(t, "evt_1", "alice", 2), paid(t, "known", "bob", 3),
		event(t, "s1", body{LatestWins: true, Status: status("p", "two", testNow.Add(time.Second), 0)}),
		event(t, "m2", body{Postings: []schema.Posting{pays("alice", 5, "shared")}}),
		event(t, "bad", body{Bad: schema.ReasonBadAmount}), paid(t, "huge", "alice", schema.MaxAmount+1),
	), map[Outcome]int64{Conflict: 1, Applied: 1, Ignored: 1, SameEffect: 1, Quarantined: 2})
	if _, err := b.ledger.RaiseIncident(ctx, Incident{Severity: Info, Kind: "rewind", Once: "x"}); err != nil {
		t.Error(err)
	}
	if _, err := b.ledger.CheckPositions(ctx, "c", testPosition.TopicID, nil); err != nil {
		t.Error(err)
	}
	for _, sql := range []string{
		`update ledger_entries set amount = amount + 1`, `delete from ledger_entries`, `truncate ledger_entries`,
		`delete from accounts`, `delete from processed_events`, `truncate processed_events`,
		`delete from incidents`, `update incidents set acknowledged_at = now(), acknowledged_by = 'me'`,
		`delete from quarantined_events`, `update quarantined_events set body = ''`, `delete from event_conflicts`,
		`delete from consumer_progress`, `drop table accounts`, `update hookledger_schema set version_id = 9`,
	} {
		if _, err := b.pool.Exec(ctx, sql); !refused(err) {
			t.Errorf("%s: got %v, want permission denied", sql, err)
		}
	}
	// Forgetting is emptying a generation that is not open, and a row of the ring.
	for _, sql := range []string{`truncate processed_events_3`, `update event_ring set forgotten_count = 0`} {
		if _, err := b.pool.Exec(ctx, sql); err != nil {
			t.Errorf("%s: %v", sql, err)
		}
	}
}

func TestRights_OperatorAndReader(t *testing.T) {
	t.Parallel()
	url := testkit.LedgerURL(t)
	ctx := t.Context()
	operator, reader := as(t, url, "hookledger_operator"), as(t, url, "hookledger_reader")
	b := setupOn(t, operator)
	b.apply(paid(t, "evt_1", "alice", 1), event(t, "bad", body{Bad: schema.ReasonBadAmount}), paid(t, "evt_1", "alice", 2))
	if _, err := b.ledger.RaiseIncident(ctx, Incident{Severity: Info, Kind: "rewind"}); err != nil {
		t.Fatal(err)
	}
	if first, err := AcknowledgeIncident(ctx, operator, 1, "ops", "seen"); err != nil || !first {
		t.Errorf("acknowledge: got %v %v", first, err)
	}
	for _, sql := range []string{
		`update quarantined_events set resolved_at = now(), resolution = 'discarded'`,
		`update event_conflicts set resolved_at = now(), resolution = 'kept'`,
	} {
		if _, err := operator.Exec(ctx, sql); err != nil {
			t.Errorf("%s: %v", sql, err)
		}
	}
	for _, sql := range []string{`update ledger_entries set amount = 1`, `delete from ledger_entries`} {
		if _, err := operator.Exec(ctx, sql); !refused(err) {
			t.Errorf("%s: got %v, want permission denied", sql, err)
		}
	}
	for _, table := range []string{"processed_events", "ledger_entries", "accounts", "payment_states", "event_conflicts",
		"quarantined_events", "consumer_progress", "incidents", "event_ring", "hookledger_schema"} {
		if _, err := reader.Exec(ctx, `select * from `+table); err != nil {
			t.Errorf("reader: %v", err)
		}
		if _, err := reader.Exec(ctx, `delete from `+table); !refused(err) {
			t.Errorf("reader deletes from %s: got %v, want permission denied", table, err)
		}
	}
}
