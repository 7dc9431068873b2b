package verify

import (
	"fmt"
	"strconv"

	"hookledger/schema"
)

// effect is what the effect key of an entry is made of, beside its line. The key is the
// wall against paying twice: a movement whose key was changed could be paid again.
type effect struct {
	entry              int64
	key                schema.EffectKey
	payment, amendment *string
	event              string
	source             *string

	buf []byte
}

func (e *effect) scan() []any {
	return []any{&e.entry, (*[16]byte)(&e.key), &e.payment, &e.amendment, &e.event, &e.source}
}

// The words that stand for a source and a rule where money moves without an event.
const (
	paymentsSource   = "_payments"
	paymentRule      = "payment"
	amendmentsSource = "_amendments"
	amendmentRule    = "amendment"
)

// maxNth bounds the search for the number of a posting among those of its event that
// share rule and movement. More do not fit into a record.
const maxNth = 1 << 17

// judge finds an entry whose keys are not those of what stands beside them.
func (e *effect) judge(l *line, m *meanings) {
	if e.ofEvent() && schema.KeyOf(*e.source, e.event) != l.event {
		m.events.add(e.event, e.name()+", whose event key is another event's")
		return
	}
	if !e.holds(l) {
		m.keys.add(e.event, e.name())
	}
}

func (e *effect) ofEvent() bool { return e.payment == nil && e.amendment == nil && e.source != nil }

// holds says whether the key is that of the entry's movement. How many postings of its
// event share rule and movement is on no record, but no more than there are lines before
// it. An amendment's key is its own, or that of today's posting, of which those before it
// may have been left out.
func (e *effect) holds(l *line) bool {
	switch {
	case e.payment != nil:
		return l.line <= 1 && l.rule == paymentRule && l.movement == *e.payment && e.is(paymentsSource, paymentRule, *e.payment, l.line)
	case e.amendment != nil:
		if e.is(amendmentsSource, amendmentRule, *e.amendment, l.line) {
			return true
		}
		// Without its row, CheckEntries says so.
		return e.source == nil || e.isOneOf(*e.source, l, maxNth)
	}
	return e.source == nil || e.isOneOf(*e.source, l, min(l.line, maxNth))
}

func (e *effect) isOneOf(source string, l *line, last int32) bool {
	for nth := int32(0); nth <= last; nth++ {
		if e.is(source, l.rule, l.movement, nth) {
			return true
		}
	}
	return false
}

// is makes the key as its contract says: 128 bits of the SHA-256 of texts, each behind
// its length.
func (e *effect) is(source, rule, movement string, nth int32) bool {
	e.buf = e.buf[:0]
	for _, text := range [...]string{"effect", source, rule, movement} {
		e.buf = appendText(e.buf, text)
	}
	e.buf = appendText(e.buf, strconv.Itoa(int(nth)))
	return schema.EffectKey(hashOf(e.buf)) == e.key
}

func (e *effect) name() string {
	cause := "an event"
	switch {
	case e.payment != nil:
		cause = "payment " + *e.payment
	case e.amendment != nil:
		cause = "amendment " + *e.amendment
	case e.source != nil:
		cause = label(*e.source + "/" + e.event)
	}
	return fmt.Sprintf("entry %d of %s", e.entry, cause)
}
