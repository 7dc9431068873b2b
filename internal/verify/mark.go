package verify

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// Mark is how far an earlier run proved the books, and what an increment needs to go on
// from there. It is JSON of a few hundred bytes whatever the size of the books.
type Mark struct {
	Version int `json:"version"`
	// ClusterID, Topic and TopicID (hex) are of Kafka, Group is whose offsets were judged.
	ClusterID string `json:"cluster_id"`
	Topic     string `json:"topic"`
	TopicID   string `json:"topic_id"`
	Group     string `json:"group"`
	// ProvedAt is when the last run proved what the mark says, FullAt the last that
	// proved everything.
	ProvedAt time.Time `json:"proved_at"`
	FullAt   time.Time `json:"full_at"`
	// Partitions are the next offsets: records below were proved.
	Partitions map[int32]int64 `json:"partitions"`
	Entries    EntriesMark     `json:"entries"`
}

// EntriesMark is how far the ledger was proved.
type EntriesMark struct {
	// Through is an entry_id: no entry up to it is still to come. Anchor is the effect
	// key of that entry, by which another database, or an older copy, is told.
	Through int64  `json:"through"`
	Anchor  string `json:"anchor"`
	// Sums are over entries up to Through: see sqlSketch. Seed is of its random numbers,
	// Server the version of Postgres that made them.
	Seed   int64  `json:"seed"`
	Server int    `json:"server_version"`
	Amount string `json:"amount_sum"`
	Count  string `json:"count_sum"`
}

// MarkVersion is the format of Mark that this package writes.
const MarkVersion = 1

// chooseMark decides whether the mark can be built upon. What does not fit is set aside
// with a word why, and everything is proved again.
func (r *run) chooseMark(ctx context.Context) error {
	if !r.opts.Incremental || r.opts.Since == nil {
		return nil
	}
	m := r.opts.Since
	switch {
	case m.Version != MarkVersion:
		r.aside = "it is of another version of hookledger"
	case m.Topic != r.opts.Topic || m.Group != r.opts.Group:
		r.aside = "it is about another topic or group"
	case m.ClusterID != r.pos.clusterID:
		r.aside = "it is about another Kafka cluster"
	case m.TopicID != hex.EncodeToString(r.pos.topicID[:]):
		r.aside = "the topic was made again since"
	case slices.ContainsFunc(r.pos.parts, func(p position) bool { return m.Partitions[p.partition] > p.end }):
		r.aside = "the log ends before what was proved of it: it was cut"
	}
	if r.aside != "" {
		return nil
	}
	server, err := r.server(ctx)
	if err != nil {
		return err
	}
	if server != m.Entries.Server {
		r.aside = "Postgres is of another version now"
		return nil
	}
	if m.Entries.Through > 0 {
		var there bool
		err := readOnly(ctx, r.opts.Pool, sqlByIndex, func(tx pgx.Tx) error {
			return tx.QueryRow(ctx, sqlAnchor, m.Entries.Through, m.Entries.Anchor).Scan(&there)
		})
		if err != nil {
			return readError("the entry that was marked", err)
		}
		if !there {
			r.aside = "the ledger does not hold the entry that was the last: this is another database, or an older copy of it"
			return nil
		}
	}
	r.since = m
	return nil
}

func (r *run) server(ctx context.Context) (version int, err error) {
	if err := r.opts.Pool.QueryRow(ctx, sqlServer).Scan(&version); err != nil {
		return 0, readError("the version of Postgres", err)
	}
	return version, nil
}

// settleWithin bounds the wait for transactions under way, which take milliseconds. One
// that hangs keeps the mark of the ledger where it is.
const settleWithin = 5 * time.Second

// settled waits until every transaction that writes entries now has ended, so that no
// entry below the newest one seen before is still to come.
func (r *run) settled(ctx context.Context) (bool, error) {
	var begun []string
	if err := r.opts.Pool.QueryRow(ctx, sqlWriters).Scan(&begun); err != nil {
		return false, readError("the transactions under way", err)
	}
	deadline := time.Now().Add(settleWithin)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		var now []string
		if len(begun) == 0 {
			return true, nil
		}
		if err := r.opts.Pool.QueryRow(ctx, sqlWriters).Scan(&now); err != nil {
			return false, readError("the transactions under way", err)
		}
		begun = slices.DeleteFunc(begun, func(name string) bool { return !slices.Contains(now, name) })
		if len(begun) > 0 && time.Now().After(deadline) {
			return false, nil
		}
		select {
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// sketch is the answer of sqlSketch. Sums are whole numbers of any size. settled says
// that nothing more comes into those of settled….
type sketch struct {
	settled                      bool
	balances, counts             string
	settledAmount, settledNumber string
	freshAmount, freshNumber     string
	accounts, entries            int64
}

// advance compares the balances with the mark and what came since, in one snapshot, and
// makes the next mark.
func (r *run) advance(ctx context.Context) error {
	if !r.opts.Incremental {
		return nil
	}
	next := &Mark{
		Version: MarkVersion, ClusterID: r.pos.clusterID, Topic: r.opts.Topic, TopicID: hex.EncodeToString(r.pos.topicID[:]), Group: r.opts.Group,
		ProvedAt: time.Now().UTC(), Partitions: make(map[int32]int64),
		Entries: EntriesMark{Seed: rand.Int64(), Amount: "0", Count: "0"}, //nolint:gosec // no secret: it only must not be chosen by who tampers before it is drawn
	}
	next.FullAt = next.ProvedAt
	if r.since != nil {
		next.FullAt, next.Entries = r.since.FullAt, r.since.Entries
		maps.Copy(next.Partitions, r.since.Partitions)
	}
	// A group that was moved back does not unprove what was proved.
	for _, s := range r.limits.judged {
		next.Partitions[s.partition] = max(next.Partitions[s.partition], s.to)
	}
	s, through, anchor, err := r.readSketch(ctx, &next.Entries)
	if err != nil {
		return err
	}
	if r.since != nil {
		r.tables.accounts, r.tables.entries = s.accounts, s.entries
		if err := r.compareSketch(ctx, s); err != nil {
			return err
		}
	}
	if s.settled && through > next.Entries.Through {
		next.Entries.Through, next.Entries.Anchor = through, anchor
		next.Entries.Amount = add(next.Entries.Amount, s.settledAmount)
		next.Entries.Count = add(next.Entries.Count, s.settledNumber)
	}
	r.next = next
	return nil
}

// readSketch finds the newest entry, waits for who may have an older one in hand, and
// adds up.
func (r *run) readSketch(ctx context.Context, m *EntriesMark) (s sketch, through int64, anchor string, err error) {
	through = m.Through
	err = readOnly(ctx, r.opts.Pool, sqlByIndex, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, sqlNewest, m.Through).Scan(&through, &anchor)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	if err != nil {
		return s, 0, "", readError("the newest entry", err)
	}
	if m.Server, err = r.server(ctx); err != nil {
		return s, 0, "", err
	}
	// Behind the look at the newest entry: whoever has a smaller number has begun by now.
	settled, err := r.settled(ctx)
	if err != nil {
		return s, 0, "", err
	}
	s.settled = settled
	err = readOnly(ctx, r.opts.Pool, plannerFor(r.since), func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, sqlSketch, m.Through, through, m.Seed).Scan(&s.balances, &s.counts,
			&s.settledAmount, &s.settledNumber, &s.freshAmount, &s.freshNumber, &s.accounts, &s.entries)
	})
	if err != nil {
		return s, 0, "", readError("accounts and entries", err)
	}
	return s, through, anchor, nil
}

// compareSketch compares in one number. If it differs, whole tables say which account it
// is; and if they agree with each other, what was proved before is not what it was.
func (r *run) compareSketch(ctx context.Context, s sketch) error {
	if s.balances == add(r.since.Entries.Amount, s.freshAmount) && s.counts == add(r.since.Entries.Count, s.freshNumber) {
		return nil
	}
	var err error
	if r.tables.balances, err = find(ctx, r.opts.Pool, sqlByScan, "accounts and entries", sqlBalances); err != nil {
		return err
	}
	if r.tables.balances.count == 0 {
		r.tables.balances.add("", fmt.Sprintf("balances and entries agree with each other, and not with the entries up to %d as they were proved at %s: some of them were changed since, together with balances",
			r.since.Entries.Through, r.since.ProvedAt.Format(time.RFC3339)))
	}
	return nil
}

// add adds whole numbers in decimal. What is none counts as a number that fits nothing.
func add(a, b string) string {
	x, okX := new(big.Int).SetString(a, 10)
	y, okY := new(big.Int).SetString(b, 10)
	if !okX || !okY {
		return "not a number"
	}
	return x.Add(x, y).String()
}
