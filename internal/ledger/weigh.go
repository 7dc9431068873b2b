package ledger

import (
	"context"
	"fmt"

	"hookledger/schema"
)

// standing is an entry that was there before ours.
type standing struct {
	effect            schema.EffectKey
	event             schema.EventKey // zero for a payment's or an amendment's
	line              int
	account, currency string
	amount            int64
}

// weigh reads the entries in whose way ours were, if any, and settles what that says
// of their events. Of the same event: it was applied already, and forgotten. Of another
// event with equal money: two events tell of one movement. With other money: nobody
// knows which is right, so the batch runs again with that event set aside.
func (w *writing) weigh(ctx context.Context, t *transaction) error {
	var missing []*entry
	for i := range w.entries {
		if !w.entries[i].written {
			missing = append(missing, &w.entries[i])
		}
	}
	if len(missing) == 0 {
		return nil
	}
	stand, err := readStanding(ctx, t, missing)
	if err != nil {
		return err
	}

	// alive tells which events have an entry of their own, written now or before.
	alive := make(map[*candidate]bool)
	for i := range w.entries {
		if w.entries[i].written {
			alive[w.entries[i].cand] = true
		}
	}
	mismatched := make(map[bodyID]*dataError)
	for _, e := range missing {
		switch own, other := stand.find(e); {
		case own:
			alive[e.cand] = true
		case other == nil:
			return fmt.Errorf("%w: an entry vanished", errRace)
		case !other.equals(e.posting()):
			mismatched[e.cand.money.bodyID()] = &dataError{
				reason: reasonEffectMismatch,
				detail: fmt.Sprintf("line %d: its movement is on record with another account, currency or amount", e.line),
			}
		}
	}
	if len(mismatched) > 0 {
		return &asideError{mismatched}
	}
	for _, e := range missing {
		if !alive[e.cand] && e.cand.outcome == Applied {
			e.cand.outcome, e.cand.money.outcome = SameEffect, SameEffect
			w.sameEffect = append(w.sameEffect, e.cand.item.key)
		}
	}
	return nil
}

// walls holds standing entries by what they stand in the way of.
type walls struct {
	byEffect map[schema.EffectKey]*standing
	byEvent  map[eventLine]bool
}

type eventLine struct {
	event schema.EventKey
	line  int
}

// find returns whether an entry of e's own event stands in its way, and else whose.
func (s walls) find(e *entry) (own bool, other *standing) {
	key := e.cand.item.key
	other = s.byEffect[e.effect]
	if s.byEvent[eventLine{key, e.line}] || (other != nil && other.event == key) {
		return true, nil
	}
	return false, other
}

func (s *standing) equals(p *schema.Posting) bool {
	return s.account == p.Account && s.currency == p.Currency && s.amount == p.Amount
}

func readStanding(ctx context.Context, t *transaction, missing []*entry) (walls, error) {
	effects := uuidColumn(len(missing))
	keys := make([]schema.EventKey, len(missing))
	for i, e := range missing {
		effects.uuid(e.effect)
		keys[i] = e.cand.item.key
	}
	s := walls{make(map[schema.EffectKey]*standing), make(map[eventLine]bool)}
	err := t.trip(ctx, call{
		query: queryOtherEntries,
		args:  []arg{effects.arg(), sortedKeys(keys).arg()},
		row: func(v [][]byte) error {
			st := &standing{effect: schema.EffectKey(v[0]), line: int(readInt4(v[2])),
				account: string(v[3]), currency: string(v[4]), amount: readInt8(v[5])}
			if v[1] != nil {
				st.event = schema.EventKey(v[1])
				s.byEvent[eventLine{st.event, st.line}] = true
			}
			s.byEffect[st.effect] = st
			return nil
		},
	})
	return s, err
}
