package replay

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"hookledger/internal/broker"
	"hookledger/internal/ledger"
)

// Outcomes counts records by outcome, by its name.
type Outcomes map[string]int64

// OutcomesOf names every outcome, those of no record too.
func OutcomesOf(c ledger.Counts) Outcomes {
	o := make(Outcomes, len(c))
	for _, name := range ledger.Outcomes() {
		o[name.String()] = c[name]
	}
	return o
}

// Move is what balances of one currency gain or, if negative, lose, in minor units. AccountID
// is empty in sums over accounts.
type Move struct {
	AccountID string `json:"account_id,omitempty"`
	Currency  string `json:"currency"`
	Amount    int64  `json:"amount"`
}

// maxAccountMoves is how many accounts a plan lists, those that move most first.
const maxAccountMoves = 100

// Plan is what a replay would do. It is written to a file, and runs as long as it is true.
type Plan struct {
	Schema string `json:"schema"`
	// ClusterID and TopicID name the log, Database the Postgres, that the plan is of.
	ClusterID string    `json:"cluster_id"`
	Topic     string    `json:"topic"`
	TopicID   string    `json:"topic_id"`
	Database  string    `json:"database"`
	MadeAt    time.Time `json:"made_at"`
	MadeBy    string    `json:"made_by"`
	Selection Selection `json:"selection"`
	// Spans are where it looks; what is selected of them are Records.
	Spans   []Span   `json:"spans"`
	Records int64    `json:"records"`
	Would   Outcomes `json:"would"`
	// Moves are sums over the accounts, Accounts how many would move, AccountMoves those
	// of them that move most.
	Moves           []Move  `json:"moves"`
	Accounts        int64   `json:"accounts"`
	AccountMoves    []Move  `json:"account_moves"`
	EstimateSeconds float64 `json:"estimate_seconds"`
	// Hash is over all the rest.
	Hash string `json:"plan_hash"`
}

// planSchema is the schema of plans, in files and answers.
const planSchema = "hookledger.replay-plan.v1"

// changeRate is how many records that change something are applied a second: a third of
// what one applier does on two cores, where the walls are cold.
const changeRate = 5_000

// Plan says what replaying sel would do. It writes nothing.
func (r *Replayer) Plan(ctx context.Context, sel Selection, by string) (*Plan, error) {
	at, err := r.position(ctx)
	if err != nil {
		return nil, err
	}
	database, err := r.Store.Identity(ctx)
	if err != nil {
		return nil, err
	}
	end, err := r.workersEnd(ctx, at)
	if err != nil {
		return nil, err
	}
	spans, err := sel.spans(ctx, r.Client, r.Topic, end)
	if err != nil {
		return nil, err
	}
	out, err := r.survey(ctx, "planning", at, sel, spans)
	if err != nil {
		return nil, err
	}
	p := &Plan{
		Schema: planSchema, ClusterID: at.ClusterID, Topic: at.Topic, TopicID: hex.EncodeToString(at.TopicID[:]), Database: database,
		MadeAt: time.Now().UTC().Truncate(time.Second), MadeBy: by, Selection: sel, Spans: spans,
		Records: out.counts.Records(), Would: OutcomesOf(out.counts), Moves: sumsOf(out.moves), AccountMoves: []Move{},
	}
	p.Accounts, p.AccountMoves = largest(out.moves)
	seconds := out.elapsed.Seconds() + float64(out.changed)/changeRate
	p.EstimateSeconds = math.Ceil(seconds*10) / 10
	p.Hash = p.hash()
	return p, nil
}

// position names the topic as it is now, without a partition.
func (r *Replayer) position(ctx context.Context) (ledger.Position, error) {
	cluster, topicID, _, err := broker.Identity(ctx, r.Client, r.Topic)
	return ledger.Position{ClusterID: cluster, Topic: r.Topic, TopicID: topicID}, err
}

// workersEnd returns where Postgres stands in each partition while the group has members:
// what lies beyond is theirs to apply.
func (r *Replayer) workersEnd(ctx context.Context, at ledger.Position) (map[int32]int64, error) {
	described, err := kadm.NewClient(r.Client).DescribeGroups(ctx, r.Group)
	if err == nil {
		err = described.Error()
	}
	switch {
	case errors.Is(err, kerr.GroupIDNotFound):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("describe group %s: %w", r.Group, err)
	case len(described[r.Group].Members) == 0:
		return nil, nil
	}
	return r.progress(ctx, at)
}

// sumsOf adds up moves by currency; those that come to nothing stay, since money moves.
func sumsOf(moves []ledger.Move) []Move {
	list := []Move{}
	for _, m := range ledger.Totals(moves) {
		list = append(list, Move{Currency: m.Currency, Amount: m.Amount})
	}
	return list
}

// largest returns how many accounts move, and those that move most.
func largest(moves []ledger.Move) (int64, []Move) {
	accounts := make(map[string]bool)
	moves = slices.Clone(moves)
	slices.SortFunc(moves, func(a, b ledger.Move) int {
		return cmp.Or(cmp.Compare(max(b.Amount, -b.Amount), max(a.Amount, -a.Amount)), cmp.Compare(a.Account, b.Account), cmp.Compare(a.Currency, b.Currency))
	})
	list := []Move{}
	for _, m := range moves {
		accounts[m.Account] = true
		if len(list) < maxAccountMoves {
			list = append(list, Move{m.Account, m.Currency, m.Amount})
		}
	}
	return int64(len(accounts)), list
}

// hash is the SHA-256 of the plan without its hash, as it is marshalled here: maps sorted,
// no spaces.
func (p *Plan) hash() string {
	bare := *p
	bare.Hash = ""
	text, err := json.Marshal(bare)
	if err != nil {
		panic(err) // strings, numbers and times of this century always encode
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// ErrPlanEdited says that a plan is not what was written.
var ErrPlanEdited = errors.New("the plan was changed after it was made: make a new one with `hookledger replay plan`")

// CheckFile says whether a plan can be written to file, before the work of making one.
func CheckFile(file string) error {
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		return fmt.Errorf("write plan: %s is a folder", file)
	}
	f, err := os.CreateTemp(filepath.Dir(file), planTemp)
	if err != nil {
		return fmt.Errorf("write plan: %w", err)
	}
	_ = f.Close()
	return os.Remove(f.Name())
}

// planTemp names a plan that is not whole yet.
const planTemp = ".replay-plan-*"

// Write writes p to file, whole or not at all, for the user alone: it names accounts.
func (p *Plan) Write(file string) error {
	text, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return fmt.Errorf("write plan: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(file), planTemp)
	if err != nil {
		return fmt.Errorf("write plan: %w", err)
	}
	_, err = f.Write(append(text, '\n'))
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("write plan: %w", err)
	}
	return nil
}

// maxPlanBytes bounds a file that claims to be a plan.
const maxPlanBytes = 16 << 20

// ReadPlan reads the plan in file. It fails with ErrPlanEdited if its hash does not hold.
func ReadPlan(file string) (*Plan, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read plan: %w", err)
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxPlanBytes))
	if err != nil {
		return nil, fmt.Errorf("read plan: %w", err)
	}
	var p Plan
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&p); err != nil {
		return nil, fmt.Errorf("read plan %s: it is none (%w): `hookledger replay plan --out FILE` makes one", file, err)
	}
	switch {
	case p.Schema != planSchema:
		return nil, fmt.Errorf("read plan %s: its schema is %.64q, want %s", file, p.Schema, planSchema)
	case dec.More(), p.Hash != p.hash():
		return nil, fmt.Errorf("read plan %s: %w", file, ErrPlanEdited)
	}
	return &p, nil
}

// topicID is TopicID as bytes.
func (p *Plan) topicID() (id [16]byte, err error) {
	b, err := hex.DecodeString(p.TopicID)
	if err != nil || len(b) != len(id) {
		return id, fmt.Errorf("topic_id of the plan: %w", ErrPlanEdited)
	}
	return [16]byte(b), nil
}
