package verify

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// limits say which records are judged: those in the spans whose time of receipt is
// within [from, to).
type limits struct {
	judged []span
	// ends are the log's ends by partition: how far acknowledged deliveries may lie.
	ends     map[int32]int64
	from, to time.Time
}

// readLimits finds the offsets that a range of time or a mark leaves to judge. A
// record's time is that of its receipt, by the clock of one of several receivers, so
// the offset at which a range ends is looked for clockSlack later; at which it begins
// is exact: everything before the first record that is late enough is too early.
func readLimits(ctx context.Context, cl *kgo.Client, opts Options, pos positions, since *Mark) (limits, error) {
	l := limits{from: opts.From, to: opts.To, ends: map[int32]int64{}}
	begins, err := offsetsAt(ctx, cl, opts.Topic, opts.From)
	if err != nil {
		return l, err
	}
	var until time.Time
	if !opts.To.IsZero() {
		until = opts.To.Add(clockSlack)
	}
	stops, err := offsetsAt(ctx, cl, opts.Topic, until)
	if err != nil {
		return l, err
	}
	for _, at := range pos.parts {
		s := span{partition: at.partition, from: at.start, to: min(at.settled, at.end)}
		if offset, ok := begins.Lookup(opts.Topic, at.partition); ok {
			s.from = max(s.from, offset.Offset)
		}
		if offset, ok := stops.Lookup(opts.Topic, at.partition); ok {
			s.to = min(s.to, offset.Offset)
		}
		if since != nil {
			s.from = max(s.from, since.Partitions[at.partition])
		}
		s.to = max(s.to, s.from)
		l.judged = append(l.judged, s)
		l.ends[at.partition] = at.end
		if offset, ok := stops.Lookup(opts.Topic, at.partition); ok {
			l.ends[at.partition] = min(at.end, offset.Offset)
		}
	}
	return l, nil
}

func offsetsAt(ctx context.Context, cl *kgo.Client, topic string, at time.Time) (kadm.ListedOffsets, error) {
	if at.IsZero() {
		return nil, nil
	}
	// Before 1970 nothing was received; to Kafka such a time names an end of the log.
	offsets, err := kadm.NewClient(cl).ListOffsetsAfterMilli(ctx, max(at.UnixMilli(), 0), topic)
	if err == nil {
		err = offsets.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("find the offsets of topic %s at %s: %w", topic, at.UTC().Format(time.RFC3339), err)
	}
	return offsets, nil
}

// spans are what is read: what is judged and, if acknowledged deliveries are to be
// found, what lies above it up to the end of the log.
func (l limits) spans(toTheEnd bool) []span {
	var out []span
	for _, s := range l.judged {
		if toTheEnd {
			s.to = max(s.to, l.ends[s.partition])
		}
		if s.records() > 0 {
			out = append(out, s)
		}
	}
	return out
}

// judges tells whether a record is among those to judge. Kafka's timestamp is that of the
// receipt without its microseconds, and stands in where a record tells nothing.
func (l limits) judges(rec *kgo.Record, receivedAt time.Time, below int64) bool {
	if receivedAt.IsZero() {
		receivedAt = rec.Timestamp
	}
	return rec.Offset < below && l.covers(receivedAt)
}

// below is the offset of each partition at which judging ends.
func (l limits) below() map[int32]int64 {
	out := make(map[int32]int64, len(l.judged))
	for _, s := range l.judged {
		out[s.partition] = s.to
	}
	return out
}

// covers tells whether a moment is within the range of time.
func (l limits) covers(at time.Time) bool {
	return (l.from.IsZero() || !at.Before(l.from)) && (l.to.IsZero() || at.Before(l.to))
}

// Range says what a report is about, in JSON.
type Range struct {
	// FromTime and ToTime are null where nothing was bounded.
	FromTime *time.Time `json:"from_time"`
	ToTime   *time.Time `json:"to_time"`
	// Since is when what is below the range was proved by an earlier run; null if
	// everything was.
	Since *time.Time `json:"since"`
	// Partitions are the offsets of the topic that were judged.
	Partitions []PartitionRange `json:"partitions"`
}

// PartitionRange is a half-open range of offsets.
type PartitionRange struct {
	Partition int32 `json:"partition"`
	From      int64 `json:"from"`
	To        int64 `json:"to"`
}

func (r *run) rangeOf() Range {
	out := Range{FromTime: timeOrNull(r.opts.From), ToTime: timeOrNull(r.opts.To), Partitions: []PartitionRange{}}
	if r.since != nil {
		out.Since = timeOrNull(r.since.ProvedAt)
	}
	for _, s := range r.limits.judged {
		out.Partitions = append(out.Partitions, PartitionRange{s.partition, s.from, s.to})
	}
	return out
}

func timeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
