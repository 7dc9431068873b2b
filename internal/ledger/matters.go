package ledger

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Matters are what waits for a person, each counted up to mattersLimit.
type Matters struct {
	// Quarantined are records set aside and not resolved, Conflicts events told twice
	// with another meaning.
	Quarantined, Conflicts int
	// Warnings and Losses are incidents of that severity that nobody acknowledged. Those
	// for information wait for nobody.
	Warnings, Losses int
}

// mattersLimit bounds the counting: beyond it a person has enough to do.
const mattersLimit = 10_000

// Three tables that are small where things go well; no index is kept for them, since
// they are looked at twice a minute.
const selectMatters = `
select
    (select count(*) from (select from quarantined_events where resolved_at is null limit $1) q),
    (select count(*) from (select from event_conflicts where resolved_at is null limit $1) c),
    (select count(*) from (select from incidents where acknowledged_at is null and severity = 'warning' limit $1) w),
    (select count(*) from (select from incidents where acknowledged_at is null and severity = 'loss' limit $1) l)`

// OpenMatters counts what waits for a person.
func (l *Ledger) OpenMatters(ctx context.Context) (Matters, error) {
	var m Matters
	err := l.pool.QueryRow(ctx, selectMatters, pgx.QueryExecModeExec, mattersLimit).Scan(&m.Quarantined, &m.Conflicts, &m.Warnings, &m.Losses)
	if err != nil {
		return Matters{}, fmt.Errorf("count open matters: %w", err)
	}
	return m, nil
}
