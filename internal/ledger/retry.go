package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"hookledger/schema"
)

// Held names what waits for a person: a record in quarantine by its id, or a conflict by
// its conflict_id.
type Held struct {
	Conflict bool
	ID       int64
}

// String is the number, with a c before that of a conflict.
func (h Held) String() string {
	if h.Conflict {
		return "c" + strconv.FormatInt(h.ID, 10)
	}
	return strconv.FormatInt(h.ID, 10)
}

// Decision is who decided and why.
type Decision struct {
	// By is a name, Reason may be empty for a retry.
	By, Reason string
	// DryRun does the same work and rolls it back: what it reports is what would happen.
	DryRun bool
}

// Resolved is what became of what was held.
type Resolved struct {
	Held Held
	// Source and EventID are empty where the record does not say.
	Source, EventID string
	// Outcome is that of the record.
	Outcome Outcome
	// Stays says that it is held as before, for Reason and Detail.
	Stays          bool
	Reason, Detail string
	// Moves are what the accounts gain or lose, by account and currency.
	Moves []Move
}

// Move is what one balance gains or, if negative, loses, in minor units.
type Move struct {
	Account, Currency string
	Amount            int64
}

// ErrNotHeld says that nothing with this number is, or ever was, in quarantine or in
// conflict.
var ErrNotHeld = errors.New("nothing has this number in quarantine")

// ErrResolvedBefore says that it was decided before: that stands.
var ErrResolvedBefore = errors.New("resolved before")

// Retry applies what is held as if it came today, with today's mapping: an ordinary first
// application, through the walls that every record meets, in one transaction with the note
// that it is resolved. It touches no progress, so workers may run. What still cannot be
// applied stays, and Resolved says why.
//
// Errors: ErrNotHeld; ErrResolvedBefore; *WaitError if the source or the version is not
// known here. After any other error nothing is known: asking again is safe.
func (l *Ledger) Retry(ctx context.Context, h Held, d Decision) (Resolved, error) {
	return l.settle(ctx, h, d, wordRetried, (*planner).decide)
}

// Discard closes what is held for d.Reason. The event of a quarantined record gets a row
// that says discarded, and blocks a later replay for as long as events are remembered
// (dedupe.keep, which is longer than the topic's retention); if the event was applied
// meanwhile, from another record, it stands. A record that is no event has no row: its place in quarantine
// blocks. A discarded conflict leaves the event as it is. Errors as of Retry.
func (l *Ledger) Discard(ctx context.Context, h Held, d Decision) (Resolved, error) {
	return l.settle(ctx, h, d, wordDiscarded, (*planner).discard)
}

// The words of a resolution by a person.
const (
	wordRetried   = "retried"
	wordDiscarded = "discarded"
)

// reasonConflict is why a conflict stays one.
const reasonConflict = "conflict"

// discard makes the plan of a decision against records.
func (p *planner) discard(items []item) (*plan, error) {
	p.plan = &plan{items: items, candidates: make(map[schema.EventKey]*candidate)}
	for i := range items {
		it := &items[i]
		it.outcome = Discarded
		stored := p.known[it.key]
		if it.decodeErr != nil || stored != nil && (stored.forgotten || stored.outcome.blocks()) {
			continue
		}
		c := &candidate{item: it, stored: stored, outcome: Discarded}
		p.plan.candidates[it.key] = c
		p.plan.order = append(p.plan.order, c)
	}
	return p.plan, nil
}

// settle decides about h with plan, and runs again where another transaction was faster
// or where the data turned out to be refused.
func (l *Ledger) settle(ctx context.Context, h Held, d Decision, word string, decide func(*planner, []item) (*plan, error)) (Resolved, error) {
	s := &settling{ledger: l, held: h, decision: d, word: word, decide: decide, aside: map[bodyID]*dataError{}}
	for rerun := 0; ; rerun++ {
		done, err := s.once(ctx)
		var again *asideError
		bad, isData := isDataError(err)
		switch {
		case err == nil:
			return done, nil
		case errors.As(err, &again):
			for id, bad := range again.bodies {
				s.aside[id] = bad
			}
		case isData && s.aside[s.body] == nil:
			s.aside[s.body] = bad
		case !errors.Is(err, errRace) && !isTransient(err):
			rerun = maxReruns
		}
		if rerun >= maxReruns {
			return done, fmt.Errorf("%s %s: %w", map[string]string{wordRetried: "retry", wordDiscarded: "discard"}[word], h, err)
		}
	}
}

// isTransient tells of a deadlock or a row that moved: nothing was done.
func isTransient(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "40P01" || pg.Code == "40001")
}

// settling is one Retry or Discard.
type settling struct {
	ledger   *Ledger
	held     Held
	decision Decision
	word     string
	decide   func(*planner, []item) (*plan, error)
	aside    map[bodyID]*dataError
	// body is what the record of the last attempt holds.
	body bodyID
}

// once is one transaction. Its order of locks is that of Apply, without the progress.
func (s *settling) once(ctx context.Context) (Resolved, error) {
	done := Resolved{Held: s.held}
	row, err := s.read(ctx)
	if err != nil {
		return done, err
	}
	done.Source, done.EventID = row.source.String, row.eventID.String
	batch := Batch{Position: row.position, Start: row.record.Offset, Records: []Record{row.record}}
	items, wait := decode(batch.Records)
	if wait != nil {
		return done, wait
	}
	s.body = items[0].bodyID()

	conn, err := s.ledger.pool.Acquire(ctx)
	if err != nil {
		return done, fmt.Errorf("acquire connection: %w", err)
	}
	t := &transaction{conn: conn, unprepared: &s.ledger.unprepared}
	defer t.end(ctx)
	p := &planner{mapper: s.ledger.mapper, aside: s.aside, known: make(map[schema.EventKey]*known)}
	if err := s.look(ctx, t, p, items); err != nil {
		return done, err
	}
	plan, err := s.decide(p, items)
	if err != nil {
		return done, err
	}
	if plan.wait != nil {
		return done, plan.wait
	}
	it := &items[0]
	if s.stays(p, it) {
		done.Outcome, done.Stays, done.Reason, done.Detail = it.outcome, true, it.reason, it.detail
		return done, nil
	}
	if s.held.Conflict && s.word == wordDiscarded {
		plan.order = nil // the event stands as it is
	}
	r := &run{ledger: s.ledger, batch: &batch, aside: s.aside}
	if err := r.lock(ctx, t, plan); err != nil {
		return done, classify(err)
	}
	w := newWriting(&batch, plan, batch.Start)
	if err := w.write(ctx, t); err != nil {
		return done, classify(err)
	}
	if err := w.weigh(ctx, t); err != nil {
		return done, err
	}
	if err := s.commit(ctx, t, w, row); err != nil {
		return done, classify(err)
	}
	done.Outcome, done.Moves = it.outcome, w.moves()
	return done, nil
}

// stays tells whether the record is held as before. A conflict with an event of which only
// the entries are known cannot be compared any more, so nothing is decided by looking.
func (s *settling) stays(p *planner, it *item) bool {
	if s.held.Conflict && s.word == wordRetried {
		if k := p.known[it.key]; k != nil && k.forgotten {
			it.outcome = Conflict
		}
		if it.outcome == Conflict {
			it.reason, it.detail = reasonConflict, "the event stands with another meaning"
		}
		return it.outcome == Conflict || it.outcome == Quarantined
	}
	return it.outcome == Quarantined
}

// look begins the transaction and reads what is known of the event.
func (s *settling) look(ctx context.Context, t *transaction, p *planner, items []item) error {
	calls := []call{{query: queryBegin}, {query: querySettings, args: s.ledger.settings}}
	if items[0].decodeErr == nil {
		column := sortedKeys([]schema.EventKey{items[0].key})
		calls = append(calls, call{query: queryKnown, args: []arg{column.arg()}, row: func(v [][]byte) error { return readKnown(v, p.known) }})
	}
	err := t.trip(ctx, calls...)
	if err != nil || s.held.Conflict {
		return err // that this body is a conflict is what is decided anew
	}
	p.knownConflicts, err = lookConflicts(ctx, t, items, p.known)
	return err
}

// commit adds to the balances, notes the decision and commits, in one write; a dry run
// does all but the last.
func (s *settling) commit(ctx context.Context, t *transaction, w *writing, row *heldRow) error {
	calls, err := w.effects()
	if err != nil {
		return err
	}
	d := s.decision
	note := []arg{textArg(s.word), textArg(d.By), textArg(d.Reason)}
	if s.held.Conflict {
		calls = append(calls, call{query: queryResolveConflict, args: append(note, uuidArg(row.key), arg{oidBytea, row.hash})})
	} else {
		calls = append(calls, call{query: queryResolveHeld, args: append(note, int8Arg(s.held.ID))})
	}
	if !d.DryRun {
		calls = append(calls, call{query: queryNoTimeout}, call{query: queryCommit})
	}
	return t.trip(ctx, calls...)
}

// moves are the sums that the written entries add to balances.
func (w *writing) moves() []Move {
	sums, err := w.sums()
	if err != nil {
		return nil // committed, so they fit
	}
	list := make([]Move, len(sums))
	for i, s := range sums {
		list[i] = Move{s.id, s.currency, s.amount}
	}
	return list
}

// heldRow is a row of quarantined_events or event_conflicts.
type heldRow struct {
	position        Position
	record          Record
	source, eventID pgtype.Text
	// key and hash are the primary key of a conflict.
	key  [16]byte
	hash []byte
}

// read reads what is held, and refuses what was decided before.
func (s *settling) read(ctx context.Context) (*heldRow, error) {
	q := queryHeld
	if s.held.Conflict {
		q = queryHeldConflict
	}
	var row heldRow
	var id, key pgtype.UUID
	var resolvedAt *time.Time
	var resolution, by pgtype.Text
	var headers []byte
	err := s.ledger.pool.QueryRow(ctx, q.sql, pgx.QueryExecModeExec, s.held.ID).Scan(
		&row.position.Topic, &id, &row.position.Partition, &row.record.Offset, &row.record.Timestamp, &row.source, &row.eventID,
		&row.record.Key, &headers, &row.record.Value, &resolvedAt, &resolution, &by, &key, &row.hash)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, ErrNotHeld
	case err != nil:
		return nil, fmt.Errorf("%s: %w", q.name, err)
	case resolvedAt != nil:
		who := "a worker"
		if by.Valid {
			who = by.String
		}
		return nil, fmt.Errorf("%w: %s by %s at %s", ErrResolvedBefore, resolution.String, who, resolvedAt.UTC().Format(time.RFC3339))
	}
	row.position.TopicID, row.key = id.Bytes, key.Bytes
	row.record.Partition = row.position.Partition
	row.record.Headers, err = DecodeHeaders(headers)
	return &row, err
}

// DecodeHeaders reads the headers column of quarantined_events and event_conflicts: every
// byte, in order.
func DecodeHeaders(column []byte) ([]schema.Header, error) {
	var list []storedHeader
	if err := json.Unmarshal(column, &list); err != nil {
		return nil, fmt.Errorf("read stored headers: %w", err)
	}
	headers := make([]schema.Header, len(list))
	for i, s := range list {
		h := schema.Header{Key: string(s.KeyBase64), Value: s.ValueBase64}
		if s.Key != nil {
			h.Key = *s.Key
		}
		if s.Value != nil {
			h.Value = []byte(*s.Value)
		}
		headers[i] = h
	}
	return headers, nil
}

// Index: quarantined_events_pkey.
var queryHeld = query{"read quarantined record", `
select topic, topic_id, partition, "offset", record_time, source, event_id,
       record_key, headers::text, body, resolved_at, resolution, resolved_by, null::uuid, null::bytea
  from quarantined_events
 where id = $1`}

// Index: none; conflicts are few, or there is a larger problem.
var queryHeldConflict = query{"read conflict", `
select topic, topic_id, partition, "offset", received_at, source, event_id,
       convert_to(event_id, 'UTF8'), headers::text, body, resolved_at, resolution, resolved_by, event_key, body_sha256
  from event_conflicts
 where conflict_id = $1`}

// queryResolveHeld notes a decision ($1 word, $2 who, $3 why). The division is a guard:
// it fails with 22012 if somebody decided first.
// Index: quarantined_events_pkey.
var queryResolveHeld = query{"resolve quarantined record", `
with resolved as (
	update quarantined_events
	   set resolved_at = now(), resolution = $1, resolved_by = $2, resolved_reason = nullif($3, '')
	 where id = $4 and resolved_at is null
	returning 1
)
select 1 / (count(*) = 1)::int from resolved`}

// Index: event_conflicts_once.
var queryResolveConflict = query{"resolve conflict", `
with resolved as (
	update event_conflicts
	   set resolved_at = now(), resolution = $1, resolved_by = $2, resolved_reason = nullif($3, '')
	 where event_key = $4 and body_sha256 = $5 and resolved_at is null
	returning 1
)
select 1 / (count(*) = 1)::int from resolved`}

// queryNoTimeout: a COMMIT that is cancelled while it waits for a standby has committed.
var queryNoTimeout = query{"end the statement timeout", `select set_config('statement_timeout', '0', true)`}
