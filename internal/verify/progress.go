package verify

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// judgePositions compares committed offsets, progress and the log. Progress is read
// after the committed offsets, so it may be ahead of them and never behind. It also
// says whether the group committed nothing of what workers applied: then it is another
// group, or its offsets expired.
func judgePositions(ctx context.Context, opts Options, cl *kgo.Client, pos positions) (f finding, strange bool, err error) {
	next, err := readProgress(ctx, opts, pos, &f)
	if err != nil {
		return f, false, err
	}
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
func readProgress(ctx context.Context, opts Options, pos positions, f *finding) (map[int32]int64, error) {
	rows, err := opts.Pool.Query(ctx, sqlProgress, opts.Topic)
	if err != nil {
		return nil, readError("progress", err)
	}
	next := make(map[int32]int64, len(pos.parts))
	var (
		cluster   string
		topicID   [16]byte
		partition int32
		offset    int64
	)
	_, err = pgx.ForEachRow(rows, []any{&cluster, &topicID, &partition, &offset}, func() error {
		switch {
		case cluster != pos.clusterID:
			name := fmt.Sprintf("%s/%d", opts.Topic, partition)
			f.add(name, fmt.Sprintf("%s: progress belongs to cluster %s, this is %s", name, label(cluster), label(pos.clusterID)))
		case len(pos.parts) == 0 && offset > 0:
			name := fmt.Sprintf("%s/%d", opts.Topic, partition)
			f.add(name, fmt.Sprintf("%s: progress is %d, and the topic is gone: what was not applied yet is gone with it", name, offset))
		case topicID == pos.topicID:
			next[partition] = offset
		}
		return nil
	})
	if err != nil {
		return nil, readError("progress", err)
	}
	return next, nil
}
