package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
)

// ErrReplayTaken says that a replay is not the caller's any more: somebody else goes on
// with it, or ended it.
var ErrReplayTaken = errors.New("the replay was taken over or ended by somebody else")

// Counts are numbers of records by outcome.
type Counts [outcomeCount]int64

// Add adds what other counts.
func (c *Counts) Add(other Counts) {
	for o, n := range other {
		c[o] += n
	}
}

// Records is the number of records with any outcome.
func (c Counts) Records() int64 {
	var n int64
	for _, k := range c {
		n += k
	}
	return n
}

// Counts are the numbers of records by outcome.
func (c Committed) Counts() Counts { return c.outcomes }

// Replaying is the row of replays under which records are applied again. The row is to
// them what the progress is to a worker: locked first, moved last, by the attempt that
// owns it alone.
type Replaying struct {
	ID, Attempt int64
	// Skipped counts records before the batch that were found to change nothing. The
	// next transaction that commits adds them, and sets them to zero.
	Skipped Counts
}

// Replay applies b as Apply does, by an operator's decision and at nobody's position: it
// moves r in place of the progress of the partition, and resolves what stood in quarantine
// of these very records. Records may be any selection of a partition, in ascending order.
//
// Errors: ErrReplayTaken; ErrPositionMoved if the row stands behind b's start already, as
// after a COMMIT whose answer was lost: read the row again; *WaitError. Any other error
// may pass, and the caller goes on from Next.
func (l *Ledger) Replay(ctx context.Context, b Batch, r *Replaying) (Committed, error) {
	done := Committed{position: b.Position, next: b.Start}
	if err := b.check(); err != nil {
		return done, err
	}
	items, wait := decode(b.Records)
	work := &run{ledger: l, batch: &b, aside: map[bodyID]*dataError{}, replay: r}
	mapWait, err := work.apply(ctx, items, &done)
	if mapWait != nil {
		wait = mapWait
	}
	if err == nil && wait != nil {
		err = wait
	}
	if err != nil {
		return done, fmt.Errorf("replay batch %s/%d@%d: %w", b.Topic, b.Partition, done.next, err)
	}
	return done, nil
}

// lock locks the row of the replay; check fails unless it is ours and stands at or before
// start of partition.
func (r *Replaying) lock(partition int32, start int64) (_ call, check func() error) {
	ours, atPartition, atOffset := false, int32(-1), int64(0)
	return call{
			query: queryLockReplay,
			args:  []arg{int8Arg(r.ID), int8Arg(r.Attempt)},
			row: func(v [][]byte) error {
				ours = true
				if v[0] != nil {
					atPartition, atOffset = readInt4(v[0]), readInt8(v[1])
				}
				return nil
			},
		}, func() error {
			switch {
			case !ours:
				return ErrReplayTaken
			case cmp.Or(cmp.Compare(atPartition, partition), cmp.Compare(atOffset, start)) > 0:
				return fmt.Errorf("%w: the replay stands at %d@%d, the batch starts at %d@%d",
					ErrPositionMoved, atPartition, atOffset, partition, start)
			}
			return nil
		}
}

// advance moves the row of the replay, which is locked, and adds up what w did.
func (r *Replaying) advance(w *writing) []call {
	counts := w.committed().Counts()
	counts.Add(r.Skipped)
	resolved := int8Column(len(w.plan.items))
	for i := range w.plan.items {
		if it := &w.plan.items[i]; it.outcome != Quarantined {
			resolved.int8(it.record.Offset)
		}
	}
	b := w.batch
	calls := []call{{query: queryResolveReplayed, args: []arg{uuidArg(b.TopicID), int4Arg(b.Partition), resolved.arg()}}}
	if totals := Totals(w.moves()); len(totals) > 0 {
		currencies, amounts := textColumn(len(totals), 4), int8Column(len(totals))
		for _, m := range totals {
			currencies.text(m.Currency)
			amounts.int8(m.Amount)
		}
		calls = append(calls, call{query: queryReplayMoves, args: []arg{int8Arg(r.ID), currencies.arg(), amounts.arg()}})
	}
	return append(calls, call{query: queryMoveReplay, args: r.moved(b.Partition, w.next, counts)}, call{query: queryNoTimeout})
}

func (r *Replaying) moved(partition int32, next int64, counts Counts) []arg {
	args := []arg{int8Arg(r.ID), int8Arg(r.Attempt), int4Arg(partition), int8Arg(next), int8Arg(counts.Records())}
	for _, n := range counts {
		args = append(args, int8Arg(n))
	}
	return args
}

// Pass moves r to next of partition without a batch, and adds r.Skipped. Asked twice, as
// after a COMMIT whose answer was lost, it does it once. It fails with ErrReplayTaken.
func (l *Ledger) Pass(ctx context.Context, r *Replaying, partition int32, next int64) error {
	conn, err := l.pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("acquire connection: %w", err)
	}
	t := &transaction{conn: conn, unprepared: &l.unprepared}
	defer t.end(ctx)
	position, check := r.lock(partition, next-1)
	if err := t.trip(ctx, call{query: queryBegin}, call{query: querySettings, args: l.settings}, position); err != nil {
		return err
	}
	switch err := check(); {
	case errors.Is(err, ErrPositionMoved):
		r.Skipped = Counts{} // it stands there already
		return nil
	case err != nil:
		return err
	}
	err = t.trip(ctx, call{query: queryMoveReplay, args: r.moved(partition, next, r.Skipped)}, call{query: queryNoTimeout}, call{query: queryCommit})
	if err == nil {
		r.Skipped = Counts{}
	}
	return err
}

// Totals adds up moves by currency, sorted.
func Totals(moves []Move) []Move {
	sums := make(map[string]int64)
	for _, m := range moves {
		sums[m.Currency] += m.Amount
	}
	list := make([]Move, 0, len(sums))
	for currency, amount := range sums {
		list = append(list, Move{Currency: currency, Amount: amount})
	}
	slices.SortFunc(list, func(a, b Move) int { return cmp.Compare(a.Currency, b.Currency) })
	return list
}

// Index: replays_pkey.
var queryLockReplay = query{"lock replay", `
select partition, next_offset
  from replays
 where replay_id = $1 and attempt = $2 and state = 'running'
   for no key update`}

// queryMoveReplay moves the replay to $4 of partition $3 and adds counts, the columns in
// the order of Outcomes. The row is locked.
// Index: replays_pkey.
var queryMoveReplay = query{"move replay", `
update replays
   set partition = $3, next_offset = $4, records = records + $5, applied = applied + $6, ignored = ignored + $7,
       same_effect = same_effect + $8, stale = stale + $9, discarded = discarded + $10, duplicate = duplicate + $11,
       conflict = conflict + $12, quarantined = quarantined + $13, beat_at = now()
 where replay_id = $1 and attempt = $2 and state = 'running'
returning replay_id`}

// Index: replay_moves_pkey.
var queryReplayMoves = query{"add moves of replay", `
insert into replay_moves as m (replay_id, currency, amount)
select $1, n.* from unnest($2::text[], $3::int8[]) as n
    on conflict on constraint replay_moves_pkey do update set amount = m.amount + excluded.amount`}

// queryResolveReplayed closes what stood in quarantine of the offsets $3, because each of
// these records has now an ordinary outcome.
// Index: quarantined_events_record_once.
var queryResolveReplayed = query{"resolve quarantined records", `
update quarantined_events
   set resolved_at = now(), resolution = 'replayed'
 where topic_id = $1 and partition = $2 and "offset" = any ($3::int8[])
   and resolved_at is null`}
