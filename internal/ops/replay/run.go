package replay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/broker"
	"hookledger/internal/ledger"
	"hookledger/schema"
)

// Errors of Run, beside those of Store and Ledger.
var (
	// ErrElsewhere says that the plan is of another log or database.
	ErrElsewhere = errors.New("the plan is not of this world: make a new one with `hookledger replay plan`")
	// ErrPlanDone says that the plan was run to its end.
	ErrPlanDone = errors.New("the plan was run already: make a new one with `hookledger replay plan`")
)

// ChangedError says that the run would not do what the plan says.
type ChangedError struct{ Differences []string }

// Error lists the differences.
func (e *ChangedError) Error() string {
	return "the world has changed since the plan was made: " + strings.Join(e.Differences, ", ") +
		": make a new plan, or go on with --accept"
}

// Order is how a plan is run.
type Order struct {
	By, Reason string
	// Accept goes on although the counts differ from the plan's.
	Accept bool
	// DryRun does everything up to the first write.
	DryRun bool
}

// Result is what a run did. Of a dry run it is what it would have done, and ReplayID is nil.
type Result struct {
	ReplayID *int64   `json:"replay_id"`
	DryRun   bool     `json:"dry_run"`
	Records  int64    `json:"records"`
	Outcome  Outcomes `json:"outcome"`
	Moves    []Move   `json:"moves"`
	// MatchesPlan says that counts and sums are the plan's.
	MatchesPlan bool   `json:"matches_plan"`
	PlanHash    string `json:"plan_hash"`
	// Resumed says that an earlier run of the plan was cut.
	Resumed bool `json:"resumed"`
	// Differences say how it does not match.
	Differences []string `json:"differences"`
}

// Run does what p says. If ctx ends it stops between two transactions, and the same plan
// run again goes on there.
func (r *Replayer) Run(ctx context.Context, p *Plan, o Order) (*Result, error) {
	at, err := r.position(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.sameWorld(ctx, p, at); err != nil {
		return nil, err
	}
	before, err := r.before(ctx, p)
	if err != nil {
		return nil, err
	}
	spans, gone, err := r.remaining(ctx, p, before)
	if err != nil {
		return nil, err
	}
	out, err := r.survey(ctx, "comparing", at, p.Selection, spans)
	if err != nil {
		return nil, err
	}
	foreseen := resultOf(p, before, out)
	foreseen.Differences = slices.Insert(foreseen.Differences, 0, gone...)
	foreseen.MatchesPlan = len(foreseen.Differences) == 0
	if !foreseen.MatchesPlan && !o.Accept {
		return nil, &ChangedError{foreseen.Differences}
	}
	if o.DryRun {
		foreseen.DryRun = true
		return foreseen, nil
	}

	claim, err := r.claim(ctx, p, at, before, o)
	if err != nil {
		return nil, err
	}
	err = r.work(ctx, at, p.Selection, out.steps, claim)
	ended, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("replay %d stopped: %w: run the same plan again, it goes on where it stood", claim.ID, err), r.giveUp(ended, claim, err))
	}
	if err := r.Store.Finish(ended, claim, StateDone, ""); err != nil {
		return nil, fmt.Errorf("replay %d ended, but that could not be written: %w: run the same plan again", claim.ID, err)
	}
	row, err := r.Store.Read(ended, claim.ID)
	if err != nil {
		return nil, err
	}
	done := resultOf(p, row, &outlook{})
	done.ReplayID, done.Resumed = &row.ID, before != nil
	done.Differences = slices.Insert(done.Differences, 0, gone...)
	done.MatchesPlan = len(done.Differences) == 0
	return done, nil
}

// giveUp writes down why, unless somebody else has the replay.
func (r *Replayer) giveUp(ctx context.Context, claim *ledger.Replaying, why error) error {
	if errors.Is(why, ledger.ErrReplayTaken) {
		return nil
	}
	text := why.Error()
	if errors.Is(why, context.Canceled) {
		text = "stopped by a signal"
	}
	return r.Store.Finish(ctx, claim, StateStopped, text)
}

// sameWorld refuses a plan of another cluster, topic or database.
func (r *Replayer) sameWorld(ctx context.Context, p *Plan, at ledger.Position) error {
	topicID, err := p.topicID()
	if err != nil {
		return err
	}
	database, err := r.Store.Identity(ctx)
	if err != nil {
		return err
	}
	switch {
	case p.ClusterID != at.ClusterID:
		return fmt.Errorf("the brokers are cluster %s, the plan's were %s: %w", at.ClusterID, p.ClusterID, ErrElsewhere)
	case p.Topic != at.Topic:
		return fmt.Errorf("kafka.topic is %s, the plan's was %s: %w", at.Topic, p.Topic, ErrElsewhere)
	case topicID != at.TopicID:
		return fmt.Errorf("topic %s was made again since: its offsets mean other records: %w", p.Topic, ErrElsewhere)
	case p.Database != database:
		return fmt.Errorf("database.url leads to another database, %s, than the plan was made on, %s: %w", database, p.Database, ErrElsewhere)
	}
	return nil
}

// before returns the run of p that was cut, nil if there is none.
func (r *Replayer) before(ctx context.Context, p *Plan) (*Row, error) {
	busy, err := r.Store.Running(ctx)
	if err != nil {
		return nil, err
	}
	if busy != nil {
		return nil, fmt.Errorf("replay %d, asked for by %s, last showed life %d s ago: %w (a runner that was killed is succeeded after %s)",
			busy.ID, busy.RequestedBy, busy.sinceBeat, ErrBusy, Lease)
	}
	row, err := r.Store.OfPlan(ctx, p.Hash)
	if err != nil || row == nil {
		return nil, err
	}
	if row.State == StateDone {
		return nil, fmt.Errorf("replay %d, %s by %s: %w", row.ID, row.FinishedAt.UTC().Format(time.RFC3339), row.RequestedBy, ErrPlanDone)
	}
	return row, nil
}

// remaining returns the spans of p that are left, and what is gone from them.
func (r *Replayer) remaining(ctx context.Context, p *Plan, before *Row) (spans []Span, gone []string, err error) {
	starts, err := broker.StartOffsets(ctx, r.Client, r.Topic)
	if err != nil {
		return nil, nil, err
	}
	ends, err := broker.EndOffsets(ctx, r.Client, r.Topic)
	if err != nil {
		return nil, nil, err
	}
	for _, s := range p.Spans {
		if before != nil && s.Partition < before.Partition {
			continue
		}
		if before != nil && s.Partition == before.Partition {
			s.From = max(s.From, before.Next)
		}
		if n := min(starts[s.Partition].At, s.To) - s.From; n > 0 {
			gone = append(gone, fmt.Sprintf("retention deleted %d of the offsets of partition %d, from %d on", n, s.Partition, s.From))
			s.From += n
		}
		if n := s.To - max(ends[s.Partition].At, s.From); n > 0 {
			gone = append(gone, fmt.Sprintf("the log of partition %d ends at %d instead of %d", s.Partition, s.To-n, s.To))
			s.To -= n
		}
		spans = append(spans, s)
	}
	return spans, gone, nil
}

// resultOf compares p with what was done before and what would be done now.
func resultOf(p *Plan, before *Row, now *outlook) *Result {
	counts, sums := now.counts, make(map[string]int64)
	for _, m := range ledger.Totals(now.moves) {
		sums[m.Currency] += m.Amount
	}
	if before != nil {
		counts.Add(before.Counts)
		for _, m := range before.Moves {
			sums[m.Currency] += m.Amount
		}
	}
	res := &Result{Records: counts.Records(), Outcome: OutcomesOf(counts), Moves: []Move{}, PlanHash: p.Hash, Differences: []string{}}
	planned := make(map[string]int64)
	for _, m := range p.Moves {
		planned[m.Currency] = m.Amount
	}
	for _, o := range ledger.Outcomes() {
		if got, want := res.Outcome[o.String()], p.Would[o.String()]; got != want {
			res.Differences = append(res.Differences, fmt.Sprintf("%d %s instead of %d", got, o, want))
		}
	}
	for _, c := range slices.Sorted(maps.Keys(sums)) {
		res.Moves = append(res.Moves, Move{Currency: c, Amount: sums[c]})
		if _, ok := planned[c]; !ok {
			planned[c] = 0
		}
	}
	for _, c := range slices.Sorted(maps.Keys(planned)) {
		if sums[c] != planned[c] {
			res.Differences = append(res.Differences, schema.FormatAmount(sums[c], c)+" instead of "+schema.FormatAmount(planned[c], c))
		}
	}
	return res
}

func (r *Replayer) claim(ctx context.Context, p *Plan, at ledger.Position, before *Row, o Order) (*ledger.Replaying, error) {
	if before == nil {
		return r.Store.Start(ctx, Begin{Kind: KindRun, PlanHash: p.Hash, Position: at, By: o.By, Reason: o.Reason, Accepted: o.Accept, Plan: p})
	}
	return r.Store.Resume(ctx, before, o)
}

// work applies the steps that change something and passes over the others.
func (r *Replayer) work(ctx context.Context, at ledger.Position, sel Selection, steps []step, claim *ledger.Replaying) error {
	ctx, cancel := context.WithCancelCause(ctx)
	beating := make(chan struct{})
	go func() { // ends with ctx
		defer close(beating)
		r.beat(ctx, claim, cancel)
	}()
	w := &worker{Replayer: r, at: at, sel: sel, claim: claim}
	for _, s := range steps {
		w.total += s.To - s.From
	}
	err := w.all(ctx, steps)
	cancel(nil)
	<-beating
	return err
}

// beat shows life until ctx ends, and ends it if the replay was taken over.
func (r *Replayer) beat(ctx context.Context, claim *ledger.Replaying, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		// An answer that does not come is told by the work itself.
		if err := r.Store.Beat(ctx, claim); errors.Is(err, ledger.ErrReplayTaken) {
			cancel(err)
			return
		}
	}
}

// worker is a run between its claim and its end.
type worker struct {
	*Replayer
	at          ledger.Position
	sel         Selection
	claim       *ledger.Replaying
	done, total int64
}

// farApart is how many offsets that change nothing are rather read once more than passed
// over with a new client.
const farApart = 20_000

func (w *worker) all(ctx context.Context, steps []step) error {
	for i := 0; i < len(steps); {
		if !steps[i].changes {
			w.pass(&steps[i])
			i++
			continue
		}
		// The steps up to the last that changes something, without a large gap.
		end := i + 1
		for j := end; j < len(steps) && steps[j].Partition == steps[i].Partition; j++ {
			if steps[j].changes {
				end = j + 1
			} else if steps[j].To-steps[j].From > farApart {
				break
			}
		}
		if err := w.stretch(ctx, steps[i:end]); err != nil {
			return err
		}
		i = end
	}
	if w.claim.Skipped.Records() == 0 {
		return nil
	}
	last := steps[len(steps)-1]
	return w.patiently(ctx, func() error { return w.Books.Pass(ctx, w.claim, last.Partition, last.To) })
}

// pass counts a step that changes nothing; the next transaction writes that down.
func (w *worker) pass(s *step) {
	w.claim.Skipped.Add(s.counts)
	w.moved(s.To - s.From)
}

func (w *worker) moved(n int64) {
	w.done += n
	if w.Progress != nil {
		w.Progress("replaying", w.done, w.total)
	}
}

// stretch reads the steps of one partition and applies those that change something.
func (w *worker) stretch(ctx context.Context, steps []step) error {
	i := 0
	b := batcher{at: w.at, flush: func(batch ledger.Batch) error { return w.apply(ctx, batch) }}
	// next ends the batch of the step that offset lies behind.
	next := func(offset int64) error {
		for i < len(steps) && offset >= steps[i].To {
			if steps[i].changes {
				if err := b.end(); err != nil {
					return err
				}
				w.moved(steps[i].To - steps[i].From)
			} else {
				w.pass(&steps[i])
			}
			i++
		}
		return nil
	}
	span := Span{steps[0].Partition, steps[0].From, steps[len(steps)-1].To}
	err := (&source{w.Options, w.Topic}).read(ctx, span, func(r *kgo.Record) error {
		if err := next(r.Offset); err != nil {
			return err
		}
		if i == len(steps) || !steps[i].changes || r.Offset < steps[i].From {
			return nil
		}
		ok, err := w.sel.matches(r, w.Mapper)
		if err != nil || !ok {
			return err
		}
		return b.add(r)
	}, func(int64) {})
	if err != nil {
		return err
	}
	return next(span.To)
}

// apply applies a batch, again where that helps, and past what a COMMIT without an answer
// turns out to have done.
func (w *worker) apply(ctx context.Context, batch ledger.Batch) error {
	return w.patiently(ctx, func() error {
		if len(batch.Records) == 0 {
			return nil
		}
		done, err := w.Books.Replay(ctx, batch, w.claim)
		if errors.Is(err, ledger.ErrPositionMoved) {
			row, readErr := w.Store.Read(ctx, w.claim.ID)
			if readErr != nil {
				return readErr
			}
			w.claim.Skipped = ledger.Counts{} // committed with the batch, whose row moved
			batch.Start = row.Next
			if row.Partition > batch.Partition {
				batch.Records = nil
			}
		} else {
			batch.Start = done.Next()
		}
		behind := func(r ledger.Record) bool { return r.Offset < batch.Start }
		batch.Records = slices.DeleteFunc(slices.Clone(batch.Records), behind)
		if errors.Is(err, ledger.ErrPositionMoved) {
			return fmt.Errorf("go on behind what was committed: %w", err)
		}
		return err
	})
}

// tries and the first pause between them: about ten seconds, the time of a failover.
const (
	tries      = 8
	firstPause = 100 * time.Millisecond
)

// patiently does f again after an error that may pass.
func (w *worker) patiently(ctx context.Context, f func() error) error {
	for try, pause := 1, firstPause; ; try, pause = try+1, 2*pause {
		err := f()
		var wait *ledger.WaitError
		if err == nil || ctx.Err() != nil || errors.Is(err, ledger.ErrReplayTaken) || errors.As(err, &wait) || try == tries {
			if err != nil && ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}
