package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	// Bytes asked for per fetch and per partition of a fetch, and fetches at once:
	// 16 MiB of batches in memory at most, as they are on the wire.
	fetchMaxBytes          = 1 << 20
	fetchMaxPartitionBytes = 256 << 10
	fetchesAtOnce          = 2
	// pollMaxRecords bounds the records handed over at once.
	pollMaxRecords = 5_000
	// stallTimeout is how long the topic may give nothing at all before reading it
	// is an error. A leader election takes seconds.
	stallTimeout = 30 * time.Second
)

// reader reads spans of a topic, all partitions at once, and hands over what lies
// within them.
type reader struct {
	cl    *kgo.Client
	topic string
	// left holds the spans not read to their end; from moves.
	left map[int32]*span
	// deleted counts offsets that retention deleted before they were read.
	deleted int64
}

// readerOpts returns the options of a client that reads where it is told to. They
// come behind the caller's, in a slice of their own.
func readerOpts(opts []kgo.Opt) []kgo.Opt {
	return append(slices.Clone(opts),
		// Nobody says it for us: a position that is gone is an error to handle here.
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		// Control records move positions, so a span that ends with them ends.
		kgo.KeepControlRecords(),
		kgo.FetchMaxBytes(fetchMaxBytes),
		kgo.FetchMaxPartitionBytes(fetchMaxPartitionBytes),
		kgo.MaxConcurrentFetches(fetchesAtOnce),
	)
}

func newReader(cl *kgo.Client, topic string, spans []span) *reader {
	r := &reader{cl: cl, topic: topic, left: make(map[int32]*span, len(spans))}
	for _, s := range spans {
		r.left[s.partition] = &s
	}
	return r
}

// run calls use with runs of records of one partition, until every span is read
// or use fails. Records are handed over in order; use may keep them only until it
// returns what it made of them to others. moved hears how many offsets were passed.
func (r *reader) run(ctx context.Context, use func([]*kgo.Record) error, moved func(int64)) error {
	at := make(map[int32]kgo.Offset, len(r.left))
	for p, s := range r.left {
		at[p] = kgo.NewOffset().At(s.from)
	}
	r.cl.AddConsumePartitions(map[string]map[int32]kgo.Offset{r.topic: at})
	defer func() { r.cl.PurgeTopicsFromClient(r.topic) }()

	for len(r.left) > 0 {
		fetches, err := r.poll(ctx)
		if err != nil {
			return err
		}
		var failed error
		fetches.EachError(func(_ string, p int32, err error) {
			failed = errors.Join(failed, r.recover(ctx, p, err))
		})
		if failed != nil {
			return failed
		}
		fetches.EachPartition(func(f kgo.FetchTopicPartition) {
			if failed == nil {
				failed = r.take(f.Partition, f.Records, use, moved)
			}
		})
		if failed != nil {
			return failed
		}
	}
	return nil
}

// poll waits for records, stallTimeout at most.
func (r *reader) poll(ctx context.Context) (kgo.Fetches, error) {
	wait, cancel := context.WithTimeout(ctx, stallTimeout)
	defer cancel()
	fetches := r.cl.PollRecords(wait, pollMaxRecords)
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("read topic %s: %w", r.topic, context.Cause(ctx))
	case wait.Err() != nil && fetches.NumRecords() == 0:
		for p, s := range r.left {
			return nil, fmt.Errorf("read topic %s: nothing came for %v; partition %d stands at offset %d below %d: check the brokers, then run verify again",
				r.topic, stallTimeout, p, s.from, s.to)
		}
	}
	return fetches, nil
}

// recover handles an error of one partition. A position that retention deleted
// moves to the log's new start; everything else ends the run.
func (r *reader) recover(ctx context.Context, partition int32, err error) error {
	s := r.left[partition]
	if errors.Is(err, context.DeadlineExceeded) || (s == nil && partition >= 0) {
		return nil
	}
	if s == nil || !errors.Is(err, kerr.OffsetOutOfRange) {
		return fmt.Errorf("read %s/%d: %w", r.topic, partition, err)
	}
	starts, listErr := kadm.NewClient(r.cl).ListStartOffsets(ctx, r.topic)
	start, ok := starts.Lookup(r.topic, partition)
	if listErr != nil || !ok || start.Err != nil || start.Offset <= s.from {
		return fmt.Errorf("read %s/%d@%d: %w", r.topic, partition, s.from, errors.Join(err, listErr, start.Err))
	}
	only := map[string][]int32{r.topic: {partition}}
	r.cl.RemoveConsumePartitions(only)
	next := min(start.Offset, s.to)
	r.deleted += next - s.from
	s.from = next
	if s.records() == 0 {
		delete(r.left, partition)
		return nil
	}
	r.cl.AddConsumePartitions(map[string]map[int32]kgo.Offset{r.topic: {partition: kgo.NewOffset().At(s.from)}})
	return nil
}

// take hands over what of records lies in the partition's span, and stops fetching
// the partition at the span's end.
func (r *reader) take(partition int32, records []*kgo.Record, use func([]*kgo.Record) error, moved func(int64)) error {
	s := r.left[partition]
	if s == nil || len(records) == 0 {
		return nil
	}
	if records[0].Offset < s.from {
		return fmt.Errorf("read %s/%d: offset %d came after %d: the log was cut while it was read, run verify again",
			r.topic, partition, records[0].Offset, s.from-1)
	}
	next := records[len(records)-1].Offset + 1
	if next > s.to {
		// Offsets may have gaps, so the span's last record need not be to-1.
		next = s.to
		end := slices.IndexFunc(records, func(rec *kgo.Record) bool { return rec.Offset >= s.to })
		records = records[:end]
	}
	if len(records) > 0 {
		if err := use(records); err != nil {
			return err
		}
	}
	moved(next - s.from)
	s.from = next
	if s.records() == 0 {
		delete(r.left, partition)
		r.cl.PauseFetchPartitions(map[string][]int32{r.topic: {partition}})
	}
	return nil
}
