package ops

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// ErrRecordGone says that the topic does not hold a record any more: retention deleted
// it, the log was cut, or the topic was made again.
var ErrRecordGone = errors.New("the topic does not hold the record any more")

// recordPatience bounds how long one record is waited for.
const recordPatience = 10 * time.Second

// ReadRecord reads one record of topic, with a client made of options. It fails with
// ErrRecordGone if there is none at offset.
func ReadRecord(ctx context.Context, options []kgo.Opt, topic string, partition int32, offset int64) (*kgo.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, recordPatience)
	defer cancel()
	fail := func(err error) (*kgo.Record, error) {
		return nil, fmt.Errorf("read record %s/%d@%d: %w", topic, partition, offset, err)
	}
	cl, err := kgo.NewClient(append(slices.Clone(options),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {partition: kgo.NewOffset().At(offset)}}),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.FetchMaxPartitionBytes(1), // a broker answers with one batch, whatever its size
		kgo.FetchMaxWait(200*time.Millisecond),
	)...)
	if err != nil {
		return fail(err)
	}
	defer cl.Close()
	// At the end of the log a fetch waits for what may come; nothing that was read before
	// lies there.
	for {
		fetches := cl.PollFetches(ctx)
		for _, r := range fetches.Records() {
			if r.Offset == offset {
				return r, nil
			}
			return fail(ErrRecordGone)
		}
		for _, e := range fetches.Errors() {
			switch {
			case errors.Is(e.Err, kerr.OffsetOutOfRange), errors.Is(e.Err, kerr.UnknownTopicOrPartition):
				return fail(ErrRecordGone)
			case ctx.Err() != nil:
				return fail(fmt.Errorf("%w: nothing came within %s", context.Cause(ctx), recordPatience))
			default:
				return fail(e.Err)
			}
		}
	}
}
