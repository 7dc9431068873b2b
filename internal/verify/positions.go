package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
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

// judgePositions compares committed offsets, progress and the log. Progress is read
// after the committed offsets, so it may be ahead of them and never behind. It also
// says whether the group committed nothing of what workers applied: then it is another
// group, or its offsets expired.
func judgePositions(ctx context.Context, opts Options, cl *kgo.Client, pos positions) (f finding, strange bool, err error) {
	p, err := readProgress(ctx, opts, pos)
	if err != nil {
		return f, false, err
	}
	f, next := p.wrong, p.next
	if len(pos.parts) == 0 {
		return f, false, nil
	}
	// Progress may also be ahead of the log's end as it was read; only the end of
	// now can say that it is beyond it.
	ends, err := kadm.NewClient(cl).ListEndOffsets(ctx, opts.Topic)
	if err != nil {
		return f, false, fmt.Errorf("read log ends of topic %s: %w", opts.Topic, err)
	}
	strange = len(next) > 0
	for _, at := range pos.parts {
		strange = strange && at.committed < 0
		name := fmt.Sprintf("%s/%d", opts.Topic, at.partition)
		say := func(format string, args ...any) {
			f.add(name, name+": "+fmt.Sprintf(format, args...))
		}
		if at.committed > at.end {
			say("committed %d is beyond the log's end %d", at.committed, at.end)
		}
		n, ok := next[at.partition]
		if !ok {
			if at.committed > at.start {
				say("committed %d, and Postgres has no progress", at.committed)
			}
			continue
		}
		if end, ok := ends.Lookup(opts.Topic, at.partition); ok && end.Err == nil && n > end.Offset {
			say("progress %d is beyond the log's end %d", n, end.Offset)
		}
		if at.committed > n {
			say("committed %d is ahead of progress %d", at.committed, n)
		}
		if n < at.start {
			say("records %d to %d were deleted before they were applied", n, at.start-1)
		}
	}
	return f, strange, nil
}

// readProgress returns the next offset of each partition of this very topic. Rows
// of another cluster are a finding: this database belongs to that one. Rows of an
// earlier topic of the same name are history.
//
// If workers applied other topics of this cluster and nothing of this one, the name of this
// one is wrong.
func readProgress(ctx context.Context, opts Options, pos positions) (progress, error) {
	p := progress{next: make(map[int32]int64, len(pos.parts))}
	rows, err := opts.Pool.Query(ctx, sqlProgress)
	if err != nil {
		return p, readError("progress", err)
	}
	var (
		cluster   string
		topic     string
		topicID   [16]byte
		partition int32
		offset    int64
		known     bool
		others    []string
	)
	f := &p.wrong
	_, err = pgx.ForEachRow(rows, []any{&cluster, &topic, &topicID, &partition, &offset}, func() error {
		known = known || topic == opts.Topic
		switch {
		case topic != opts.Topic:
			if cluster == pos.clusterID && offset > 0 && !slices.Contains(others, topic) {
				others = append(others, topic)
			}
		case cluster != pos.clusterID:
			name := fmt.Sprintf("%s/%d", opts.Topic, partition)
			f.add(name, fmt.Sprintf("%s: progress belongs to cluster %s, this is %s", name, label(cluster), label(pos.clusterID)))
		case len(pos.parts) == 0 && offset > 0:
			name := fmt.Sprintf("%s/%d", opts.Topic, partition)
			f.add(name, fmt.Sprintf("%s: progress is %d, and the topic is gone: what was not applied yet is gone with it", name, offset))
		case topicID == pos.topicID:
			p.next[partition] = offset
		}
		return nil
	})
	if err != nil {
		return p, readError("progress", err)
	}
	if !known {
		for _, topic := range others {
			f.add(topic, fmt.Sprintf("workers applied records of topic %s of this cluster, and none of %s", label(topic), label(opts.Topic)))
		}
	}
	return p, nil
}

// progress is what Postgres has of positions.
type progress struct {
	// next are the next offsets of the partitions of this very topic.
	next  map[int32]int64
	wrong finding
}

// settleByProgress judges partitions without a committed offset up to what Postgres has:
// the group may be another than the workers', or its offsets expired. What is below
// was put on record by the transaction that wrote it, so this too is read before the rows.
func (r *run) settleByProgress(ctx context.Context) error {
	if !slices.ContainsFunc(r.pos.parts, func(at position) bool { return at.committed < 0 }) {
		return nil
	}
	p, err := readProgress(ctx, r.opts, r.pos)
	if err != nil {
		return err
	}
	for i := range r.pos.parts {
		at := &r.pos.parts[i]
		if next, ok := p.next[at.partition]; ok && at.committed < 0 {
			at.settled = next
		}
	}
	return nil
}
