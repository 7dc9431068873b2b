package verify

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"hookledger/schema"
)

// tables is what the tables say of each other.
type tables struct {
	// settings are how statements about the ledger are planned; through is the entry up
	// to which a mark covers it.
	settings string
	through  int64

	accounts, entries, events int64

	balances       finding
	unfounded      finding
	moneyless      finding
	amounts        finding
	conflictHashes finding
	losses         finding
	untraced       finding

	quarantined finding
	conflicts   finding
	warnings    finding
	aged        finding
}

// readTables compares the tables with each other. Each statement is a snapshot by
// itself, and workers change what belongs together in one transaction, so none of
// them can be seen half done. A single long transaction would keep the oldest
// generation from being forgotten.
//
// Beside a mark, entries and conflicts that it covers are left out, balances are
// compared by advance, and applied events without entries by the batches.
func readTables(ctx context.Context, pool *pgxpool.Pool, since *Mark) (tables, error) {
	t := tables{settings: plannerFor(since)}
	var conflictsFrom time.Time
	if since != nil {
		t.through, conflictsFrom = since.Entries.Through, since.ProvedAt.Add(-time.Hour)
	} else {
		conflictsFrom = time.Unix(0, 0)
	}
	if since == nil {
		if err := pool.QueryRow(ctx, sqlSizes).Scan(&t.accounts, &t.entries, &t.events); err != nil {
			return t, readError("the sizes of the tables", err)
		}
	}
	if err := t.readFoundations(ctx, pool); err != nil {
		return t, err
	}
	for _, q := range []struct {
		into  *finding
		what  string
		whole bool // left out beside a mark
		sql   string
		args  []any
	}{
		{&t.balances, "accounts and entries", true, sqlBalances, nil},
		{&t.moneyless, "applied events", true, sqlMoneyless, nil},
		{&t.amounts, "amounts", false, sqlAmounts, []any{int64(schema.MaxAmount), t.through}},
		{&t.conflictHashes, "hashes of conflicts", false, sqlConflictHashes, []any{conflictsFrom}},
		{&t.losses, "losses", false, sqlIncidents, []any{"loss"}},
		{&t.quarantined, "the quarantine", false, sqlQuarantined, nil},
		{&t.conflicts, "conflicts", false, sqlConflicts, nil},
		{&t.warnings, "warnings", false, sqlIncidents, []any{"warning"}},
	} {
		if q.whole && since != nil {
			continue
		}
		var err error
		if *q.into, err = find(ctx, pool, t.settings, q.what, q.sql, q.args...); err != nil {
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
		if t.unfounded, err = find(ctx, pool, t.settings, "entries", sqlUnfounded, before.vouchesFrom(), t.through); err != nil {
			return err
		}
		err = readOnly(ctx, pool, t.settings, func(tx pgx.Tx) error {
			return tx.QueryRow(ctx, sqlAged, before.vouchesFrom(), t.through).Scan(&t.aged.count)
		})
		if err != nil {
			return readError("entries older than the memory of events", err)
		}
		if t.untraced, err = readUntraced(ctx, pool, t.settings, before.vouchesFrom()); err != nil {
			return err
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

// unreadable are the reasons for which a record is no event to anybody: whoever decides
// about it leaves no row of an event.
var unreadable = []string{"not_an_event", "null_value", "bad_header", "key_mismatch", "body_hash_mismatch"}

// resolvedRow is a record that left the quarantine.
type resolvedRow struct {
	source, id string
	text       string
}

// readUntraced finds records that left the quarantine without a trace. A worker or a
// person who settles one writes what became of its event in the same transaction. Only
// records that came since memory begins are asked for: their rows are still there.
func readUntraced(ctx context.Context, pool *pgxpool.Pool, settings string, from time.Time) (finding, error) {
	var f finding
	var rows []resolvedRow
	err := readOnly(ctx, pool, settings, func(tx pgx.Tx) error {
		res, err := tx.Query(ctx, sqlResolved, from, unreadable)
		if err != nil {
			return err
		}
		var r resolvedRow
		_, err = pgx.ForEachRow(res, []any{&r.source, &r.id, &r.text}, func() error {
			rows = append(rows, r)
			return nil
		})
		return err
	})
	if err != nil {
		return f, readError("what left the quarantine", err)
	}
	for part := range slices.Chunk(rows, batchRecords) {
		keys := make([][16]byte, len(part))
		for i, r := range part {
			keys[i] = schema.KeyOf(r.source, r.id)
		}
		err := readOnly(ctx, pool, sqlByIndex, func(tx pgx.Tx) error {
			res, err := tx.Query(ctx, sqlUnrecorded, keys)
			if err != nil {
				return err
			}
			var i int64
			_, err = pgx.ForEachRow(res, []any{&i}, func() error {
				r := part[i-1]
				f.add(r.id, fmt.Sprintf("%s, %s", label(r.source+"/"+r.id), plain(r.text)))
				return nil
			})
			return err
		})
		if err != nil {
			return f, readError("the events of what left the quarantine", err)
		}
	}
	return f, nil
}

// find runs a statement that lists what breaks a rule.
func find(ctx context.Context, pool *pgxpool.Pool, settings, what, sql string, args ...any) (finding, error) {
	var f finding
	err := readOnly(ctx, pool, settings, func(tx pgx.Tx) error {
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

// plannerFor are the settings for statements about the ledger: whole tables, or the
// entries behind a mark.
func plannerFor(since *Mark) string {
	if since == nil {
		return sqlByScan
	}
	return sqlByIndex
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
