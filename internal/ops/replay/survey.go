package replay

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/ledger"
)

const (
	// A batch as the workers make them.
	batchRecords = 1_000
	batchBytes   = 4 << 20
	// lookers is how many batches are looked at at once, as a worker has four appliers.
	lookers = 4
)

// Replayer plans and runs replays of one topic.
type Replayer struct {
	// Client asks Kafka; Options make the clients that read.
	Client  *kgo.Client
	Options []kgo.Opt
	Group   string
	Topic   string
	Store   *Store
	Books   *ledger.Ledger
	// Mapper is the one that Books has.
	Mapper ledger.Mapper
	// Progress, if set, hears how many of how many offsets were passed, and of what.
	Progress func(stage string, done, total int64)
}

// step is a run of selected records of one partition.
type step struct {
	Span
	counts ledger.Counts
	// changes says that applying them would write something.
	changes bool
}

// outlook is what would become of what is selected.
type outlook struct {
	steps   []step
	counts  ledger.Counts
	moves   []ledger.Move // by account and currency
	changed int64         // records in steps that change something
	elapsed time.Duration
}

// looking is a batch that is being looked at.
type looking struct {
	span   Span
	done   chan struct{}
	looked *ledger.Looked
	err    error
}

// survey looks at what is selected in spans and says what would become of it.
func (r *Replayer) survey(ctx context.Context, stage string, at ledger.Position, sel Selection, spans []Span) (*outlook, error) {
	begun := time.Now()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	queue := make(chan *looking, lookers)
	read := make(chan error, 1)
	go func() { // ends with the spans, or with ctx
		defer close(queue)
		read <- r.look(ctx, stage, at, sel, spans, queue)
	}()

	out := &outlook{}
	s := r.Books.NewSurvey()
	var failed error
	for l := range queue {
		<-l.done
		if failed == nil {
			if failed = out.add(ctx, s, l); failed != nil {
				cancel(failed) // the reader stops; what it began is waited for
			}
		}
	}
	if err := <-read; failed == nil {
		failed = err
	}
	if failed != nil {
		return nil, failed
	}
	out.moves = s.Moves()
	out.elapsed = time.Since(begun)
	return out, nil
}

func (o *outlook) add(ctx context.Context, s *ledger.Survey, l *looking) error {
	if l.err != nil {
		return l.err
	}
	f, err := s.Add(ctx, l.looked)
	if err != nil {
		return err
	}
	o.counts.Add(f.Counts)
	if f.Changes {
		o.changed += f.Counts.Records()
	}
	if last := len(o.steps) - 1; last >= 0 && !f.Changes && !o.steps[last].changes && o.steps[last].Partition == l.span.Partition {
		o.steps[last].To = l.span.To
		o.steps[last].counts.Add(f.Counts)
		return nil
	}
	o.steps = append(o.steps, step{l.span, f.Counts, f.Changes})
	return nil
}

// look reads spans and begins to look at batches, in order.
func (r *Replayer) look(ctx context.Context, stage string, at ledger.Position, sel Selection, spans []Span, queue chan<- *looking) error {
	slots := make(chan struct{}, lookers)
	b := batcher{at: at, flush: func(batch ledger.Batch) error {
		last := batch.Records[len(batch.Records)-1].Offset
		l := &looking{span: Span{batch.Partition, batch.Start, last + 1}, done: make(chan struct{})}
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		go func() { // ends with the answer of Postgres
			defer func() { <-slots; close(l.done) }()
			l.looked, l.err = r.Books.Look(ctx, batch)
		}()
		queue <- l // the receiver takes all until this is closed
		return nil
	}}
	return r.batches(ctx, stage, sel, spans, &b)
}

// batches reads what is selected in spans into b.
func (r *Replayer) batches(ctx context.Context, stage string, sel Selection, spans []Span, b *batcher) error {
	var total, done int64
	for _, s := range spans {
		total += s.To - s.From
	}
	passed := func(n int64) {
		done += n
		if r.Progress != nil {
			r.Progress(stage, done, total)
		}
	}
	topic := source{r.Options, r.Topic}
	for _, s := range spans {
		err := topic.read(ctx, s, func(rec *kgo.Record) error {
			ok, err := sel.matches(rec, r.Mapper)
			if err != nil || !ok {
				return err
			}
			return b.add(rec)
		}, passed)
		if err == nil {
			err = b.end()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// batcher makes batches of records of one partition after the other.
type batcher struct {
	at    ledger.Position
	flush func(ledger.Batch) error

	batch ledger.Batch
	bytes int
}

func (b *batcher) add(r *kgo.Record) error {
	if len(b.batch.Records) == 0 {
		b.batch = ledger.Batch{Position: b.at, Start: r.Offset, From: r.Offset}
		b.batch.Partition, b.bytes = r.Partition, 0
	}
	b.batch.Records = append(b.batch.Records, ledgerRecord(r))
	b.bytes += len(r.Value) + len(r.Key)
	if len(b.batch.Records) < batchRecords && b.bytes < batchBytes {
		return nil
	}
	return b.end()
}

func (b *batcher) end() error {
	if len(b.batch.Records) == 0 {
		return nil
	}
	full := b.batch
	b.batch = ledger.Batch{}
	return b.flush(full)
}
