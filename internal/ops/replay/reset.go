package replay

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"hookledger/internal/ledger"
	"hookledger/internal/ops"
)

// ErrWrongGroup says that a group never committed while workers did.
var ErrWrongGroup = errors.New("the group has no committed offset of the topic, though workers have applied records: " +
	"is kafka.group that of the workers? If its offsets expired, start the workers once, they commit, and stop them")

// Reset is what moving the group's offsets would do, or did.
type Reset struct {
	ReplayID   *int64     `json:"replay_id"`
	Group      string     `json:"group"`
	Topic      string     `json:"topic"`
	Partitions []ops.Move `json:"partitions"`
	// Records is how many offsets the workers would read again, at most.
	Records int64 `json:"records"`
	DryRun  bool  `json:"dry_run"`
	// Looked is at how many of them was looked to foresee the rest; nil, like Would, if
	// that could not be foreseen.
	Looked   *int64   `json:"looked_at"`
	Would    Outcomes `json:"would"`
	Moves    []Move   `json:"moves"`
	Accounts int64    `json:"accounts"`
	Hash     string   `json:"plan_hash"`

	position ledger.Position
}

// PlanReset says what a reset of the group to target would do. What would become of the
// records is foreseen for at most look of them, the first of each partition; 0 is all. If
// that fails the plan has none of it, and unforeseen says why. It writes nothing.
func (r *Replayer) PlanReset(ctx context.Context, target ops.Target, partition int32, look int64) (_ *Reset, unforeseen, err error) {
	at, err := r.position(ctx)
	if err != nil {
		return nil, nil, err
	}
	moves, err := ops.PlanReset(ctx, r.Client, r.Group, r.Topic, target, partition)
	if err != nil {
		return nil, nil, err
	}
	p := &Reset{Group: r.Group, Topic: r.Topic, Partitions: moves, Moves: []Move{}, position: at}
	for _, m := range moves {
		p.Records += m.Records
	}
	p.Hash = p.hash()
	out, err := r.foresee(ctx, at, moves, look)
	if err != nil {
		if ctx.Err() != nil {
			return nil, nil, err
		}
		return p, err, nil
	}
	n := out.counts.Records()
	p.Looked, p.Would, p.Moves = &n, OutcomesOf(out.counts), sumsOf(out.moves)
	p.Accounts, _ = largest(out.moves)
	return p, nil, nil
}

// foresee looks at what workers would read after moves.
func (r *Replayer) foresee(ctx context.Context, at ledger.Position, moves []ops.Move, look int64) (*outlook, error) {
	progress, err := r.progress(ctx, at)
	if err != nil {
		return nil, err
	}
	var spans []Span
	for _, m := range moves {
		s := Span{m.Partition, m.To, m.To + m.Records}
		if next, ok := progress[m.Partition]; ok {
			s.From = min(s.From, next) // a reset forward skips nothing
		}
		if look > 0 {
			s.To = min(s.To, s.From+max(look/int64(len(moves)), 1))
		}
		spans = append(spans, s)
	}
	return r.survey(ctx, "planning", at, Selection{}, spans)
}

// progress returns the next offsets as Postgres knows them.
func (r *Replayer) progress(ctx context.Context, at ledger.Position) (map[int32]int64, error) {
	rows, err := r.Books.ReadProgress(ctx, r.Topic, at.TopicID)
	if err != nil {
		return nil, err
	}
	next := make(map[int32]int64, len(rows))
	for _, p := range rows {
		if p.ClusterID == at.ClusterID && p.TopicID == at.TopicID {
			next[p.Partition] = p.Next
		}
	}
	return next, nil
}

// incidentReset is the kind of the incident that a reset leaves.
const incidentReset = "replay_reset"

// Reset does what p says: it writes down who asked and why, in the table of replays and as
// an incident, and then moves the offsets. It fails with ops.ErrGroupActive while the group
// has members, with ErrWrongGroup, and with ErrBusy while a replay runs.
func (r *Replayer) Reset(ctx context.Context, p *Reset, by, reason string) error {
	if err := ops.CheckGroupEmpty(ctx, r.Client, r.Group); err != nil {
		return err
	}
	if err := r.checkGroup(ctx, p); err != nil {
		return err
	}
	claim, err := r.Store.Start(ctx, Begin{Kind: KindReset, PlanHash: p.Hash, Position: p.position, By: by, Reason: reason, Plan: p})
	if err != nil {
		return err
	}
	p.ReplayID = &claim.ID
	err = r.move(ctx, p, by, reason)
	ended, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err != nil {
		return errors.Join(err, r.giveUp(ended, claim, err))
	}
	return r.Store.Finish(ended, claim, StateDone, "")
}

// checkGroup refuses a group that is probably not the workers'.
func (r *Replayer) checkGroup(ctx context.Context, p *Reset) error {
	for _, m := range p.Partitions {
		if m.From >= 0 {
			return nil
		}
	}
	progress, err := r.progress(ctx, p.position)
	if err != nil {
		return err
	}
	for _, m := range p.Partitions {
		if progress[m.Partition] > 0 {
			return fmt.Errorf("reset group %s: %w", r.Group, ErrWrongGroup)
		}
	}
	return nil
}

// move raises the incident first: a reset without a reason would be a riddle, a reason
// without a reset is none.
func (r *Replayer) move(ctx context.Context, p *Reset, by, reason string) error {
	detail, err := json.Marshal(struct {
		ReplayID   int64      `json:"replay_id"`
		Reason     string     `json:"reason"`
		By         string     `json:"by"`
		Group      string     `json:"group"`
		Partitions []ops.Move `json:"partitions"`
	}{*p.ReplayID, reason, by, p.Group, p.Partitions})
	if err != nil {
		return fmt.Errorf("write down the reason: %w", err)
	}
	if _, err := r.Books.RaiseIncident(ctx, ledger.Incident{
		Severity: ledger.Info, Kind: incidentReset, Topic: p.Topic, Detail: detail,
	}); err != nil {
		return err
	}
	return ops.Reset(ctx, r.Client, p.Group, p.Topic, p.Partitions)
}

// hash is over where the offsets move.
func (p *Reset) hash() string {
	text, err := json.Marshal(struct {
		Group, Topic, TopicID string
		Partitions            []ops.Move
	}{p.Group, p.Topic, hex.EncodeToString(p.position.TopicID[:]), p.Partitions})
	if err != nil {
		panic(err) // strings and numbers always encode
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
