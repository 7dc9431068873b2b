package ledger

import (
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"hookledger/schema"
)

// Mapper tells what an event means today. It returns a *schema.MappingError for an
// event that should mean something but cannot, and an error that wraps
// schema.ErrUnknownSource for a source that is not configured here.
type Mapper func(*schema.Event) (schema.Meaning, error)

// Position names one partition of one topic of one cluster.
type Position struct {
	ClusterID string
	Topic     string
	TopicID   [16]byte
	Partition int32
}

// Record is one record of the topic.
type Record struct {
	Partition   int32
	Offset      int64
	LeaderEpoch int32
	Timestamp   time.Time
	// Value is nil for a tombstone.
	Key, Value []byte
	Headers    []schema.Header
}

// Batch is a run of records of one partition, applied in one transaction.
type Batch struct {
	Position
	// Start is the position: the next of the batch before, never the offset of the
	// first record, which may lie behind a gap.
	Start int64
	// From is the last offset whose Kafka commit was acknowledged.
	From int64
	// Records have ascending offsets ≥ Start, gaps allowed, all of Partition.
	Records []Record
}

// Options of a Ledger. The timeouts must lie below the session timeout of the
// consumer group, so that a paused worker's locks are gone before its partitions
// have a new owner that waits for them.
type Options struct {
	// StatementTimeout bounds each statement except COMMIT. Zero means 5s.
	StatementTimeout time.Duration
	// LockTimeout bounds each wait for a lock. Zero means 3s.
	LockTimeout time.Duration
	// IdleTimeout bounds the time between two statements of a transaction. Zero means 5s.
	IdleTimeout time.Duration
}

// Ledger applies batches of records. It is safe for concurrent use; each Apply
// holds one connection of the pool while it runs.
type Ledger struct {
	pool     *pgxpool.Pool
	mapper   Mapper
	settings []arg
	surge    *surge
	// unprepared is set once a pooler turned out not to know prepared statements.
	unprepared atomic.Bool
	// wary counts down the batches that are not trusted to be as new as they look.
	wary atomic.Int64
}

// waryBatches is for how many batches the ledger stays wary. Where two events of many
// tell of one movement, every batch may meet a wall, and each would cost a second
// transaction; so one in twenty does.
const waryBatches = 20

// trusts tells whether a batch that looks new is written as if it were.
func (l *Ledger) trusts() bool { return l.wary.Load() <= 0 || l.wary.Add(-1) < 0 }

// warned tells whether err says that such a batch was not new, and is wary if so.
func (l *Ledger) warned(err error) bool {
	met := errors.Is(err, errWall)
	if met {
		l.wary.Store(waryBatches)
	}
	return met
}

// New returns a Ledger on pool, which may lead through a pooler in transaction mode.
func New(pool *pgxpool.Pool, mapper Mapper, o Options) *Ledger {
	return &Ledger{pool: pool, mapper: mapper, settings: o.settings(), surge: newSurge()}
}

func (o Options) settings() []arg {
	ms := func(d, zero time.Duration) arg {
		if d <= 0 {
			d = zero
		}
		return textArg(strconv.FormatInt(max(d.Milliseconds(), 1), 10) + "ms")
	}
	return []arg{
		ms(o.StatementTimeout, 5*time.Second),
		ms(o.LockTimeout, 3*time.Second),
		ms(o.IdleTimeout, 5*time.Second),
	}
}

// Committed is what one or more transactions of an Apply durably did. Only Apply
// makes one with anything in it: whoever commits an offset needs it.
type Committed struct {
	position    Position
	next        int64
	outcomes    [outcomeCount]int64
	bodyChanged int64
	received    []time.Time
	surging     []string
}

// Position is the partition of which the records were.
func (c Committed) Position() Position { return c.position }

// Next is the offset to read next, and the one to commit to Kafka.
func (c Committed) Next() int64 { return c.next }

// Count is the number of records with outcome o.
func (c Committed) Count(o Outcome) int64 { return c.outcomes[o] }

// Records is the number of records with any outcome.
func (c Committed) Records() int64 {
	var n int64
	for _, k := range c.outcomes {
		n += k
	}
	return n
}

// BodyChanged is how many of the duplicates had other bytes of the same meaning.
func (c Committed) BodyChanged() int64 { return c.bodyChanged }

// ReceivedAt holds when each record that was no duplicate had been received, in
// offset order, as far as the record says. Delays are measured from it.
func (c Committed) ReceivedAt() []time.Time { return c.received }

// Surging names the sources that had more records in quarantine than a bad record or
// two would explain. Each has an open incident quarantine_surge.
func (c Committed) Surging() []string { return c.surging }

// add makes c what c and a later transaction did together.
func (c *Committed) add(later Committed) {
	c.next = later.next
	for o, n := range later.outcomes {
		c.outcomes[o] += n
	}
	c.bodyChanged += later.bodyChanged
	c.received = append(c.received, later.received...)
	c.surging = append(c.surging, later.surging...)
}

// Outcome is what became of a record.
type Outcome uint8

// The outcomes. Applied to Discarded are also the outcomes of an event, kept in
// processed_events.
const (
	// Applied: the event has at least one entry.
	Applied Outcome = iota
	// Ignored: the event moves no money; its status, if any, was kept.
	Ignored
	// SameEffect: other events have told of the same movements, with equal money.
	SameEffect
	// Stale: the event only has a status, older than the one known.
	Stale
	// Discarded: a person decided against the event.
	Discarded
	// Duplicate: the event was known, and nothing changed.
	Duplicate
	// Conflict: the event was known with another meaning; both are kept.
	Conflict
	// Quarantined: the record cannot be applied, and is kept until a person decides.
	Quarantined

	outcomeCount = int(Quarantined) + 1
)

var outcomeNames = [outcomeCount]string{
	"applied", "ignored", "same_effect", "stale", "discarded", "duplicate", "conflict", "quarantined",
}

// String returns the outcome as it stands in SQL and metrics.
func (o Outcome) String() string { return outcomeNames[o] }

// Outcomes returns all outcomes.
func Outcomes() []Outcome {
	return []Outcome{Applied, Ignored, SameEffect, Stale, Discarded, Duplicate, Conflict, Quarantined}
}

// blocks tells whether an event with this outcome stands whatever it maps to today.
func (o Outcome) blocks() bool { return o == Applied || o == SameEffect || o == Discarded }

func parseOutcome(name []byte) (Outcome, bool) {
	for o, n := range outcomeNames {
		if n == string(name) {
			return Outcome(o), true
		}
	}
	return 0, false
}
