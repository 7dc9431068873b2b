package replay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	// stallTimeout is how long the topic may give nothing at all before reading it is an
	// error. A leader election takes seconds.
	stallTimeout = 30 * time.Second
	// Two fetches of this size at once bound the memory of a reader.
	fetchMaxBytes  = 4 << 20
	pollMaxRecords = 5_000
)

// ErrRecordsGone says that records of a span are not in the topic any more.
var ErrRecordsGone = errors.New("the topic does not hold these records any more: make a new plan")

// source reads spans of the topic, each with a client of its own that is in no group.
type source struct {
	options []kgo.Opt
	topic   string
}

// read hands over the records of span in order, until use fails. passed hears how many
// offsets were passed.
func (s *source) read(ctx context.Context, span Span, use func(*kgo.Record) error, passed func(int64)) error {
	if span.From >= span.To {
		return nil
	}
	cl, err := kgo.NewClient(append(slices.Clone(s.options),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{s.topic: {span.Partition: kgo.NewOffset().At(span.From)}}),
		// Nobody says it for us: a position that is gone is an error to handle here.
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		// Control records move positions, so a span that ends with them ends.
		kgo.KeepControlRecords(),
		kgo.FetchMaxBytes(fetchMaxBytes),
		kgo.FetchMaxPartitionBytes(fetchMaxBytes),
		kgo.MaxConcurrentFetches(2),
	)...)
	if err != nil {
		return fmt.Errorf("open Kafka client: %w", err)
	}
	defer cl.Close()
	for next := span.From; next < span.To; {
		records, err := s.poll(ctx, cl, span.Partition, next)
		if err != nil {
			return err
		}
		for _, r := range records {
			if r.Offset < next {
				return fmt.Errorf("read %s/%d: offset %d came after %d: the log was cut while it was read, try again", s.topic, span.Partition, r.Offset, next-1)
			}
			if r.Offset >= span.To {
				passed(span.To - next)
				return nil
			}
			if !r.Attrs.IsControl() {
				if err := use(r); err != nil {
					return err
				}
			}
			passed(r.Offset + 1 - next)
			next = r.Offset + 1
		}
	}
	return nil
}

// poll waits for records, stallTimeout at most.
func (s *source) poll(ctx context.Context, cl *kgo.Client, partition int32, next int64) ([]*kgo.Record, error) {
	wait, cancel := context.WithTimeout(ctx, stallTimeout)
	defer cancel()
	fetches := cl.PollRecords(wait, pollMaxRecords)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if records := fetches.Records(); len(records) > 0 {
		return records, nil
	}
	fail := func(err error) ([]*kgo.Record, error) {
		return nil, fmt.Errorf("read %s/%d@%d: %w", s.topic, partition, next, err)
	}
	for _, e := range fetches.Errors() {
		switch {
		case errors.Is(e.Err, kerr.OffsetOutOfRange), errors.Is(e.Err, kerr.UnknownTopicOrPartition):
			return fail(ErrRecordsGone)
		case wait.Err() != nil:
			return fail(fmt.Errorf("nothing came for %s: check the brokers, then try again", stallTimeout))
		default:
			return fail(e.Err)
		}
	}
	return nil, nil
}
