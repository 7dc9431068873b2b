package ledger

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"hookledger/internal/crashpoint"
	"hookledger/schema"
)

// writing is a plan being written.
type writing struct {
	batch *Batch
	plan  *plan
	start int64
	next  int64

	entries []entry
	// written marks the entries that RETURNING gave back; the others met a wall.
	written map[schema.EffectKey]*entry
	// newQuarantined holds the offsets that quarantine did not hold before.
	newQuarantined map[int64]bool
	// sameEffect holds the events whose money others had told of, all of it.
	sameEffect []schema.EventKey
	// replay, if set, moves instead of the progress.
	replay *Replaying
}

// entry is one posting on its way into the ledger.
type entry struct {
	effect  schema.EffectKey
	cand    *candidate
	line    int
	written bool
}

func (e *entry) posting() *schema.Posting { return &e.cand.postings[e.line] }

func newWriting(b *Batch, p *plan, start int64) *writing {
	w := &writing{batch: b, plan: p, start: start, next: p.items[len(p.items)-1].record.Offset + 1}
	n := 0
	for _, c := range p.order {
		n += len(c.postings)
	}
	w.entries = make([]entry, 0, n)
	for _, c := range p.order {
		m := schema.Meaning{Postings: c.postings}
		for line, effect := range m.EffectKeys(c.item.event.Source) {
			w.entries = append(w.entries, entry{effect: effect, cand: c, line: line})
		}
	}
	// Of two events of the batch with one effect, the earlier is written. Both cannot be
	// the same event: nth tells its postings apart.
	slices.SortFunc(w.entries, func(a, b entry) int {
		return cmp.Or(compareKeys(a.effect, b.effect), cmp.Compare(a.cand.money.record.Offset, b.cand.money.record.Offset))
	})
	w.written = make(map[schema.EffectKey]*entry, n)
	for i := range w.entries {
		if e := &w.entries[i]; w.written[e.effect] == nil {
			w.written[e.effect] = e
		}
	}
	return w
}

// allNew tells whether the plan is events that nobody knows and the money of different
// movements, and nothing else.
func (w *writing) allNew() bool {
	p := w.plan
	if len(p.statuses) > 0 || len(p.quarantined) > 0 || len(p.conflicts) > 0 || len(w.written) < len(w.entries) {
		return false
	}
	return len(p.order) > 0 && !slices.ContainsFunc(p.order, func(c *candidate) bool { return c.stored != nil })
}

// add writes a plan of which all is new, and commits, in one round trip. The
// constraints are the same as in write, but here each of them fails the transaction, with
// errWall: to have Postgres look for what stands in the way, row by row, and return what
// it wrote, takes it half as long again.
func (w *writing) add(ctx context.Context, t *transaction) error {
	calls := []call{{query: queryAddEvents, args: w.eventInserts(w.plan.order)}}
	if len(w.entries) > 0 {
		calls = append(calls, call{query: queryAddEntries, args: w.entryInserts()})
	}
	for i := range w.entries {
		w.entries[i].written = true
	}
	return w.finish(ctx, t, calls)
}

// write inserts events, entries, quarantined records and conflicts. It fails with
// errRace if an event was not new after all.
func (w *writing) write(ctx context.Context, t *transaction) error {
	var inserts, updates []*candidate
	for _, c := range w.plan.order {
		if c.stored == nil {
			inserts = append(inserts, c)
		} else {
			updates = append(updates, c)
		}
	}
	var calls []call
	events := 0
	countEvent := func([][]byte) error { events++; return nil }
	if len(updates) > 0 {
		calls = append(calls, call{query: queryUpdateEvents, args: w.eventUpdates(updates), row: countEvent})
	}
	if len(inserts) > 0 {
		calls = append(calls, call{query: queryInsertEvents, args: w.eventInserts(inserts), row: countEvent})
	}
	if len(w.entries) > 0 {
		calls = append(calls, call{query: queryInsertEntries, args: w.entryInserts(), row: func(v [][]byte) error {
			e := w.written[schema.EffectKey(v[0])]
			if e == nil {
				return fmt.Errorf("insert entries returned an effect key that was not sent")
			}
			e.written = true
			return nil
		}})
	}
	if len(w.plan.quarantined) > 0 {
		w.newQuarantined = make(map[int64]bool)
		calls = append(calls, call{query: queryQuarantine, args: w.quarantineInserts(), row: func(v [][]byte) error {
			w.newQuarantined[readInt8(v[0])] = true
			return nil
		}})
	}
	if len(w.plan.conflicts) > 0 {
		calls = append(calls, call{query: queryConflicts, args: w.conflictInserts()})
	}
	if len(calls) == 0 {
		return nil
	}
	if err := t.trip(ctx, calls...); err != nil {
		return err
	}
	if events != len(w.plan.order) {
		return fmt.Errorf("%w: %d of %d events", errRace, len(w.plan.order)-events, len(w.plan.order))
	}
	return nil
}

func (w *writing) eventInserts(list []*candidate) []arg {
	slices.SortFunc(list, func(a, b *candidate) int { return compareKeys(a.item.key, b.item.key) })
	n := len(list)
	keys, sources, ids, types := uuidColumn(n), textColumn(n, 16), textColumn(n, 32), textColumn(n, 32)
	rest := newEventColumns(n)
	for _, c := range list {
		keys.uuid(c.item.key)
		sources.text(c.item.event.Source)
		ids.text(c.item.event.ID)
		types.text(c.item.event.Type)
		rest.add(c)
	}
	return append([]arg{textArg(w.batch.Topic), int4Arg(w.batch.Partition), keys.arg(), sources.arg(), ids.arg(), types.arg()}, rest.args()...)
}

func (w *writing) eventUpdates(list []*candidate) []arg {
	n := len(list)
	keys, generations, meanings, types := uuidColumn(n), int4Column(n), uuidColumn(n), textColumn(n, 32)
	rest := newEventColumns(n)
	for _, c := range list {
		keys.uuid(c.item.key)
		generations.int4(int32(c.stored.generation))
		meanings.uuid(c.stored.meaning)
		types.text(c.item.event.Type)
		rest.add(c)
	}
	return append([]arg{textArg(w.batch.Topic), int4Arg(w.batch.Partition), keys.arg(), generations.arg(), meanings.arg(), types.arg()}, rest.args()...)
}

// eventColumns are the columns that a new row and an updated one share.
type eventColumns struct {
	outcomes, meanings, offsets, occurred, received, hashes *column
}

func newEventColumns(n int) eventColumns {
	return eventColumns{textColumn(n, 8), uuidColumn(n), int8Column(n), timeColumn(n), timeColumn(n), byteaColumn(n, 32)}
}

func (e eventColumns) add(c *candidate) {
	e.outcomes.text(c.outcome.String())
	e.meanings.uuid(c.hash)
	e.offsets.int8(c.item.record.Offset)
	e.occurred.time(c.item.event.OccurredAt)
	e.received.time(c.item.event.ReceivedAt)
	e.hashes.bytes(c.item.event.BodySHA256[:])
}

func (e eventColumns) args() []arg {
	return []arg{e.outcomes.arg(), e.meanings.arg(), e.offsets.arg(), e.occurred.arg(), e.received.arg(), e.hashes.arg()}
}

func (w *writing) entryInserts() []arg {
	n := len(w.entries)
	effects, keys, lines, sources, ids := uuidColumn(n), uuidColumn(n), int4Column(n), textColumn(n, 16), textColumn(n, 32)
	accounts, contras, currencies, amounts := textColumn(n, 32), textColumn(n, 24), textColumn(n, 4), int8Column(n)
	rules, movements, occurred := textColumn(n, 32), textColumn(n, 32), timeColumn(n)
	for i := range w.entries {
		e := &w.entries[i]
		p, ev := e.posting(), &e.cand.money.event
		effects.uuid(e.effect)
		keys.uuid(e.cand.item.key)
		lines.int4(int32(e.line))
		sources.text(ev.Source)
		ids.text(ev.ID)
		accounts.text(p.Account)
		contras.text(p.Contra)
		currencies.text(p.Currency)
		amounts.int8(p.Amount)
		rules.text(p.Rule)
		movements.text(p.Movement)
		occurred.time(ev.OccurredAt)
	}
	return []arg{effects.arg(), keys.arg(), lines.arg(), sources.arg(), ids.arg(), accounts.arg(), contras.arg(),
		currencies.arg(), amounts.arg(), rules.arg(), movements.arg(), occurred.arg()}
}

// account names one balance.
type account struct{ id, currency string }

// sum is what a batch adds to one balance.
type sum struct {
	account
	amount, entries int64
}

// sums adds up the written entries per account and currency, sorted by both as bytes.
// A sum that does not fit is the fault of a record, see errors.go.
func (w *writing) sums() ([]sum, error) {
	index := make(map[account]int, len(w.entries))
	list := make([]sum, 0, len(w.entries))
	for i := range w.entries {
		e := &w.entries[i]
		if !e.written {
			continue
		}
		p := e.posting()
		a := account{p.Account, p.Currency}
		j, ok := index[a]
		if !ok {
			j = len(list)
			index[a], list = j, append(list, sum{account: a})
		}
		s := &list[j]
		if (p.Amount > 0 && s.amount > math.MaxInt64-p.Amount) || (p.Amount < 0 && s.amount < math.MinInt64-p.Amount) {
			return nil, &dataError{reason: reasonOverflow, detail: "a sum does not fit 64 bits"}
		}
		s.amount += p.Amount
		s.entries++
	}
	slices.SortFunc(list, func(a, b sum) int {
		return cmp.Or(strings.Compare(a.id, b.id), strings.Compare(a.currency, b.currency))
	})
	return list, nil
}

// commit adds to the balances, moves states, raises what surges, advances progress and
// commits, all in one write. The guards of the statements stop it before COMMIT.
func (w *writing) commit(ctx context.Context, t *transaction, surging []Incident) error {
	var calls []call
	for i := range surging {
		calls = append(calls, call{query: queryRaiseSurge, args: surging[i].surgeArgs()})
	}
	return w.finish(ctx, t, calls)
}

func (w *writing) finish(ctx context.Context, t *transaction, calls []call) error {
	effects, err := w.effects()
	if err != nil {
		return err
	}
	calls = append(calls, effects...)
	advance := w.advance()
	if w.replay != nil {
		advance = w.replay.advance(w)
	}
	calls = append(append(calls, advance...), call{query: queryCommit})
	crashpoint.Reach("ledger.commit")
	return t.trip(ctx, calls...)
}

// advance closes what stood in quarantine of these records, and moves the progress.
func (w *writing) advance() []call {
	b, last := w.batch, w.plan.items[len(w.plan.items)-1].record
	still := int8Column(len(w.plan.quarantined))
	for _, it := range w.plan.quarantined {
		still.int8(it.record.Offset)
	}
	return []call{
		{query: queryResolveQuarantine, args: []arg{uuidArg(b.TopicID), int4Arg(b.Partition),
			int8Arg(w.start), int8Arg(w.next - 1), still.arg()}},
		{query: queryAdvance, args: []arg{textArg(b.ClusterID), uuidArg(b.TopicID), int4Arg(b.Partition),
			int8Arg(w.next), int8Arg(min(b.From, w.next)), int4Arg(last.LeaderEpoch)}},
	}
}

// effects adds to the balances, moves states, and corrects the outcomes of events whose
// money others had told of.
func (w *writing) effects() ([]call, error) {
	sums, err := w.sums()
	if err != nil {
		return nil, err
	}
	var calls []call
	if len(sums) > 0 {
		calls = append(calls, accountAdds(sums))
	}
	if moved := w.movedStates(); len(moved) > 0 {
		calls = append(calls, stateMoves(moved))
	}
	if len(w.sameEffect) > 0 {
		calls = append(calls, call{query: queryOutcomes, args: []arg{textArg(SameEffect.String()), sortedKeys(w.sameEffect).arg()}})
	}
	return calls, nil
}

func accountAdds(sums []sum) call {
	n := len(sums)
	ids, currencies, amounts, counts := textColumn(n, 32), textColumn(n, 4), int8Column(n), int8Column(n)
	for i := range sums {
		ids.text(sums[i].id)
		currencies.text(sums[i].currency)
		amounts.int8(sums[i].amount)
		counts.int8(sums[i].entries)
	}
	return call{query: queryAccounts, args: []arg{ids.arg(), currencies.arg(), amounts.arg(), counts.arg(), int8Arg(int64(n))}}
}

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
	return w.settle(missing, stand)
}

// settle decides about the events of the entries that met a wall.
func (w *writing) settle(missing []*entry, stand walls) error {
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
