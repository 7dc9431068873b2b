package ops

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/broker"
)

// ErrGroupActive says that the group has members, so its offsets are theirs to move.
var ErrGroupActive = errors.New("the group has members: stop the workers (SIGTERM) and try again")

// PartitionError says that a topic has no such partition.
type PartitionError struct {
	Topic     string
	Partition int32
	// Has is how many partitions the topic has.
	Has int
}

// Error names those that there are.
func (e *PartitionError) Error() string {
	return fmt.Sprintf("topic %s has no partition %d: its partitions are 0 to %d", e.Topic, e.Partition, e.Has-1)
}

// Target says where a reset moves each partition. Exactly one field is set.
type Target struct {
	// Earliest is the start of the log.
	Earliest bool
	// Offset is the same offset in every partition, or of one with Partition.
	Offset *int64
	// Time moves to the first record received at or after it, or to the end of the log.
	Time time.Time
}

// Move is what a reset does to one partition.
type Move struct {
	Partition int32 `json:"partition"`
	// From is the committed offset now, -1 if there is none.
	From int64 `json:"from_offset"`
	// To is the offset to read next.
	To int64 `json:"to_offset"`
	// Records is how many offsets lie between To and the end of the log: the most that
	// will be read.
	Records int64 `json:"records"`
}

// PlanReset says what a reset of group to target would do to the partitions of topic,
// or to the one partition if it is not negative. It changes nothing.
func PlanReset(ctx context.Context, cl *kgo.Client, group, topic string, target Target, partition int32) ([]Move, error) {
	committed, err := broker.CommittedOffsets(ctx, cl, group, topic)
	if err != nil {
		return nil, err
	}
	starts, err := broker.StartOffsets(ctx, cl, topic)
	if err != nil {
		return nil, err
	}
	ends, err := broker.EndOffsets(ctx, cl, topic)
	if err != nil {
		return nil, err
	}
	var at map[int32]int64
	if !target.Time.IsZero() {
		if at, err = OffsetsAt(ctx, cl, topic, target.Time); err != nil {
			return nil, err
		}
	}
	var moves []Move
	for _, p := range slices.Sorted(maps.Keys(starts)) {
		if partition >= 0 && p != partition {
			continue
		}
		m := Move{Partition: p, From: -1}
		if c, ok := committed[p]; ok {
			m.From = c.At
		}
		switch {
		case target.Earliest:
			m.To = starts[p].At
		case target.Offset != nil:
			m.To = *target.Offset
		default:
			m.To = at[p]
		}
		m.To = min(max(m.To, starts[p].At), ends[p].At)
		m.Records = ends[p].At - m.To
		moves = append(moves, m)
	}
	if len(moves) == 0 {
		return nil, &PartitionError{Topic: topic, Partition: partition, Has: len(starts)}
	}
	return moves, nil
}

// OffsetsAt returns, for each partition of topic, the offset of the first record received
// at or after t, or the end of the log. No record is older than 1970, and to Kafka a
// negative time is the name of an end of the log.
func OffsetsAt(ctx context.Context, cl *kgo.Client, topic string, t time.Time) (map[int32]int64, error) {
	listed, err := kadm.NewClient(cl).ListOffsetsAfterMilli(ctx, max(t.UnixMilli(), 0), topic)
	if err == nil {
		err = listed.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("find offsets of topic %s at %s: %w", topic, t.Format(time.RFC3339), err)
	}
	at := make(map[int32]int64, len(listed[topic]))
	for p, o := range listed[topic] {
		at[p] = o.Offset
	}
	return at, nil
}

// CheckGroupEmpty fails with ErrGroupActive if group has members.
func CheckGroupEmpty(ctx context.Context, cl *kgo.Client, group string) error {
	described, err := kadm.NewClient(cl).DescribeGroups(ctx, group)
	if err == nil {
		err = described.Error()
	}
	if errors.Is(err, kerr.GroupIDNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("describe group %s: %w", group, err)
	}
	if n := len(described[group].Members); n > 0 {
		members := "1 member"
		if n > 1 {
			members = strconv.Itoa(n) + " members"
		}
		return fmt.Errorf("group %s with %s: %w", group, members, ErrGroupActive)
	}
	return nil
}

// Reset moves the committed offsets of group as planned. It fails with ErrGroupActive
// if a member joined meanwhile.
func Reset(ctx context.Context, cl *kgo.Client, group, topic string, moves []Move) error {
	offsets := make(kadm.Offsets)
	for _, m := range moves {
		offsets.AddOffset(topic, m.Partition, m.To, -1)
	}
	responses, err := kadm.NewClient(cl).CommitOffsets(ctx, group, offsets)
	if err == nil {
		err = responses.Error()
	}
	switch {
	case errors.Is(err, kerr.UnknownMemberID), errors.Is(err, kerr.RebalanceInProgress), errors.Is(err, kerr.IllegalGeneration):
		return fmt.Errorf("reset group %s: %w", group, ErrGroupActive)
	case err != nil:
		return fmt.Errorf("reset group %s: %w", group, err)
	}
	return nil
}
