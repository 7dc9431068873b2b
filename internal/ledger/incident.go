package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Severity of an incident.
type Severity string

// The severities.
const (
	// Info: worth knowing, nothing to do.
	Info Severity = "info"
	// Warning: a person should look.
	Warning Severity = "warning"
	// Loss: records are gone, or may be.
	Loss Severity = "loss"
)

// Incident is something that a person must be able to see later.
type Incident struct {
	// ID, RaisedAt and what is said of the acknowledgement are set by Postgres.
	ID             int64
	RaisedAt       time.Time
	AcknowledgedAt time.Time
	AcknowledgedBy string
	// AcknowledgedReason is empty for those acknowledged without one.
	AcknowledgedReason string

	Severity Severity
	Kind     string
	// Topic is empty, and the others nil, where the incident is not about a partition.
	Topic     string
	Partition *int32
	// From and To bound the offsets it is about: From included, To not.
	From, To *int64
	// Detail is a JSON object; nil means an empty one.
	Detail json.RawMessage
	// Once, if set, is a key under which this incident exists at most once, so that a
	// retry does not raise it again.
	Once string
}

// ErrNoIncident says that no incident has the given ID or key.
var ErrNoIncident = errors.New("no such incident")

// RaiseIncident writes i down, in a transaction of its own. It reports false, and no
// error, if i.Once is set and the incident exists.
func (l *Ledger) RaiseIncident(ctx context.Context, i Incident) (bool, error) {
	raised, err := raise(ctx, l.pool, &i)
	if err != nil {
		return false, fmt.Errorf("raise incident %s: %w", i.Kind, err)
	}
	return raised, nil
}

// querier is a pool or a transaction.
type querier interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

func raise(ctx context.Context, q querier, i *Incident) (bool, error) {
	detail := i.Detail
	if detail == nil {
		detail = json.RawMessage("{}")
	}
	tag, err := q.Exec(ctx, queryRaise.sql, pgx.QueryExecModeExec, string(i.Severity), i.Kind, optional(i.Topic), i.Partition,
		i.From, i.To, string(detail), optional(i.Once))
	return tag.RowsAffected() == 1, err
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// AcknowledgeIncident notes that by has seen the incident, and why it is dealt with. It
// fails with ErrNoIncident, and reports false if it was acknowledged before; the first one
// stays on record. It needs the rights of hookledger_operator.
func AcknowledgeIncident(ctx context.Context, pool *pgxpool.Pool, id int64, by, reason string) (bool, error) {
	tag, err := pool.Exec(ctx, queryAcknowledge.sql, pgx.QueryExecModeExec, id, by, optional(reason))
	if err != nil {
		return false, fmt.Errorf("acknowledge incident %d: %w", id, err)
	}
	if tag.RowsAffected() == 1 {
		return true, nil
	}
	var one int
	err = pool.QueryRow(ctx, queryIncidentExists.sql, pgx.QueryExecModeExec, id).Scan(&one)
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNoIncident
	}
	if err != nil {
		return false, fmt.Errorf("acknowledge incident %d: %w", id, err)
	}
	return false, nil
}

// FindIncident returns the incident raised with the key once, or ErrNoIncident.
func (l *Ledger) FindIncident(ctx context.Context, once string) (Incident, error) {
	rows, err := l.pool.Query(ctx, queryIncidentOnce.sql, pgx.QueryExecModeExec, once)
	if err != nil {
		return Incident{}, fmt.Errorf("find incident %s: %w", once, err)
	}
	i, err := pgx.CollectExactlyOneRow(rows, scanIncident)
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNoIncident
	}
	if err != nil {
		return Incident{}, fmt.Errorf("find incident %s: %w", once, err)
	}
	return i, nil
}

// ListIncidents returns the incidents, newest first; open leaves out those that are
// acknowledged.
func ListIncidents(ctx context.Context, pool *pgxpool.Pool, open bool) ([]Incident, error) {
	rows, err := pool.Query(ctx, queryIncidents.sql, pgx.QueryExecModeExec, open)
	if err != nil {
		return nil, fmt.Errorf("list incidents: %w", err)
	}
	list, err := pgx.CollectRows(rows, scanIncident)
	if err != nil {
		return nil, fmt.Errorf("list incidents: %w", err)
	}
	return list, nil
}

func scanIncident(row pgx.CollectableRow) (Incident, error) {
	var i Incident
	var topic, once, by, reason *string
	var acknowledged *time.Time
	var detail string
	err := row.Scan(&i.ID, &i.Severity, &i.Kind, &topic, &i.Partition, &i.From, &i.To, &detail, &once, &i.RaisedAt, &acknowledged, &by, &reason)
	i.Detail = json.RawMessage(detail)
	for _, s := range []struct {
		from *string
		to   *string
	}{{topic, &i.Topic}, {once, &i.Once}, {by, &i.AcknowledgedBy}, {reason, &i.AcknowledgedReason}} {
		if s.from != nil {
			*s.to = *s.from
		}
	}
	if acknowledged != nil {
		i.AcknowledgedAt = *acknowledged
	}
	return i, err
}

// waits raises the incident of a record that waits, and returns what Apply returns.
func (l *Ledger) waits(ctx context.Context, b *Batch, w *WaitError) error {
	detail, err := json.Marshal(map[string]string{"reason": storable(w.Detail)})
	if err != nil {
		return errors.Join(w, err)
	}
	end := w.Offset + 1
	_, err = l.RaiseIncident(ctx, Incident{
		Severity: Warning, Kind: w.Kind, Topic: b.Topic, Partition: &b.Partition, From: &w.Offset, To: &end, Detail: detail,
		Once: fmt.Sprintf("%s/%x/%d/%d", w.Kind, b.TopicID, b.Partition, w.Offset),
	})
	if err != nil {
		return errors.Join(w, err) // the next try raises it
	}
	return w
}

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
