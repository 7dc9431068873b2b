package broker

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Offset is a place in a partition.
type Offset struct {
	// At is an offset; in CommittedOffsets it is the next one to read.
	At int64
	// LeaderEpoch is the epoch of the leader that wrote the record before At, or -1.
	LeaderEpoch int32
}

// StartOffsets returns the first offset of each partition of topic that still has its
// record. An error of one partition is an error of all.
func StartOffsets(ctx context.Context, cl *kgo.Client, topic string) (map[int32]Offset, error) {
	listed, err := kadm.NewClient(cl).ListStartOffsets(ctx, topic)
	return listedOffsets("log start", topic, listed, err)
}

// EndOffsets returns the offset that the next record of each partition of topic will
// have. An error of one partition is an error of all.
func EndOffsets(ctx context.Context, cl *kgo.Client, topic string) (map[int32]Offset, error) {
	listed, err := kadm.NewClient(cl).ListEndOffsets(ctx, topic)
	return listedOffsets("log end", topic, listed, err)
}

func listedOffsets(what, topic string, listed kadm.ListedOffsets, err error) (map[int32]Offset, error) {
	if err == nil {
		err = listed.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("list %s offsets of topic %s: %w", what, topic, err)
	}
	offsets := make(map[int32]Offset, len(listed[topic]))
	for p, o := range listed[topic] {
		if o.Offset < 0 {
			return nil, fmt.Errorf("list %s offsets of topic %s: partition %d has no answer", what, topic, p)
		}
		offsets[p] = Offset{o.Offset, o.LeaderEpoch}
	}
	if len(offsets) == 0 {
		return nil, fmt.Errorf("list %s offsets of topic %s: %w", what, topic, ErrNoTopic)
	}
	return offsets, nil
}

// CommittedOffsets returns the committed offset of each partition of topic that group
// has one for. A partition without an entry has no commit; a partition that could not
// be read makes the whole call fail.
func CommittedOffsets(ctx context.Context, cl *kgo.Client, group, topic string) (map[int32]Offset, error) {
	fetched, err := kadm.NewClient(cl).FetchOffsets(ctx, group)
	if errors.Is(err, kerr.GroupIDNotFound) {
		return map[int32]Offset{}, nil // a group that never committed
	}
	if err == nil {
		err = fetched.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("read committed offsets of group %s for topic %s: %w", group, topic, err)
	}
	offsets := make(map[int32]Offset, len(fetched[topic]))
	for p, o := range fetched[topic] {
		if o.At >= 0 {
			offsets[p] = Offset{o.At, o.LeaderEpoch}
		}
	}
	return offsets, nil
}
