package backfill

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/ledger"
	"hookledger/schema"
	"hookledger/schema/source"
)

// Scheme is hl_scheme of imported records, and their hl_key_id.
const Scheme = "import"

// Headers in place of the provider's signature.
const (
	HeaderBy     = "hl_import_by"
	HeaderReason = "hl_import_reason"
)

const (
	// chunk is how many records are looked at at once in a dry run.
	chunk = 1_000
	// ackPatience bounds how long a record waits for its acknowledgement.
	ackPatience = time.Minute
	// buffered bounds the records on their way.
	buffered = 1_000
	// maxBad bounds how many bad lines are listed.
	maxBad = 1_000
)

// Bad is a line, or an event of a line, that could not be imported.
type Bad struct {
	Line   int64  `json:"line"`
	Reason string `json:"reason"`
	// Detail names places, never values.
	Detail string `json:"detail"`
}

// Report says what came of an import. In a dry run Imported is 0, and Would what would
// become of the events.
type Report struct {
	ImportID string `json:"import_id"`
	Source   string `json:"source"`
	DryRun   bool   `json:"dry_run"`
	Lines    int64  `json:"lines"`
	Events   int64  `json:"events"`
	Imported int64  `json:"imported"`
	// Known and New are nil unless it was looked.
	Known *int64 `json:"known"`
	New   *int64 `json:"new"`
	// BadCount is how many lines are bad, Bad the first of them.
	BadCount int64 `json:"bad_count"`
	Bad      []Bad `json:"bad"`

	// Counts and Moves are what would become of them, of a dry run.
	Counts ledger.Counts `json:"-"`
	Moves  []ledger.Move `json:"-"`
}

// StoppedError says that the brokers did not acknowledge.
type StoppedError struct {
	// Line is the first line of which it is not known whether it is stored.
	Line int64
	Err  error
}

// Error says what to do.
func (e *StoppedError) Error() string {
	return fmt.Sprintf("import stopped: from line %d on it is not known what is stored: %v: import the same file again, known events move nothing twice", e.Line, e.Err)
}

// Unwrap returns the cause.
func (e *StoppedError) Unwrap() error { return e.Err }

// ErrNoIdentity says that the events of a source have no identity of their own.
var ErrNoIdentity = errors.New("the events of this source have no ID of their own, so each import would make new ones: it cannot be imported")

// Importer imports the events of one source.
type Importer struct {
	Source *source.Source
	// By and Reason stand in the records.
	By, Reason   string
	MaxBodyBytes int
	// Topic and Options make the producer. They are not used in a dry run.
	Topic   string
	Options []kgo.Opt
	// Books, if set, tell in a dry run what would become of the events.
	Books *ledger.Ledger
	// Progress, if set, hears how many lines were read.
	Progress func(lines int64)
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Import reads lines of r to the end and stores their events. On an error the report says
// how far it came.
func (m *Importer) Import(ctx context.Context, r io.Reader) (*Report, error) {
	rep := m.report(false)
	p, err := m.producer()
	if err != nil {
		return rep, err
	}
	defer p.client.Close()
	err = m.each(ctx, r, rep, func(line int64, e *schema.Event) error { return p.send(ctx, line, record(e)) })
	stopped := p.wait(ctx)
	rep.Imported = p.stored
	if stopped != nil {
		return rep, stopped
	}
	return rep, err
}

// DryRun reads lines of r to the end and says what would become of their events.
func (m *Importer) DryRun(ctx context.Context, r io.Reader) (*Report, error) {
	rep := m.report(true)
	s := m.Books.NewSurvey()
	var batch ledger.Batch
	flush := func() error {
		if len(batch.Records) == 0 {
			return nil
		}
		k, err := m.Books.Look(ctx, batch)
		if err != nil {
			return err
		}
		f, err := s.Add(ctx, k)
		rep.Counts.Add(f.Counts)
		batch = ledger.Batch{Start: batch.Start + int64(len(batch.Records))}
		return err
	}
	err := m.each(ctx, r, rep, func(_ int64, e *schema.Event) error {
		batch.Records = append(batch.Records, ledger.Record{Offset: batch.Start + int64(len(batch.Records)), Timestamp: e.ReceivedAt,
			Key: e.RecordKey(), Value: e.Body, Headers: e.Headers()})
		if len(batch.Records) < chunk {
			return nil
		}
		return flush()
	})
	if err == nil {
		err = flush()
	}
	known := rep.Counts[ledger.Duplicate] + rep.Counts[ledger.Conflict]
	fresh := rep.Counts.Records() - known
	rep.Known, rep.New, rep.Moves = &known, &fresh, s.Moves()
	return rep, err
}

func (m *Importer) report(dryRun bool) *Report {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails (Go 1.24 and later)
	return &Report{ImportID: hex.EncodeToString(id[:]), Source: m.Source.Name(), DryRun: dryRun, Bad: []Bad{}}
}

// each gives use the events of r, and reports the others.
func (m *Importer) each(ctx context.Context, r io.Reader, rep *Report, use func(line int64, e *schema.Event) error) error {
	// A body in a string or in base64 is longer than the body.
	lines := newLineReader(r, 4*m.MaxBodyBytes+64<<10)
	for {
		if ctx.Err() != nil {
			return fmt.Errorf("import stopped behind line %d: %w: import the same file again, known events move nothing twice", lines.number, context.Cause(ctx))
		}
		line, err := lines.next()
		if m.Progress != nil {
			m.Progress(lines.number)
		}
		rep.Lines = lines.number
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, errLineTooLong):
			rep.bad(lines.number, "too_large", "the line is longer than any event may be")
			continue
		case err != nil:
			return fmt.Errorf("read line %d: %w", lines.number+1, err)
		}
		list, err := unwrap(line)
		if err != nil {
			rep.bad(lines.number, "line", err.Error())
			continue
		}
		for i := range list {
			events, err := m.events(rep, lines.number, &list[i])
			if err != nil {
				return err
			}
			for _, e := range events {
				rep.Events++
				if err := use(lines.number, e); err != nil {
					return err
				}
			}
		}
	}
}

func (r *Report) bad(line int64, reason, detail string) {
	if r.BadCount++; len(r.Bad) < maxBad {
		r.Bad = append(r.Bad, Bad{line, reason, detail})
	}
}

// events identifies what one body tells, as the receiver does. What is no event is
// reported; an error ends the import.
func (m *Importer) events(rep *Report, line int64, t *told) ([]*schema.Event, error) {
	if len(t.body) > m.MaxBodyBytes {
		rep.bad(line, "too_large", fmt.Sprintf("the body has %d bytes, more than ingest.max_body_bytes", len(t.body)))
		return nil, nil
	}
	if name := m.Source.IDHeader(); name != "" && t.id != "" && t.header.Get(name) == "" {
		t.header.Set(name, t.id)
	}
	d := source.Delivery{ID: rep.ImportID, Header: t.header, Body: t.body}
	items, err := m.Source.Identify(d)
	if err != nil {
		reason, detail := "event", err.Error()
		var unidentified *source.IdentifyError
		if errors.As(err, &unidentified) {
			reason, detail = unidentified.Reason, unidentified.Detail
		}
		rep.bad(line, reason, detail)
	}
	if len(items) == 1 && t.id != "" && items[0].ID != t.id {
		rep.bad(line, source.IdentifyID, "the ID beside the body is not the event's")
		return nil, nil
	}
	if len(items) > 0 && rep.Events == 0 {
		d.ID = "another"
		if again, err := m.Source.Identify(d); err == nil && again[0].ID != items[0].ID {
			return nil, fmt.Errorf("source %s: %w", m.Source.Name(), ErrNoIdentity)
		}
	}
	events := make([]*schema.Event, len(items))
	for i := range items {
		events[i] = m.event(rep, &items[i])
	}
	return events, nil
}

func (m *Importer) event(rep *Report, item *source.Item) *schema.Event {
	now := time.Now
	if m.Now != nil {
		now = m.Now
	}
	return &schema.Event{
		Source: m.Source.Key(), ID: item.ID, Type: item.Type, OccurredAt: item.OccurredAt,
		ReceivedAt: now().UTC(), DeliveryID: rep.ImportID, Scheme: Scheme, KeyID: Scheme, Livemode: item.Livemode,
		SignatureHeaders: []schema.Header{{Key: HeaderBy, Value: []byte(m.By)}, {Key: HeaderReason, Value: []byte(m.Reason)}},
		ContentType:      item.ContentType, Body: item.Body, BodySHA256: sha256.Sum256(item.Body),
	}
}

// record is the record of e. Its bytes are e's.
func record(e *schema.Event) *kgo.Record {
	headers := e.Headers()
	r := &kgo.Record{Key: e.RecordKey(), Value: e.Body, Timestamp: e.ReceivedAt, Headers: make([]kgo.RecordHeader, len(headers))}
	for i, h := range headers {
		r.Headers[i] = kgo.RecordHeader{Key: h.Key, Value: h.Value}
	}
	return r
}

// producer stores records and knows which lines are not stored yet.
type producer struct {
	client *kgo.Client

	mu     sync.Mutex
	stored int64
	failed *StoppedError
}

func (m *Importer) producer() (*producer, error) {
	cl, err := kgo.NewClient(append(slices.Clone(m.Options),
		kgo.DefaultProduceTopic(m.Topic),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		// The hash of the receiver, so that an event lies where its other deliveries do.
		kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)),
		kgo.ProducerBatchMaxBytes(int32(m.MaxBodyBytes+64<<10)),
		kgo.MaxBufferedRecords(buffered),
		kgo.RecordDeliveryTimeout(ackPatience),
	)...)
	if err != nil {
		return nil, fmt.Errorf("open Kafka client: %w", err)
	}
	return &producer{client: cl}, nil
}

// send stores r, in the background; it waits while too many are on their way.
func (p *producer) send(ctx context.Context, line int64, r *kgo.Record) error {
	p.mu.Lock()
	failed := p.failed
	p.mu.Unlock()
	if failed != nil {
		return failed
	}
	// A context that ends must not fail the records of the same request.
	p.client.Produce(context.WithoutCancel(ctx), r, func(_ *kgo.Record, err error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		switch {
		case err == nil:
			p.stored++
		case p.failed == nil || line < p.failed.Line:
			p.failed = &StoppedError{line, err}
		}
	})
	return nil
}

// wait waits for what is on its way.
func (p *producer) wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*ackPatience)
	defer cancel()
	err := p.client.Flush(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.failed != nil:
		return p.failed
	case err != nil:
		return fmt.Errorf("wait for acknowledgements: %w: import the same file again", err)
	}
	return nil
}
