package checker

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Tables is what Postgres holds, in the columns that are promised to everyone.
type Tables struct {
	Events      []Event
	Entries     []Entry
	Accounts    []Account
	Quarantined []Held
	Conflicts   []Held
	Progress    []Progress
	Incidents   []Incident
	States      []ObjectState
	Payments    []Payment
	// Unbalanced are accounts that SQL finds to differ from the sum of their entries.
	Unbalanced []Account
	// Unpaired are events that SQL finds applied without an entry, and entries
	// without an applied event.
	Unpaired []Ref
}

// Event is a row of processed_events.
type Event struct {
	Source, EventID, Type, Outcome string
	Topic                          string
	Partition                      int32
	Offset                         int64
	ProcessedAt                    time.Time
	BodySHA256                     []byte
}

// Ref names the event.
func (e *Event) Ref() Ref { return Ref{e.Source, e.EventID} }

// Entry is a row of ledger_entries. Source and EventID are empty in entries that do
// not come from an event.
type Entry struct {
	EntryID         int64
	MovementID      string
	Source, EventID string
	Line            int32
	AccountID       string
	Currency        string
	Amount          int64
	AppliedAt       time.Time
}

// Ref names the event of the entry.
func (e *Entry) Ref() Ref { return Ref{e.Source, e.EventID} }

// Account is a row of accounts.
type Account struct {
	AccountID, Currency string
	Balance, EntryCount int64
}

// Held is a row of quarantined_events or event_conflicts. Reason is empty in the latter.
type Held struct {
	Source, EventID string
	Partition       int32
	Offset          int64
	Reason          string
	Resolved        bool
}

// Ref names the event.
func (h *Held) Ref() Ref { return Ref{h.Source, h.EventID} }

// Progress is a row of consumer_progress.
type Progress struct {
	ClusterID, Topic string
	Partition        int32
	From, Next       int64
}

// Incident is a row of incidents. Partition is -1 if it concerns none.
type Incident struct {
	ID             int64
	Severity, Kind string
	Partition      int32
	RaisedAt       time.Time
}

// ObjectState is a row of payment_states.
type ObjectState struct {
	Source, Object, Status string
	Rank                   int64
	OccurredAt             time.Time
}

// Payment is a row of payments.
type Payment struct {
	PaymentID, From, To string
	Amount              int64
	Currency, Reference string
}

// ReadTables reads all tables in one read-only snapshot.
func ReadTables(ctx context.Context, url string) (Tables, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return Tables{}, fmt.Errorf("connect to read the tables: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return Tables{}, fmt.Errorf("begin reading the tables: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	return readAll(ctx, tx)
}

func readAll(ctx context.Context, tx pgx.Tx) (Tables, error) {
	var t Tables
	for _, read := range []func() error{
		func() error { return rows(ctx, tx, selectEvents, &t.Events) },
		func() error { return rows(ctx, tx, selectEntries, &t.Entries) },
		func() error { return rows(ctx, tx, selectAccounts, &t.Accounts) },
		func() error { return rows(ctx, tx, selectQuarantined, &t.Quarantined) },
		func() error { return rows(ctx, tx, selectConflicts, &t.Conflicts) },
		func() error { return rows(ctx, tx, selectProgress, &t.Progress) },
		func() error { return rows(ctx, tx, selectIncidents, &t.Incidents) },
		func() error { return rows(ctx, tx, selectStates, &t.States) },
		func() error { return rows(ctx, tx, selectPayments, &t.Payments) },
		func() error { return rows(ctx, tx, selectUnbalanced, &t.Unbalanced) },
		func() error { return rows(ctx, tx, selectUnpaired, &t.Unpaired) },
	} {
		if err := read(); err != nil {
			return t, err
		}
	}
	return t, nil
}

// rows reads a statement's rows into structs, by position.
func rows[T any](ctx context.Context, tx pgx.Tx, sql string, into *[]T) error {
	found, err := tx.Query(ctx, sql)
	if err == nil {
		*into, err = pgx.CollectRows(found, pgx.RowToStructByPos[T])
	}
	if err != nil {
		return fmt.Errorf("read tables (%s): %w", sql, err)
	}
	return nil
}

const (
	selectEvents = `select source, event_id, type, outcome, topic, partition, "offset", processed_at, body_sha256
		from processed_events order by partition, "offset"`
	selectEntries = `select entry_id, movement_id, coalesce(source, ''), coalesce(event_id, ''), line, account_id, currency, amount, applied_at
		from ledger_entries order by entry_id`
	selectAccounts    = `select account_id, currency, balance, entry_count from accounts order by account_id, currency`
	selectQuarantined = `select coalesce(source, ''), coalesce(event_id, ''), partition, "offset", reason, resolved_at is not null
		from quarantined_events order by partition, "offset"`
	selectConflicts = `select source, event_id, partition, "offset", '', resolved_at is not null
		from event_conflicts order by partition, "offset"`
	selectProgress  = `select cluster_id, topic, partition, from_offset, next_offset from consumer_progress order by partition`
	selectStates    = `select source, object, status, rank, occurred_at from payment_states order by source, object`
	selectPayments  = `select payment_id::text, from_account, to_account, amount, currency, reference from payments order by payment_id`
	selectIncidents = `select incident_id, severity, kind, coalesce(partition, -1), raised_at from incidents order by incident_id`

	// Sums are numeric in Postgres, so that they cannot overflow on the way.
	selectUnbalanced = `select coalesce(a.account_id, e.account_id), coalesce(a.currency, e.currency), coalesce(a.balance, 0), coalesce(a.entry_count, 0)
		from accounts a
		full join (select account_id, currency, sum(amount) as total, count(*) as n from ledger_entries group by account_id, currency) e
			on e.account_id = a.account_id and e.currency = a.currency
		where a.balance is distinct from e.total or a.entry_count is distinct from e.n
		order by 1, 2`
	selectUnpaired = `select source, event_id from processed_events p
			where outcome = 'applied' and not exists (select from ledger_entries l where l.source = p.source and l.event_id = p.event_id)
		union
		select source, event_id from ledger_entries l
			where event_id is not null and payment_id is null and amendment_id is null
			and not exists (select from processed_events p where p.source = l.source and p.event_id = l.event_id and p.outcome = 'applied')
		order by 1, 2`
)
