package verify

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"hookledger/schema"
)

// batchRecords is how many records are looked up at once. A statement of 10,000
// keys costs its round trip once, and 150 bytes a record until it is answered.
const batchRecords = 10_000

// seen is what verify keeps of a record: who it says it is, and its hash.
type seen struct {
	partition  int32
	offset     int64
	source, id string
	key        schema.EventKey
	hash       [32]byte
	receivedAt time.Time
	// occurredAt is zero where the event does not say.
	occurredAt time.Time
	// lies says that the value does not match the hash in the record's own header.
	lies bool
}

// name is how a report calls the record.
func (s *seen) name(topic string) string {
	if s.source == "" && s.id == "" {
		return "(no event) at " + place(topic, s.partition, s.offset)
	}
	return label(s.source+"/"+s.id) + " at " + place(topic, s.partition, s.offset)
}

// accounting is what came of looking records up.
type accounting struct {
	records int64
	// unaccounted: nowhere on record. rewindTo is the first such offset by partition.
	unaccounted finding
	rewindTo    map[int32]int64
	// mismatched: the bytes are not those that were applied or received.
	mismatched finding
	// byLedger: the event's row was forgotten, its entry stands.
	byLedger finding
	// forgotten: perhaps known before the memory of events begins, and without an entry.
	forgotten finding
	// changed: a known event with other bytes and no conflict on record.
	changed finding
	// moneyless: applied, and without an entry. Looked for in an increment alone, where
	// the tables are not compared whole.
	moneyless  finding
	signatures signatures
}

func (a *accounting) merge(b *accounting) {
	a.records += b.records
	for p, offset := range b.rewindTo {
		a.lose(p, offset)
	}
	a.unaccounted.merge(b.unaccounted)
	a.mismatched.merge(b.mismatched)
	a.byLedger.merge(b.byLedger)
	a.forgotten.merge(b.forgotten)
	a.changed.merge(b.changed)
	a.moneyless.merge(b.moneyless)
	a.signatures.merge(&b.signatures)
}

// lose remembers how far back a partition has to go.
func (a *accounting) lose(partition int32, offset int64) {
	if a.rewindTo == nil {
		a.rewindTo = make(map[int32]int64)
	}
	if first, ok := a.rewindTo[partition]; !ok || offset < first {
		a.rewindTo[partition] = offset
	}
}

// accountant looks records up in the tables.
type accountant struct {
	pool    *pgxpool.Pool
	topic   string
	topicID [16]byte
	workers int

	limits         limits
	acks           *acks
	checkSignature func(*schema.Event) error
	incremental    bool
}

// account reads every span and looks up each record. Memory is bounded by the
// reader's fetches and one batch per worker, whatever the topic's size.
func (a *accountant) account(ctx context.Context, r *reader, moved func(int64)) (accounting, error) {
	var (
		mu    sync.Mutex
		total accounting
	)
	group, ctx := errgroup.WithContext(ctx)
	runs := make(chan []*kgo.Record)
	for range a.workers {
		// Ends when runs is closed and empty, or when ctx is done.
		group.Go(func() error {
			b := batch{accountant: a}
			err := b.work(ctx, runs)
			mu.Lock()
			defer mu.Unlock()
			total.merge(&b.accounting)
			return err
		})
	}
	group.Go(func() error {
		defer close(runs)
		return r.run(ctx, func(records []*kgo.Record) error {
			select {
			case runs <- records:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}, moved)
	})
	err := group.Wait()
	return total, err
}

// batch is one worker's part: records not looked up yet, and what came of the others.
type batch struct {
	*accountant
	accounting

	open    []seen
	below   map[int32]int64
	headers []schema.Header // scratch
}

func (b *batch) work(ctx context.Context, runs <-chan []*kgo.Record) error {
	b.open = make([]seen, 0, batchRecords)
	b.below = b.limits.below()
	for records := range runs {
		for _, rec := range records {
			if rec.Attrs.IsControl() {
				continue
			}
			b.see(rec)
			if len(b.open) == cap(b.open) {
				if err := b.lookUp(ctx); err != nil {
					return err
				}
			}
		}
	}
	return b.lookUp(ctx)
}

// see reads a record's identity, hashes its value and checks its signature. A record
// that is no event of ours has what could be read of it; only the quarantine can hold
// such a record. What is not to be judged only shows that it is there.
func (b *batch) see(rec *kgo.Record) {
	b.headers = b.headers[:0]
	for _, h := range rec.Headers {
		b.headers = append(b.headers, schema.Header(h))
	}
	e, err := schema.DecodeRecord(rec.Key, rec.Value, b.headers)
	if err == nil {
		b.acks.see(e.Key())
	}
	if !b.limits.judges(rec, e.ReceivedAt, b.below[rec.Partition]) {
		return
	}
	var decode *schema.DecodeError
	s := seen{
		partition: rec.Partition, offset: rec.Offset,
		source: e.Source, id: e.ID, key: e.Key(), hash: e.BodySHA256, receivedAt: e.ReceivedAt, occurredAt: e.OccurredAt,
		lies: errors.As(err, &decode) && decode.Reason == "body_hash_mismatch",
	}
	if err == nil {
		b.signatures.check(&e, b.checkSignature, func() string { return s.name(b.topic) })
	}
	b.open = append(b.open, s)
}

// lookUp asks for the open records and empties the batch.
func (b *batch) lookUp(ctx context.Context) error {
	if len(b.open) == 0 {
		return nil
	}
	strange, err := b.strange(ctx)
	if err != nil {
		return err
	}
	b.records += int64(len(b.open))
	if b.incremental {
		if err := b.lookForMoney(ctx); err != nil {
			return err
		}
	}
	if len(strange) > 0 {
		traces, err := b.traces(ctx, strange)
		if err != nil {
			return err
		}
		// After the rows, never before: rows that were forgotten in between were
		// forgotten by the memory that is read now.
		mem, err := readMemory(ctx, b.pool)
		if err != nil {
			return err
		}
		for i, t := range traces {
			b.judge(strange[i], t, mem)
		}
	}
	b.open = b.open[:0]
	return nil
}

// trace is what the tables hold of a record whose event has no row with its hash.
type trace struct {
	row         bool // the event has a row
	own         bool // … that names this very record as the first of the event
	conflict    bool // event and hash are on record as a conflict
	quarantined bool // this very record is in quarantine, or was
	altered     bool // … with other bytes
	entry       bool // the event has an entry
}

// judge decides one record that is not plainly applied.
func (b *batch) judge(s *seen, t trace, mem memory) {
	name := s.name(b.topic)
	switch {
	case t.own, t.altered, s.lies && !t.quarantined:
		// The bytes of the record are not what they were when it was put on record. An
		// event that is not on record at all is unaccounted on top of it.
		b.mismatched.add(s.id, name)
		if !t.row && !t.conflict && !t.quarantined && !t.entry {
			b.miss(s, name)
		}
	case t.quarantined, t.conflict:
	case t.row:
		// Other bytes at another place: the worker found that they mean the same, or
		// a status that another superseded. Verify does not run the mapping, so it
		// can only say so.
		b.changed.add(s.id, name)
	case t.entry:
		// The money moved, exactly as the entry says. Whether the event's row had
		// to be there is the business of CheckEntries.
		b.byLedger.add(s.id, name)
	case mem.mayHaveForgotten(s):
		b.forgotten.add(s.id, name)
	default:
		b.miss(s, name)
	}
}

func (b *batch) miss(s *seen, name string) {
	b.unaccounted.add(s.id, name)
	b.lose(s.partition, s.offset)
}
