package ledger

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"hookledger/schema"
)

// statusMove is what one record says of an object's status, in offset order.
type statusMove struct {
	item   *item
	status schema.Status
	// candidate is the row that comes from this record, or that stands in this batch.
	candidate *candidate
	// replaces: the event was known (stored, or candidate of this batch), and takes
	// this record's meaning if the move is not stale.
	replaces bool
	stored   *known
	hash     schema.MeaningHash
}

// object names a payment state.
type object struct{ source, object string }

func compareObjects(a, b object) int {
	return cmp.Or(strings.Compare(a.source, b.source), strings.Compare(a.object, b.object))
}

// state is a payment state, as locked or as it will be written.
type state struct {
	occurredAt time.Time
	rank       int64
	status     string
	// by is the record that moved it; nil as long as it is as it was read.
	by *item
}

// compare orders states by (occurred_at, rank), never by arrival; the status breaks
// ties, so that every order of arrival ends in the same state. Postgres keeps
// microseconds, so that is what is compared.
func (s *state) compare(o *state) int {
	return cmp.Or(s.occurredAt.Compare(o.occurredAt), cmp.Compare(s.rank, o.rank), strings.Compare(s.status, o.status))
}

func newState(s *schema.Status, by *item) *state {
	at := s.OccurredAt
	if at.IsZero() {
		at = time.Unix(0, 0) // no time is older than any
	}
	return &state{occurredAt: at.UTC().Truncate(time.Microsecond), rank: int64(s.Rank), status: s.Status, by: by}
}

// objects returns the objects that the plan's statuses speak of, sorted.
func (p *plan) objects() []object {
	list := make([]object, 0, len(p.statuses))
	for i := range p.statuses {
		list = append(list, p.statuses[i].object())
	}
	slices.SortFunc(list, compareObjects)
	return slices.Compact(list)
}

func (m *statusMove) object() object { return object{m.item.event.Source, m.status.Object} }

// settleStatuses lets the statuses of the batch move the states one after the other,
// and gives the records of those that came too late the outcome Stale.
func (p *plan) settleStatuses(states map[object]*state) {
	p.states = states
	for i := range p.statuses {
		m := &p.statuses[i]
		now, next := states[m.object()], newState(&m.status, m.item)
		order := 1
		if now != nil {
			order = next.compare(now)
		}
		if order > 0 {
			states[m.object()] = next
		}
		switch {
		case m.replaces && order > 0:
			m.replace(p)
		case m.replaces && order == 0:
			m.item.outcome = Duplicate
		case m.replaces:
			m.item.outcome = Stale
		case order < 0 && m.item.outcome == Ignored:
			m.item.outcome = Stale
			if m.candidate != nil && m.candidate.item == m.item {
				m.candidate.outcome = Stale
			}
		}
	}
}

// replace gives the row of a known event the body and meaning of this record. The
// row's outcome and the event's money stay what they are.
func (m *statusMove) replace(p *plan) {
	c := m.candidate
	if c == nil {
		c = p.candidates[m.item.key]
	}
	if c == nil {
		c = &candidate{outcome: m.stored.outcome, stored: m.stored}
		p.candidates[m.item.key] = c
		p.order = append(p.order, c)
	}
	c.item, c.hash = m.item, m.hash
}

// movedState is a state that the batch has moved.
type movedState struct {
	object
	*state
}

// movedStates returns what the batch leaves moved, sorted.
func (w *writing) movedStates() []movedState {
	var list []movedState
	for o, s := range w.plan.states {
		if s.by != nil {
			list = append(list, movedState{o, s})
		}
	}
	slices.SortFunc(list, func(a, b movedState) int { return compareObjects(a.object, b.object) })
	return list
}

func stateMoves(list []movedState) call {
	n := len(list)
	sources, objects, statuses, ranks := textColumn(n, 16), textColumn(n, 32), textColumn(n, 16), int8Column(n)
	times, keys, ids := timeColumn(n), uuidColumn(n), textColumn(n, 32)
	for _, m := range list {
		sources.text(m.source)
		objects.text(m.object.object)
		statuses.text(m.status)
		ranks.int8(m.rank)
		times.time(m.occurredAt)
		keys.uuid(m.by.key)
		ids.text(m.by.event.ID)
	}
	return call{query: queryStates, args: []arg{sources.arg(), objects.arg(), statuses.arg(), ranks.arg(),
		times.arg(), keys.arg(), ids.arg(), int8Arg(int64(n))}}
}
