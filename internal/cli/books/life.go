package books

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"hookledger/internal/cli/app"
	"hookledger/internal/cli/console"
	"hookledger/internal/ledger"
	"hookledger/schema"
)

// life is everything on record about one event ID of one source.
type life struct {
	Event *event `json:"event"`
	// Records are those that the tables name: the event's, its conflicts', its quarantine's.
	Records []record `json:"records"`
	Outcome string   `json:"outcome"`
	// Entries are the event's and those of its amendments.
	Entries     []entry       `json:"entries"`
	Conflicts   []conflict    `json:"conflicts"`
	Quarantined []quarantined `json:"quarantined"`
	Amendments  []amendment   `json:"amendments"`
	// Replays are those that had, or would have, its records applied again.
	Replays []replayed `json:"replays"`

	source, id string
}

// record is a record of the topic.
type record struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
	// Of is event, conflict or quarantined.
	Of string `json:"of"`
	// Time and Headers are null, and Missing says why, if the topic was not asked or does
	// not hold the record any more.
	Time    *string          `json:"time"`
	Headers []console.Header `json:"headers"`
	Missing *string          `json:"missing"`
}

type conflict struct {
	ConflictID     int64   `json:"conflict_id"`
	Partition      int32   `json:"partition"`
	Offset         int64   `json:"offset"`
	SeenAt         *string `json:"seen_at"`
	ResolvedAt     *string `json:"resolved_at"`
	BodySHA256     string  `json:"body_sha256"`
	Resolution     *string `json:"resolution"`
	ResolvedBy     *string `json:"resolved_by"`
	ResolvedReason *string `json:"resolved_reason"`
}

type quarantined struct {
	ID             int64   `json:"id"`
	Partition      int32   `json:"partition"`
	Offset         int64   `json:"offset"`
	Reason         string  `json:"reason"`
	Detail         string  `json:"detail"`
	QuarantinedAt  *string `json:"quarantined_at"`
	ResolvedAt     *string `json:"resolved_at"`
	Resolution     *string `json:"resolution"`
	ResolvedBy     *string `json:"resolved_by"`
	ResolvedReason *string `json:"resolved_reason"`
}

type amendment struct {
	AmendmentID string  `json:"amendment_id"`
	Kind        string  `json:"kind"`
	Reason      string  `json:"reason"`
	AmendedBy   string  `json:"amended_by"`
	AmendedAt   *string `json:"amended_at"`
}

func (l *life) known() bool {
	return l.Event != nil || len(l.Entries)+len(l.Conflicts)+len(l.Quarantined) > 0
}

// findLife reads the life of the event ID, of the one source of sources that knows it.
func findLife(ctx context.Context, tx pgx.Tx, sources []string, id string) (life, error) {
	var found []life
	for _, s := range sources {
		l, err := readLife(ctx, tx, s, id)
		if err != nil {
			return life{}, err
		}
		if l.known() {
			found = append(found, l)
		}
	}
	switch len(found) {
	case 0:
		return life{}, fmt.Errorf("event %s of %s is not on record: it may still be in the topic unread, or was never accepted",
			strconv.Quote(id), strings.Join(sources, ", "))
	case 1:
		return found[0], nil
	}
	return life{}, app.Usage(errors.New("several sources know this event ID: name one with --source"))
}

func readLife(ctx context.Context, tx pgx.Tx, source, id string) (life, error) {
	key := pgtype.UUID{Bytes: schema.KeyOf(source, id), Valid: true}
	l := life{Records: []record{}, Entries: []entry{}, Conflicts: []conflict{}, Quarantined: []quarantined{}, Amendments: []amendment{}, Replays: []replayed{}, source: source, id: id}
	events, err := collect(ctx, tx, scanEvent, sqlEvent, key)
	if err != nil {
		return l, err
	}
	if len(events) > 0 {
		e := &events[0]
		l.Event, l.Outcome = e, e.Outcome
		l.Records = append(l.Records, record{Topic: e.Topic, Partition: e.Partition, Offset: e.Offset, Of: "event"})
	}
	if l.Entries, err = collect(ctx, tx, scanEntry, sqlEntriesOfEvent, key); err != nil {
		return l, err
	}
	if l.Conflicts, err = collect(ctx, tx, l.scanConflict, sqlConflictsOfEvent, key); err != nil {
		return l, err
	}
	if l.Quarantined, err = collect(ctx, tx, l.scanQuarantined, sqlQuarantineOfEvent, source, id); err != nil {
		return l, err
	}
	l.Amendments, err = collect(ctx, tx, scanAmendment, sqlAmendmentsOfEvent, key)
	if l.Event == nil {
		l.Outcome = l.outcomeWithoutEvent()
	}
	if err == nil {
		err = l.readReplays(ctx, tx)
	}
	return l, err
}

// collect reads rows into a list that is never null in JSON.
func collect[T any](ctx context.Context, tx pgx.Tx, scan pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	rows, err := tx.Query(ctx, sql, append([]any{pgx.QueryExecModeExec}, args...)...)
	if err != nil {
		return nil, err
	}
	return pgx.AppendRows([]T{}, rows, scan)
}

// outcomeWithoutEvent is the outcome of an event that has no row: forgotten, or never
// applied.
func (l *life) outcomeWithoutEvent() string {
	if len(l.Entries) > 0 {
		return "applied"
	}
	for _, q := range l.Quarantined {
		if q.ResolvedAt == nil {
			return "quarantined"
		}
	}
	return ""
}

func (l *life) scanConflict(row pgx.CollectableRow) (conflict, error) {
	var c conflict
	var topic string
	var received, seen time.Time
	var resolved *time.Time
	var headers, hash []byte
	err := row.Scan(&c.ConflictID, &topic, &c.Partition, &c.Offset, &received, &headers, &seen, &resolved, &hash,
		&c.Resolution, &c.ResolvedBy, &c.ResolvedReason)
	if err != nil {
		return c, err
	}
	c.SeenAt, c.ResolvedAt, c.BodySHA256 = console.JSONTime(seen), jsonTime(resolved), fmt.Sprintf("%x", hash)
	return c, l.stored(record{Topic: topic, Partition: c.Partition, Offset: c.Offset, Of: "conflict", Time: console.JSONTime(received)}, headers)
}

func (l *life) scanQuarantined(row pgx.CollectableRow) (quarantined, error) {
	var q quarantined
	var topic string
	var recorded, at time.Time
	var resolved *time.Time
	var headers []byte
	err := row.Scan(&q.ID, &topic, &q.Partition, &q.Offset, &recorded, &headers, &q.Reason, &q.Detail, &at, &resolved,
		&q.Resolution, &q.ResolvedBy, &q.ResolvedReason)
	if err != nil {
		return q, err
	}
	q.QuarantinedAt, q.ResolvedAt = console.JSONTime(at), jsonTime(resolved)
	return q, l.stored(record{Topic: topic, Partition: q.Partition, Offset: q.Offset, Of: "quarantined", Time: console.JSONTime(recorded)}, headers)
}

// stored adds a record whose headers a table keeps.
func (l *life) stored(r record, headers []byte) error {
	list, err := ledger.DecodeHeaders(headers)
	r.Headers = console.Headers(list)
	l.Records = append(l.Records, r)
	return err
}

func scanAmendment(row pgx.CollectableRow) (amendment, error) {
	var m amendment
	var at time.Time
	err := row.Scan(&m.AmendmentID, &m.Kind, &m.Reason, &m.AmendedBy, &at)
	m.AmendedAt = console.JSONTime(at)
	return m, err
}

func jsonTime(t *time.Time) *string {
	if t == nil {
		return nil
	}
	return console.JSONTime(*t)
}
