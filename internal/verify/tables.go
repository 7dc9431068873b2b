package verify

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"hookledger/schema"
)

// tables is what the tables say of each other.
type tables struct {
	accounts, entries, events int64

	balances       finding
	unfounded      finding
	moneyless      finding
	amounts        finding
	conflictHashes finding
	losses         finding

	quarantined finding
	conflicts   finding
	warnings    finding
	aged        finding
}

// readTables compares the tables with each other. Each statement is a snapshot by
// itself, and workers change what belongs together in one transaction, so none of
// them can be seen half done. A single long transaction would keep the oldest
// generation from being forgotten.
func readTables(ctx context.Context, pool *pgxpool.Pool) (tables, error) {
	var t tables
	if err := pool.QueryRow(ctx, sqlSizes).Scan(&t.accounts, &t.entries, &t.events); err != nil {
		return t, readError("the sizes of the tables", err)
	}
	if err := t.readFoundations(ctx, pool); err != nil {
		return t, err
	}
	for _, q := range []struct {
		into *finding
		what string
		sql  string
		args []any
	}{
		{&t.balances, "accounts and entries", sqlBalances, nil},
		{&t.moneyless, "applied events", sqlMoneyless, nil},
		{&t.amounts, "amounts", sqlAmounts, []any{int64(schema.MaxAmount)}},
		{&t.conflictHashes, "hashes of conflicts", sqlConflictHashes, nil},
		{&t.losses, "losses", sqlIncidents, []any{"loss"}},
		{&t.quarantined, "the quarantine", sqlQuarantined, nil},
		{&t.conflicts, "conflicts", sqlConflicts, nil},
		{&t.warnings, "warnings", sqlIncidents, []any{"warning"}},
	} {
		var err error
		if *q.into, err = find(ctx, pool, q.what, q.sql, q.args...); err != nil {
			return t, err
		}
	}
	return t, nil
}

// readFoundations asks what is behind each entry. An event that is forgotten while
// the statement runs would leave its entry without foundation: if the memory is
// another one afterwards, the question is asked again.
func (t *tables) readFoundations(ctx context.Context, pool *pgxpool.Pool) error {
	for {
		before, err := readMemory(ctx, pool)
		if err != nil {
			return err
		}
		if t.unfounded, err = find(ctx, pool, "entries", sqlUnfounded, before.vouchesFrom()); err != nil {
			return err
		}
		err = readOnly(ctx, pool, sqlByScan, func(tx pgx.Tx) error {
			return tx.QueryRow(ctx, sqlAged, before.vouchesFrom()).Scan(&t.aged.count)
		})
		if err != nil {
			return readError("entries older than the memory of events", err)
		}
		after, err := readMemory(ctx, pool)
		if err != nil {
			return err
		}
		if after.begins.Equal(before.begins) {
			return nil
		}
	}
}

// find runs a statement that lists what breaks a rule.
func find(ctx context.Context, pool *pgxpool.Pool, what, sql string, args ...any) (finding, error) {
	var f finding
	err := readOnly(ctx, pool, sqlByScan, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, sql, append([]any{sampleSize}, args...)...)
		if err != nil {
			return err
		}
		var s sample
		_, err = pgx.ForEachRow(rows, []any{&f.count, &s.id, &s.text}, func() error {
			// The words hold IDs as they are in the table.
			f.sample = append(f.sample, sample{id: s.id, text: plain(s.text)})
			return nil
		})
		return err
	})
	if err != nil {
		return finding{}, readError(what, err)
	}
	return f, nil
}

// readOnly runs use in a transaction that cannot write, READ COMMITTED whatever the
// database's default, with settings of its own.
func readOnly(ctx context.Context, pool *pgxpool.Pool, settings string, use func(pgx.Tx) error) error {
	opts := pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadOnly}
	return pgx.BeginTxFunc(ctx, pool, opts, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, settings); err != nil {
			return fmt.Errorf("set the planner: %w", err)
		}
		return use(tx)
	})
}

// clockSlack is how far clocks of different machines may lie apart where a time of
// one is compared with a time of another, and longer than a worker's transaction.
const clockSlack = 5 * time.Minute

// memory is how far back the memory of events reaches. Zero begins: to the start of
// everything.
type memory struct {
	begins time.Time
}

func readMemory(ctx context.Context, pool *pgxpool.Pool) (memory, error) {
	var begins *time.Time
	if err := pool.QueryRow(ctx, sqlMemory).Scan(&begins); err != nil {
		return memory{}, readError("the memory of events", err)
	}
	if begins == nil {
		return memory{}, nil
	}
	return memory{begins: *begins}, nil
}

// vouchesFrom is the time from which on every event that was applied has a row.
func (m memory) vouchesFrom() time.Time {
	if m.begins.IsZero() {
		// Before every timestamp there is in a ledger, and within Postgres's range.
		return time.Unix(0, 0)
	}
	return m.begins.Add(clockSlack)
}

// mayHaveForgotten says whether the row of an event may be gone. A row lies in the
// generation that was open when the event was first processed, which was after it was
// received for the first time, which was after it occurred. A record that repeats an
// event leaves no row: when it was received itself is not enough to expect one.
func (m memory) mayHaveForgotten(s *seen) bool {
	first := s.receivedAt
	if !s.occurredAt.IsZero() && s.occurredAt.Before(first) {
		first = s.occurredAt
	}
	return !m.begins.IsZero() && first.Before(m.vouchesFrom())
}
