package ops

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/broker"
	"hookledger/schema"
)

// Match tells what a secret did.
type Match struct {
	// Events is how many events in the topic it verified, Last when the latest of
	// them was received.
	Events int64
	Last   time.Time
}

// SecretMatches reads the topic from since on and returns, by the ID of the secret, what
// the secrets of the source with this key verified: whichever process verified it, and
// whether or not it has been restarted since. It reads to where the log ends when it
// begins, in bounded memory.
func SecretMatches(ctx context.Context, options []kgo.Opt, topic, source string, since time.Time) (map[string]Match, error) {
	fail := func(err error) (map[string]Match, error) {
		return nil, fmt.Errorf("read who signed for source %s: %w", source, err)
	}
	admin, err := kgo.NewClient(options...)
	if err != nil {
		return fail(err)
	}
	defer admin.Close()
	listed, err := kadm.NewClient(admin).ListOffsetsAfterMilli(ctx, since.UnixMilli(), topic)
	if err == nil {
		err = listed.Error()
	}
	if err != nil {
		return fail(err)
	}
	ends, err := broker.EndOffsets(ctx, admin, topic)
	if err != nil {
		return fail(err)
	}
	from, left := map[int32]kgo.Offset{}, map[int32]int64{}
	for p, end := range ends {
		if at, ok := listed.Lookup(topic, p); ok && at.Offset >= 0 && at.Offset < end.At {
			from[p], left[p] = kgo.NewOffset().At(at.Offset), end.At
		}
	}
	matches := make(map[string]Match)
	if len(from) == 0 {
		return matches, nil
	}
	cl, err := kgo.NewClient(append(slices.Clone(options),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}),
		kgo.KeepControlRecords(), // so that a log that ends with one is seen to end
		kgo.FetchMaxBytes(16<<20),
	)...)
	if err != nil {
		return fail(err)
	}
	defer cl.Close()
	for len(left) > 0 {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return fail(err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if end, reading := left[r.Partition]; reading && r.Offset < end {
				count(matches, source, r)
				if r.Offset == end-1 {
					delete(left, r.Partition)
				}
			}
		})
	}
	return matches, nil
}

func count(matches map[string]Match, source string, r *kgo.Record) {
	var signer, id string
	for _, h := range r.Headers {
		switch h.Key {
		case schema.HeaderHLSource:
			signer = string(h.Value)
		case schema.HeaderHLKeyID:
			id = string(h.Value)
		}
	}
	if signer != source || id == "" {
		return
	}
	m := matches[id]
	m.Events++
	if r.Timestamp.After(m.Last) {
		m.Last = r.Timestamp
	}
	matches[id] = m
}
