package ledger

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"hookledger/schema"
)

// item is one record of a batch on its way to an outcome.
type item struct {
	record *Record
	event  schema.Event
	key    schema.EventKey
	// decodeErr is set if the record is no event of ours.
	decodeErr *schema.DecodeError

	outcome Outcome
	// reason and detail are set for Quarantined.
	reason, detail string
}

// decode reads the events of records, without parsing a body. It stops before a record
// of an unknown version, which is then the WaitError.
func decode(records []Record) ([]item, *WaitError) {
	items := make([]item, len(records))
	for i := range records {
		it := &items[i]
		it.record = &records[i]
		var err error
		it.event, err = schema.DecodeRecord(it.record.Key, it.record.Value, it.record.Headers)
		var decodeErr *schema.DecodeError
		switch {
		case err == nil:
			it.key = it.event.Key()
			it.decodeErr = checkTexts(&it.event)
		case errors.As(err, &decodeErr):
			it.decodeErr = decodeErr
		default:
			return items[:i], &WaitError{KindUnknownVersion, err.Error(), it.record.Offset}
		}
	}
	return items, nil
}

// checkTexts refuses what no text column can hold, before it costs a bisection.
func checkTexts(e *schema.Event) *schema.DecodeError {
	if !isText(e.Source) || !isText(e.Type) {
		return &schema.DecodeError{Reason: reasonBadText, Detail: "source or type is not text that Postgres can hold"}
	}
	return nil
}

// isText tells whether a text column can hold s: UTF-8 without NUL (error 22021).
func isText(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }

// bodyID is one body of one event.
type bodyID struct {
	key  schema.EventKey
	hash [32]byte
}

// known is what processed_events, or the ledger alone, says of an event.
type known struct {
	outcome    Outcome
	meaning    schema.MeaningHash
	bodySHA256 [32]byte
	generation int16
	// forgotten: only the entries remember the event.
	forgotten bool
}

// candidate is an event that this batch gives a row, or gives a row other values.
// There is at most one for each event.
type candidate struct {
	// item is the record that the row comes from.
	item    *item
	hash    schema.MeaningHash
	outcome Outcome
	// stored is the row to update; nil means a new row.
	stored *known
	// money is the record whose postings are to be written as entries, if any.
	money    *item
	postings []schema.Posting
}

// conflict is a body that contradicts what is known of its event.
type conflict struct {
	item    *item
	meaning schema.MeaningHash
}

// plan is what a batch will write. It is a function of the records, of what is known
// and of today's mapping; whether it comes true is for RETURNING to say.
type plan struct {
	items []item
	// wait is set if the batch ends before a record of a source that is unknown here.
	wait *WaitError

	candidates  map[schema.EventKey]*candidate
	order       []*candidate
	conflicts   []conflict
	quarantined []*item
	statuses    []statusMove
	// states are those that statuses speak of, as they will be.
	states      map[object]*state
	bodyChanged int64
}

// planner decides about records one by one, in offset order.
type planner struct {
	mapper         Mapper
	known          map[schema.EventKey]*known
	knownConflicts map[bodyID]bool
	// aside holds bodies that cannot be applied, with the reason.
	aside map[bodyID]*dataError
	plan  *plan
}

var emptyMeaning = func() schema.MeaningHash { var m schema.Meaning; return m.Hash() }()

// decide gives each item its outcome. Events with money are Applied until the entries
// say otherwise, and status moves are settled later, against the states as locked.
func (p *planner) decide(items []item) (*plan, error) {
	p.plan = &plan{candidates: make(map[schema.EventKey]*candidate, len(items)), order: make([]*candidate, 0, len(items))}
	for i := range items {
		wait, err := p.decideItem(&items[i])
		if err != nil {
			return nil, fmt.Errorf("map record at offset %d: %w", items[i].record.Offset, err)
		}
		if wait != nil {
			p.plan.wait, items = wait, items[:i]
			break
		}
	}
	p.plan.items = items
	return p.plan, nil
}

func (p *planner) decideItem(it *item) (*WaitError, error) {
	if it.decodeErr != nil {
		p.quarantine(it, it.decodeErr.Reason, it.decodeErr.Detail)
		return nil, nil
	}
	c, stored := p.plan.candidates[it.key], p.known[it.key]
	switch {
	case c != nil:
		return p.decideKnown(it, &known{outcome: c.outcome, meaning: c.hash, bodySHA256: c.item.event.BodySHA256}, c)
	case stored != nil:
		return p.decideKnown(it, stored, nil)
	}

	if bad := p.aside[it.bodyID()]; bad != nil {
		p.quarantine(it, bad.reason, bad.detail)
		return nil, nil
	}
	m, err := p.mapper(&it.event)
	if err != nil {
		return p.unmapped(it, err, func(reason, detail string) { p.quarantine(it, reason, detail) })
	}
	p.candidate(it, m, nil)
	return nil, nil
}

// decideKnown decides about a record of an event that has a row, or gets one in this
// batch (c).
func (p *planner) decideKnown(it *item, k *known, c *candidate) (*WaitError, error) {
	if k.forgotten {
		it.outcome = Duplicate
		return nil, nil
	}
	sameBody := it.event.BodySHA256 == k.bodySHA256
	if sameBody && (c != nil || k.outcome.blocks()) {
		it.outcome = Duplicate
		return nil, nil
	}
	if p.knownConflicts[it.bodyID()] {
		it.outcome = Conflict
		return nil, nil
	}
	if bad := p.aside[it.bodyID()]; bad != nil {
		if k.outcome.blocks() {
			p.refuseKnown(it, sameBody)
		} else {
			// Money is at stake and nothing stands in its way but its own data: after a
			// fix, a retry gives the row that is ignored its meaning.
			p.quarantine(it, bad.reason, bad.detail)
		}
		return nil, nil
	}
	m, err := p.mapper(&it.event)
	if err != nil {
		if sameBody {
			it.outcome = Duplicate // what is on record does not depend on today's mapping
			return nil, nil
		}
		return p.unmapped(it, err, func(_, _ string) { p.refuseKnown(it, sameBody) })
	}
	hash := m.Hash()
	switch {
	case hash == k.meaning:
		it.outcome = Duplicate
		if !sameBody {
			p.plan.bodyChanged++
		}
	case !k.outcome.blocks() && (sameBody || len(m.Postings) > 0 || k.meaning == emptyMeaning):
		p.supersede(it, m, k, c)
	case m.LatestWins && m.Status != nil && k.outcome != Discarded:
		p.latestWins(it, m, hash, k, c)
	default:
		it.outcome = Conflict
		p.plan.conflicts = append(p.plan.conflicts, conflict{it, hash})
	}
	return nil, nil
}

// refuseKnown is for a body of a known event that says something we cannot use.
// Quarantine is for events without a row, so with other bytes it is a conflict.
func (p *planner) refuseKnown(it *item, sameBody bool) {
	if sameBody {
		it.outcome = Duplicate
		return
	}
	it.outcome = Conflict
	p.plan.conflicts = append(p.plan.conflicts, conflict{it, schema.MeaningHash{}})
}

// unmapped sorts the errors of the mapper.
func (p *planner) unmapped(it *item, err error, refuse func(reason, detail string)) (*WaitError, error) {
	if errors.Is(err, schema.ErrUnknownSource) {
		return &WaitError{KindUnknownSource, fmt.Sprintf("source %.64q", it.event.Source), it.record.Offset}, nil
	}
	if reason, detail, ok := asMappingError(err); ok {
		refuse(reason, detail)
		return nil, nil
	}
	return nil, err
}

// candidate makes it the record that its event's row comes from.
func (p *planner) candidate(it *item, m schema.Meaning, stored *known) {
	c := &candidate{item: it, stored: stored}
	p.fill(c, it, m)
	p.plan.candidates[it.key] = c
	p.plan.order = append(p.plan.order, c)
}

func (p *planner) fill(c *candidate, it *item, m schema.Meaning) {
	c.item, c.hash, c.outcome = it, m.Hash(), Ignored
	if len(m.Postings) > 0 {
		c.money, c.postings, c.outcome = it, m.Postings, Applied
	}
	it.outcome = c.outcome
	if m.Status != nil {
		p.plan.statuses = append(p.plan.statuses, statusMove{item: it, candidate: c, status: *m.Status})
	}
}

// supersede gives an event without money what this record means. If the row is new in
// this batch, the earlier record keeps its outcome and leaves the row to this one.
func (p *planner) supersede(it *item, m schema.Meaning, k *known, c *candidate) {
	if c != nil {
		p.fill(c, it, m)
		return
	}
	p.candidate(it, m, k)
}

// latestWins moves the status, never the money. If the move is not stale, the row takes
// this body and meaning, so that the same record is a duplicate next time.
func (p *planner) latestWins(it *item, m schema.Meaning, hash schema.MeaningHash, k *known, c *candidate) {
	it.outcome = Ignored
	if len(m.Postings) > 0 && k.outcome.blocks() {
		// Money that may differ from what stands is not passed over in silence.
		it.outcome = Conflict
		p.plan.conflicts = append(p.plan.conflicts, conflict{it, hash})
	}
	p.plan.statuses = append(p.plan.statuses,
		statusMove{item: it, candidate: c, stored: k, status: *m.Status, replaces: it.outcome == Ignored, hash: hash})
}

// quarantine takes it out of the batch, with the reason.
func (p *planner) quarantine(it *item, reason, detail string) {
	it.outcome, it.reason, it.detail = Quarantined, reason, detail
	p.plan.quarantined = append(p.plan.quarantined, it)
}

func (it *item) bodyID() bodyID { return bodyID{it.key, it.event.BodySHA256} }

// sortedConflicts returns conflicts by event key and body hash, each once.
func sortedConflicts(list []conflict) []conflict {
	order := func(a, b conflict) int {
		return cmp.Or(compareKeys(a.item.key, b.item.key),
			bytes.Compare(a.item.event.BodySHA256[:], b.item.event.BodySHA256[:]))
	}
	list = slices.Clone(list)
	slices.SortStableFunc(list, order)
	return slices.CompactFunc(list, func(a, b conflict) bool { return order(a, b) == 0 })
}

func compareKeys(a, b [16]byte) int { return bytes.Compare(a[:], b[:]) }
