package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"hookledger/schema"
)

// maxForeseen bounds how many events that would change a Survey keeps in mind. An event
// costs about 300 bytes, so this is about 120 MB.
const maxForeseen = 400_000

// ErrTooMuchChanges says that more events would change than a Survey can keep in mind.
var ErrTooMuchChanges = fmt.Errorf("more than %d events would change: select less at a time, such as one partition or a shorter time", maxForeseen)

// Looked is a batch with what is known of its events.
type Looked struct {
	batch     Batch
	items     []item
	known     map[schema.EventKey]*known
	conflicts map[bodyID]bool
	// held tells whether any of the records waits in quarantine.
	held bool
}

// Look reads what is known of the events of b. It writes and locks nothing. It is safe
// for concurrent use. It fails with *WaitError for a record that cannot be read here.
func (l *Ledger) Look(ctx context.Context, b Batch) (*Looked, error) {
	fail := func(err error) (*Looked, error) {
		return nil, fmt.Errorf("look at batch %s/%d@%d: %w", b.Topic, b.Partition, b.Start, err)
	}
	if err := b.check(); err != nil {
		return fail(err)
	}
	items, wait := decode(b.Records)
	if wait != nil {
		return fail(wait)
	}
	k := &Looked{batch: b, items: items, known: make(map[schema.EventKey]*known, len(items))}
	offsets := int8Column(len(items))
	for i := range items {
		offsets.int8(items[i].record.Offset)
	}
	err := l.readOnly(ctx, func(t *transaction) error {
		err := t.trip(ctx,
			call{query: queryKnown, args: []arg{sortedKeys(keysOf(items)).arg()}, row: func(v [][]byte) error { return readKnown(v, k.known) }},
			call{query: queryAnyHeld, args: []arg{uuidArg(b.TopicID), int4Arg(b.Partition), offsets.arg()}, row: func([][]byte) error {
				k.held = true
				return nil
			}},
		)
		if err != nil {
			return err
		}
		k.conflicts, err = lookConflicts(ctx, t, items, k.known)
		return err
	})
	if err != nil {
		return fail(err)
	}
	return k, nil
}

// readOnly runs f in a transaction that can write nothing, and ends it.
func (l *Ledger) readOnly(ctx context.Context, f func(*transaction) error) error {
	conn, err := l.pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("acquire connection: %w", err)
	}
	t := &transaction{conn: conn, unprepared: &l.unprepared}
	defer t.end(ctx)
	if err := t.trip(ctx, call{query: queryBeginReadOnly}, call{query: querySettings, args: l.settings}); err != nil {
		return err
	}
	if err := f(t); err != nil {
		return err
	}
	return t.trip(ctx, call{query: queryRollback})
}

// Survey tells what Replay would do with batches, one after the other, with the same
// decisions and without a write or a lock. What an earlier batch would do is kept in mind
// for the later ones.
//
// It foresees everything but what Postgres alone can refuse: a balance beyond 64 bits.
type Survey struct {
	ledger *Ledger

	known     map[schema.EventKey]known
	conflicts map[bodyID]bool
	states    map[object]state
	byEffect  map[schema.EffectKey]standing
	byEvent   map[eventLine]bool
	accounts  map[account]sum
}

// NewSurvey returns a survey in which nothing has happened yet.
func (l *Ledger) NewSurvey() *Survey {
	return &Survey{
		ledger: l, known: make(map[schema.EventKey]known), conflicts: make(map[bodyID]bool), states: make(map[object]state),
		byEffect: make(map[schema.EffectKey]standing), byEvent: make(map[eventLine]bool), accounts: make(map[account]sum),
	}
}

// Foreseen is what would become of the records of a batch.
type Foreseen struct {
	Counts Counts
	// Changes says that something would be written; if not, the batch can be passed over.
	Changes bool
}

// Moves are what the accounts would gain or lose by all batches so far.
func (s *Survey) Moves() []Move {
	list := make([]Move, 0, len(s.accounts))
	for a, sum := range s.accounts {
		list = append(list, Move{a.id, a.currency, sum.amount})
	}
	return list
}

// Add says what would become of k after all batches before it. It fails with *WaitError
// for a source that is not configured here, and with ErrTooMuchChanges.
func (s *Survey) Add(ctx context.Context, k *Looked) (Foreseen, error) {
	aside := map[bodyID]*dataError{}
	for {
		f, err := s.once(ctx, k, aside)
		var again *asideError
		switch {
		case err == nil:
			return f, nil
		case errors.As(err, &again) && len(aside) <= len(k.items):
			maps.Copy(aside, again.bodies)
		default:
			return f, fmt.Errorf("survey batch %s/%d@%d: %w", k.batch.Topic, k.batch.Partition, k.batch.Start, err)
		}
	}
}

func (s *Survey) once(ctx context.Context, k *Looked, aside map[bodyID]*dataError) (Foreseen, error) {
	p := &planner{mapper: s.ledger.mapper, aside: aside, known: maps.Clone(k.known), knownConflicts: maps.Clone(k.conflicts)}
	for i := range k.items {
		it := &k.items[i]
		if it.decodeErr != nil {
			continue
		}
		if stood, ok := s.known[it.key]; ok {
			p.known[it.key] = &stood
		}
		if s.conflicts[it.bodyID()] {
			if p.knownConflicts == nil {
				p.knownConflicts = make(map[bodyID]bool)
			}
			p.knownConflicts[it.bodyID()] = true
		}
	}
	plan, err := p.decide(k.items)
	if err != nil {
		return Foreseen{}, err
	}
	if plan.wait != nil {
		return Foreseen{}, plan.wait
	}
	w := newWriting(&k.batch, plan, k.batch.Start)
	if len(plan.statuses) > 0 || len(w.entries) > 0 {
		if err := s.ledger.readOnly(ctx, func(t *transaction) error { return s.foresee(ctx, t, w) }); err != nil {
			return Foreseen{}, err
		}
	}
	f := Foreseen{Counts: w.committed().Counts()}
	f.Changes = k.held || len(plan.order)+len(plan.conflicts)+len(plan.quarantined) > 0 || len(w.movedStates()) > 0
	return f, s.keep(w)
}

// foresee does in mind what lock, write and weigh do in Postgres.
func (s *Survey) foresee(ctx context.Context, t *transaction, w *writing) error {
	if len(w.plan.statuses) > 0 {
		states := make(map[object]*state)
		objects := w.plan.objects()
		now := lockStates(objects, states)
		now.query = queryStatesNow
		if err := t.trip(ctx, now); err != nil {
			return err
		}
		for _, o := range objects {
			if stood, ok := s.states[o]; ok {
				states[o] = &stood
			}
		}
		w.plan.settleStatuses(states)
	}
	if len(w.entries) == 0 {
		return nil
	}
	all := make([]*entry, len(w.entries))
	for i := range w.entries {
		all[i] = &w.entries[i]
	}
	stand, err := readStanding(ctx, t, all)
	if err != nil {
		return err
	}
	for _, e := range all {
		if stood, ok := s.byEffect[e.effect]; ok {
			stand.byEffect[e.effect] = &stood
		}
		if at := (eventLine{e.cand.item.key, e.line}); s.byEvent[at] {
			stand.byEvent[at] = true
		}
	}
	// In the order of the insert: what meets a wall is not written.
	var missing []*entry
	for _, e := range all {
		at := eventLine{e.cand.item.key, e.line}
		if stand.byEffect[e.effect] != nil || stand.byEvent[at] {
			missing = append(missing, e)
			continue
		}
		e.written = true
		stand.byEffect[e.effect], stand.byEvent[at] = e.standing(), true
	}
	return w.settle(missing, stand)
}

// standing is e as it would stand.
func (e *entry) standing() *standing {
	p := e.posting()
	return &standing{effect: e.effect, event: e.cand.item.key, line: e.line,
		account: strings.Clone(p.Account), currency: strings.Clone(p.Currency), amount: p.Amount}
}

// keep takes what w would leave behind into the survey.
func (s *Survey) keep(w *writing) error {
	for _, c := range w.plan.order {
		s.known[c.item.key] = known{outcome: c.outcome, meaning: c.hash, bodySHA256: c.item.event.BodySHA256}
	}
	for _, c := range w.plan.conflicts {
		s.conflicts[c.item.bodyID()] = true
	}
	for _, m := range w.movedStates() {
		o := object{strings.Clone(m.source), strings.Clone(m.object.object)}
		s.states[o] = state{occurredAt: m.occurredAt, rank: m.rank, status: strings.Clone(m.status)}
	}
	for i := range w.entries {
		if e := &w.entries[i]; e.written {
			s.byEffect[e.effect] = *e.standing()
			s.byEvent[eventLine{e.cand.item.key, e.line}] = true
		}
	}
	sums, err := w.sums()
	if err != nil {
		return err
	}
	for _, add := range sums {
		a := account{strings.Clone(add.id), strings.Clone(add.currency)}
		total := s.accounts[a]
		total.amount += add.amount
		total.entries += add.entries
		s.accounts[a] = total
	}
	if len(s.known)+len(s.conflicts)+len(s.states) > maxForeseen {
		return ErrTooMuchChanges
	}
	return nil
}

var queryBeginReadOnly = query{"begin", `begin isolation level read committed read only`}

var queryRollback = query{"rollback", `rollback`}

// Index: quarantined_events_record_once.
var queryAnyHeld = query{"look for quarantined records", `
select 1
  from quarantined_events
 where topic_id = $1 and partition = $2 and "offset" = any ($3::int8[]) and resolved_at is null
 limit 1`}
