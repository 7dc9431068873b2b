package verify

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// positions is what Kafka says of one topic and one group. committed was read
// before everything else: see the package documentation.
type positions struct {
	clusterID string
	topicID   [16]byte
	parts     []position // ascending by partition
}

// position is what Kafka says of one partition, in offsets.
type position struct {
	partition int32
	// committed is -1 if the group has committed nothing.
	committed int64
	// settled is up to where workers have put records on record: committed, or what
	// Postgres has if there is none.
	settled int64
	// start is the first offset of the log, end the one behind its last.
	start, end int64
}

// span is the half-open range of offsets [from, to) of one partition.
type span struct {
	partition int32
	from, to  int64
}

func (s span) records() int64 { return max(s.to-s.from, 0) }

// readPositions asks for the committed offsets first and for the log second. A
// topic that does not exist has no partitions; anything that could not be read is
// an error, never a zero.
func readPositions(ctx context.Context, cl *kgo.Client, topic, group string) (positions, error) {
	adm := kadm.NewClient(cl)
	fail := func(what string, err error) (positions, error) {
		return positions{}, fmt.Errorf("read %s of topic %s, group %s: %w", what, topic, group, err)
	}

	committed, err := adm.FetchOffsets(ctx, group)
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		return fail("committed offsets", err)
	}
	meta, err := adm.Metadata(ctx, topic)
	if err != nil {
		return fail("metadata", err)
	}
	detail := meta.Topics[topic]
	if errors.Is(detail.Err, kerr.UnknownTopicOrPartition) {
		return positions{clusterID: meta.Cluster}, nil
	}
	if detail.Err != nil {
		return fail("metadata", detail.Err)
	}
	starts, err := adm.ListStartOffsets(ctx, topic)
	if err = errors.Join(err, starts.Error()); err != nil {
		return fail("log starts", err)
	}
	ends, err := adm.ListEndOffsets(ctx, topic)
	if err = errors.Join(err, ends.Error()); err != nil {
		return fail("log ends", err)
	}

	pos := positions{clusterID: meta.Cluster, topicID: detail.ID}
	for _, p := range detail.Partitions.Sorted() {
		at := position{partition: p.Partition, committed: -1}
		if c, ok := committed.Lookup(topic, p.Partition); ok {
			if c.Err != nil {
				return fail("committed offsets", c.Err)
			}
			at.committed = c.At
		}
		at.settled = at.committed
		start, okStart := starts.Lookup(topic, p.Partition)
		end, okEnd := ends.Lookup(topic, p.Partition)
		if !okStart || !okEnd {
			return fail("log", fmt.Errorf("partition %d has no offsets", p.Partition))
		}
		at.start, at.end = start.Offset, end.Offset
		pos.parts = append(pos.parts, at)
	}
	return pos, nil
}
