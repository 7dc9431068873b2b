package ledger

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"hookledger/internal/crashpoint"
	"hookledger/schema"
)

// maxReruns bounds how often a batch runs again at once because another transaction
// was faster, or because events had to be set aside. Each rerun sees what the faster
// one committed, so a few are enough; beyond that the caller's back-off is better.
const maxReruns = 20

// Apply applies b in one transaction, or in several, each with its own progress, if
// the data of some record makes Postgres refuse. It reports what durably happened: on
// an error too, Committed says how far it got, and its Next is b.Start if that is
// nowhere. Duplicates are counted, not errors.
//
// Errors: ErrPositionMoved; *WaitError; any other error may pass, and the caller calls
// again with the records from Next on. An error of COMMIT is among them: its outcome
// is unknown, and the same records, applied again, come out as duplicates if it held.
func (l *Ledger) Apply(ctx context.Context, b Batch) (Committed, error) {
	done := Committed{position: b.Position, next: b.Start}
	if err := b.check(); err != nil {
		return done, err
	}
	items, wait := decode(b.Records)
	r := &run{ledger: l, batch: &b, aside: map[bodyID]*dataError{}}
	mapWait, err := r.apply(ctx, items, &done)
	if mapWait != nil {
		wait = mapWait
	}
	if err != nil {
		return done, fmt.Errorf("apply batch %s/%d@%d: %w", b.Topic, b.Partition, done.next, err)
	}
	if wait != nil {
		return done, l.waits(ctx, &b, wait)
	}
	return done, nil
}

// check refuses what no caller may send.
func (b *Batch) check() error {
	next := b.Start
	for i := range b.Records {
		r := &b.Records[i]
		if r.Partition != b.Partition || r.Offset < next {
			return fmt.Errorf("apply batch %s/%d@%d: record %d is at %d@%d: records must ascend in one partition",
				b.Topic, b.Partition, b.Start, i, r.Partition, r.Offset)
		}
		next = r.Offset + 1
	}
	return nil
}

// run is one Apply.
type run struct {
	ledger *Ledger
	batch  *Batch
	// aside holds bodies that were refused alone, or whose effect another event has
	// told of with other money.
	aside map[bodyID]*dataError
	// replay, if set, stands in for the progress of the partition.
	replay *Replaying
	// wary: something that looked new has met a wall.
	wary bool
}

// apply applies items, in halves where data makes Postgres refuse: a bad record among
// 1,000 costs about ten more transactions, and its neighbours are applied.
func (r *run) apply(ctx context.Context, items []item, done *Committed) (*WaitError, error) {
	if len(items) == 0 {
		return nil, nil
	}
	committed, wait, err := r.applyOnce(ctx, items, done.next)
	bad, isData := isDataError(err)
	switch {
	case err == nil:
		done.add(committed)
		return wait, nil
	case !isData:
		return nil, err
	case len(items) == 1:
		id := items[0].bodyID()
		if r.aside[id] != nil {
			return nil, fmt.Errorf("quarantine record at offset %d: %w", items[0].record.Offset, err)
		}
		r.aside[id] = bad
		return r.apply(ctx, items, done)
	}
	half := len(items) / 2
	if wait, err := r.apply(ctx, items[:half], done); err != nil || wait != nil {
		return wait, err
	}
	return r.apply(ctx, items[half:], done)
}

// applyOnce applies items in one transaction that starts at start, and runs it again
// where that helps at once.
func (r *run) applyOnce(ctx context.Context, items []item, start int64) (Committed, *WaitError, error) {
	for rerun := 0; ; rerun++ {
		committed, wait, err := r.transact(ctx, items, start)
		var again *asideError
		switch {
		case errors.As(err, &again):
			for id, bad := range again.bodies {
				r.aside[id] = bad
			}
		case !errors.Is(err, errRace):
			return committed, wait, err
		}
		if rerun == maxReruns {
			return committed, nil, err
		}
	}
}

// asideError asks for the batch to run again without the bodies in it.
type asideError struct{ bodies map[bodyID]*dataError }

func (e *asideError) Error() string { return fmt.Sprintf("%d events set aside", len(e.bodies)) }

// transact is one transaction. If all looks new it takes two round trips: lock and look;
// write, add to the balances and commit. Else it takes three, with the writing apart from
// the balances, because what RETURNING says comes between. Statuses and events known before
// cost one more trip, to lock them, and so do entries that stand in the way, to read them.
func (r *run) transact(ctx context.Context, items []item, start int64) (_ Committed, _ *WaitError, err error) {
	none := Committed{position: r.batch.Position, next: start}
	conn, err := r.ledger.pool.Acquire(ctx)
	if err != nil {
		return none, nil, fmt.Errorf("acquire connection: %w", err)
	}
	t := &transaction{conn: conn, unprepared: &r.ledger.unprepared}
	defer t.end(ctx)
	crashpoint.Reach("ledger.begin")

	p := &planner{mapper: r.ledger.mapper, aside: r.aside}
	if p.known, err = r.look(ctx, t, items, start); err != nil {
		return none, nil, err
	}
	if p.knownConflicts, err = lookConflicts(ctx, t, items, p.known); err != nil {
		return none, nil, err
	}
	crashpoint.Reach("ledger.looked")
	plan, err := p.decide(items)
	if err != nil || len(plan.items) == 0 {
		return none, plan.waiting(), err
	}
	if err := r.lock(ctx, t, plan); err != nil {
		return none, nil, classify(err)
	}
	crashpoint.Reach("ledger.locked")
	w := newWriting(r.batch, plan, start)
	w.replay = r.replay
	if w.allNew() && !r.wary && r.ledger.trusts() {
		if err := classify(w.add(ctx, t)); err != nil {
			r.wary = r.ledger.warned(err)
			return none, nil, err
		}
		return r.committed(w, plan), plan.wait, nil
	}
	if err := w.write(ctx, t); err != nil {
		return none, nil, classify(err)
	}
	crashpoint.Reach("ledger.written")
	if err := w.weigh(ctx, t); err != nil {
		return none, nil, err
	}
	surging := r.ledger.surge.after(plan.items, w.newQuarantined)
	if err := w.commit(ctx, t, surging); err != nil {
		return none, nil, classify(err)
	}
	done := r.committed(w, plan)
	for i := range surging {
		done.surging = append(done.surging, strings.TrimPrefix(surging[i].Once, kindSurge+"/"))
	}
	return done, plan.wait, nil
}

// committed notes what the transaction did.
func (r *run) committed(w *writing, p *plan) Committed {
	crashpoint.Reach("ledger.committed")
	r.ledger.surge.record(p.items, w.newQuarantined)
	if r.replay != nil {
		r.replay.Skipped = Counts{} // committed with this
	}
	return w.committed()
}

func (p *plan) waiting() *WaitError {
	if p == nil {
		return nil
	}
	return p.wait
}

// look begins the transaction, locks and checks the progress row, or that of the replay,
// and reads which events are known.
func (r *run) look(ctx context.Context, t *transaction, items []item, start int64) (map[schema.EventKey]*known, error) {
	column := sortedKeys(keysOf(items))
	found := make(map[schema.EventKey]*known, 16)
	position, check := r.lockPosition(start)
	err := t.trip(ctx,
		call{query: queryBegin},
		call{query: querySettings, args: r.ledger.settings},
		position,
		call{query: queryKnown, args: []arg{column.arg()}, row: func(v [][]byte) error { return readKnown(v, found) }},
	)
	if err == nil {
		err = check()
	}
	return found, err
}

// keysOf returns the keys of the events among items.
func keysOf(items []item) []schema.EventKey {
	keys := make([]schema.EventKey, 0, len(items))
	for i := range items {
		if items[i].decodeErr == nil {
			keys = append(keys, items[i].key)
		}
	}
	return keys
}

// lockPosition locks the row that the batch moves; check says whether it stands where the
// batch starts.
func (r *run) lockPosition(start int64) (_ call, check func() error) {
	if r.replay != nil {
		return r.replay.lock(r.batch.Partition, start)
	}
	b, rows, next := r.batch, 0, int64(0)
	return call{
			query: queryLockProgress,
			args:  []arg{textArg(b.ClusterID), uuidArg(b.TopicID), int4Arg(b.Partition)},
			row: func(v [][]byte) error {
				rows, next = rows+1, readInt8(v[0])
				return nil
			},
		}, func() error {
			switch {
			case rows == 0:
				return fmt.Errorf("%w: no progress of this partition", ErrPositionMoved)
			case next < start:
				return fmt.Errorf("%w: progress is %d, the batch starts at %d", ErrPositionMoved, next, start)
			}
			return nil
		}
}

// readKnown adds a row of queryKnown. An event that slipped into two generations, in
// the instant of a rotation, is what its blocking row says, else the one that will be
// remembered longer.
func readKnown(v [][]byte, found map[schema.EventKey]*known) error {
	key := schema.EventKey(v[0])
	if v[1] == nil {
		found[key] = &known{forgotten: true}
		return nil
	}
	outcome, ok := parseOutcome(v[1])
	if !ok {
		return fmt.Errorf("event has outcome %q, which this program does not know", v[1])
	}
	open := v[5][0] == 1
	if k := found[key]; k != nil && !(outcome.blocks() && !k.outcome.blocks() || open && outcome.blocks() == k.outcome.blocks()) {
		return nil
	}
	found[key] = &known{
		outcome:    outcome,
		meaning:    schema.MeaningHash(v[2]),
		bodySHA256: [32]byte(v[3]),
		generation: int16(v[4][0])<<8 | int16(v[4][1]),
	}
	return nil
}

// lookConflicts reads which bodies of known events are on record as conflicts, if any
// record has another body than the one known: such a record needs no mapping again.
func lookConflicts(ctx context.Context, t *transaction, items []item, found map[schema.EventKey]*known) (map[bodyID]bool, error) {
	var keys []schema.EventKey
	for i := range items {
		it := &items[i]
		k := found[it.key]
		if it.decodeErr == nil && k != nil && !k.forgotten && k.bodySHA256 != it.event.BodySHA256 {
			keys = append(keys, it.key)
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	conflicts := make(map[bodyID]bool)
	err := t.trip(ctx, call{
		query: queryConflictsKnown,
		args:  []arg{sortedKeys(keys).arg()},
		row: func(v [][]byte) error {
			conflicts[bodyID{schema.EventKey(v[0]), [32]byte(v[1])}] = true
			return nil
		},
	})
	return conflicts, err
}

// lock locks, in order, the payment states and the known events that the plan changes,
// and settles which statuses come too late.
func (r *run) lock(ctx context.Context, t *transaction, p *plan) error {
	states := make(map[object]*state)
	stored := make(map[schema.EventKey]*known)
	var keys []schema.EventKey
	var calls []call
	if len(p.statuses) > 0 {
		objects := p.objects()
		calls = append(calls, claimStates(objects), lockStates(objects, states))
	}
	for _, c := range p.order {
		if c.stored != nil {
			keys, stored[c.item.key] = append(keys, c.item.key), c.stored
		}
	}
	for i := range p.statuses {
		if m := &p.statuses[i]; m.replaces && m.stored != nil && m.candidate == nil {
			keys, stored[m.item.key] = append(keys, m.item.key), m.stored
		}
	}
	locked := 0
	if len(keys) > 0 {
		calls = append(calls, call{query: queryLockEvents, args: []arg{sortedKeys(keys).arg()}, row: func(v [][]byte) error {
			k := stored[schema.EventKey(v[0])]
			generation := int16(v[1][0])<<8 | int16(v[1][1])
			if k != nil && k.generation == generation && k.outcome.String() == string(v[2]) && k.meaning == schema.MeaningHash(v[3]) {
				locked++
			}
			return nil
		}})
	}
	if len(calls) == 0 {
		return nil
	}
	if err := t.trip(ctx, calls...); err != nil {
		return err
	}
	if locked != len(stored) {
		return fmt.Errorf("%w: known events changed", errRace)
	}
	p.settleStatuses(states)
	return nil
}

func claimStates(objects []object) call {
	c := lockStates(objects, nil)
	c.query, c.row = queryClaimStates, nil
	return c
}

func lockStates(objects []object, states map[object]*state) call {
	sources, names := textColumn(len(objects), 16), textColumn(len(objects), 32)
	for _, o := range objects {
		sources.text(o.source)
		names.text(o.object)
	}
	return call{query: queryLockStates, args: []arg{sources.arg(), names.arg()}, row: func(v [][]byte) error {
		if rank := readInt8(v[3]); rank == math.MinInt64 {
			return nil // claimed just now
		}
		states[object{string(v[0]), string(v[1])}] = &state{occurredAt: readTime(v[2]), rank: readInt8(v[3]), status: string(v[4])}
		return nil
	}}
}

// sortedKeys returns keys as an array, sorted and without repeats. It sorts keys.
func sortedKeys(keys []schema.EventKey) *column {
	slices.SortFunc(keys, func(a, b schema.EventKey) int { return compareKeys(a, b) })
	keys = slices.Compact(keys)
	column := uuidColumn(len(keys))
	for _, k := range keys {
		column.uuid(k)
	}
	return column
}

// committed says what the transaction did.
func (w *writing) committed() Committed {
	c := Committed{position: w.batch.Position, next: w.next, bodyChanged: w.plan.bodyChanged}
	for i := range w.plan.items {
		it := &w.plan.items[i]
		c.outcomes[it.outcome]++
		if it.outcome != Duplicate && !it.event.ReceivedAt.IsZero() {
			if c.received == nil {
				c.received = make([]time.Time, 0, len(w.plan.items)-i)
			}
			c.received = append(c.received, it.event.ReceivedAt)
		}
	}
	return c
}
