package ops

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/broker"
)

const (
	// ratePause lies between the two looks from which a first answer takes its rate:
	// several batches of a busy worker, and an answer within a second.
	ratePause = 400 * time.Millisecond
	// agePatience bounds how long the oldest records are waited for.
	agePatience = 600 * time.Millisecond
)

// Lag says how far the group is behind the topic. It marshals to the JSON contract of the
// command.
type Lag struct {
	Partitions []PartitionLag `json:"partitions"`
	// RecordsBehind is the sum over the partitions.
	RecordsBehind int64 `json:"records_behind"`
	// SecondsBehind is the age of the oldest record that is not applied; 0 if all are,
	// nil if the broker did not tell in time.
	SecondsBehind *float64 `json:"seconds_behind"`
	// RecordsPerSecond is how many are applied, ArrivingPerSecond how many are written;
	// nil if that was not measured.
	RecordsPerSecond  *float64 `json:"records_per_second"`
	ArrivingPerSecond *float64 `json:"arriving_per_second"`
	// DrainSeconds is how long it takes at these rates until nothing is behind; nil if
	// that is never, or not known.
	DrainSeconds *float64 `json:"drain_seconds"`
	Members      []Member `json:"members"`

	at time.Time
}

// PartitionLag is the lag of one partition.
type PartitionLag struct {
	Partition int32 `json:"partition"`
	LogStart  int64 `json:"log_start"`
	// Committed is the group's committed offset, Progress the next offset as Postgres
	// knows it; nil if there is none, or Postgres was not asked.
	Committed *int64 `json:"committed"`
	Progress  *int64 `json:"progress"`
	LogEnd    int64  `json:"log_end"`
	// RecordsBehind is LogEnd − Committed, as Kafka's own tool counts; without a commit
	// it is all that the log holds.
	RecordsBehind int64    `json:"records_behind"`
	SecondsBehind *float64 `json:"seconds_behind"`
	// Member is the ID of who holds the partition.
	Member *string `json:"member"`
}

// Member is a member of the group.
type Member struct {
	MemberID   string  `json:"member_id"`
	InstanceID *string `json:"instance_id"`
	ClientID   string  `json:"client_id"`
	Host       string  `json:"host"`
	Partitions []int32 `json:"partitions"`
}

// next is the offset of the oldest record that is not applied: by Postgres, which is
// right, else by Kafka.
func (p *PartitionLag) next() int64 {
	next := p.LogStart
	switch {
	case p.Progress != nil:
		next = *p.Progress
	case p.Committed != nil:
		next = *p.Committed
	}
	return min(max(next, p.LogStart), p.LogEnd)
}

// LagReader reads the lag of one group. It changes nothing, joins no group, and may run
// beside workers. Its cost does not depend on how many records are behind: it reads one
// record of each partition.
type LagReader struct {
	// Client asks; Options make the client that reads the oldest records.
	Client  *kgo.Client
	Options []kgo.Opt
	Group   string
	Topic   string
	// Progress returns the next offsets as Postgres knows them; nil if it is not asked.
	Progress func(context.Context) (map[int32]int64, error)
}

// Read returns the lag now. Rates are measured since before, or for ratePause if that is
// nil and anything is behind.
func (r *LagReader) Read(ctx context.Context, before *Lag) (Lag, error) {
	var lag Lag
	err := broker.Patiently(ctx, func() (err error) {
		lag, err = r.look(ctx)
		return err
	})
	if err != nil {
		return Lag{}, err
	}
	if before == nil && lag.unapplied() > 0 {
		first := lag
		select {
		case <-ctx.Done():
			return Lag{}, context.Cause(ctx)
		case <-time.After(ratePause):
		}
		if lag, err = r.look(ctx); err != nil {
			return Lag{}, err
		}
		before = &first
	}
	if err := r.age(ctx, &lag); err != nil {
		return Lag{}, err
	}
	lag.rate(before)
	return lag, nil
}

// look reads commits, then progress, then the log's ends: each may be ahead of what was
// read before, so nothing looks behind that is not.
func (r *LagReader) look(ctx context.Context) (Lag, error) {
	lag := Lag{Partitions: []PartitionLag{}, Members: []Member{}, at: time.Now()}
	committed, err := broker.CommittedOffsets(ctx, r.Client, r.Group, r.Topic)
	if err != nil {
		return lag, err
	}
	var progress map[int32]int64
	if r.Progress != nil {
		if progress, err = r.Progress(ctx); err != nil {
			return lag, err
		}
	}
	starts, err := broker.StartOffsets(ctx, r.Client, r.Topic)
	if err != nil {
		return lag, err
	}
	ends, err := broker.EndOffsets(ctx, r.Client, r.Topic)
	if err != nil {
		return lag, err
	}
	if lag.Members, err = r.members(ctx); err != nil {
		return lag, err
	}
	holders := make(map[int32]*string)
	for i := range lag.Members {
		for _, p := range lag.Members[i].Partitions {
			holders[p] = &lag.Members[i].MemberID
		}
	}
	for _, p := range slices.Sorted(maps.Keys(starts)) {
		one := PartitionLag{Partition: p, LogStart: starts[p].At, LogEnd: ends[p].At, Member: holders[p]}
		one.RecordsBehind = one.LogEnd - one.LogStart
		if c, ok := committed[p]; ok {
			one.Committed = &c.At
			one.RecordsBehind = max(one.LogEnd-c.At, 0)
		}
		if n, ok := progress[p]; ok {
			one.Progress = &n
		}
		lag.RecordsBehind += one.RecordsBehind
		lag.Partitions = append(lag.Partitions, one)
	}
	return lag, nil
}

func (r *LagReader) members(ctx context.Context) ([]Member, error) {
	list := []Member{}
	described, err := kadm.NewClient(r.Client).DescribeGroups(ctx, r.Group)
	if err == nil {
		err = described.Error()
	}
	if errors.Is(err, kerr.GroupIDNotFound) {
		return list, nil
	}
	if err != nil {
		return nil, fmt.Errorf("describe group %s: %w", r.Group, err)
	}
	for _, m := range described[r.Group].Members {
		one := Member{MemberID: m.MemberID, InstanceID: m.InstanceID, ClientID: m.ClientID, Host: m.ClientHost, Partitions: []int32{}}
		if assigned, ok := m.Assigned.AsConsumer(); ok {
			for _, t := range assigned.Topics {
				if t.Topic == r.Topic {
					one.Partitions = append(one.Partitions, t.Partitions...)
				}
			}
		}
		slices.Sort(one.Partitions)
		list = append(list, one)
	}
	return list, nil
}

// unapplied is how many offsets lie between what is applied and the log's ends.
func (l *Lag) unapplied() int64 {
	var n int64
	for i := range l.Partitions {
		n += l.Partitions[i].LogEnd - l.Partitions[i].next()
	}
	return n
}

// age reads the time of the oldest record of each partition that is not applied.
func (r *LagReader) age(ctx context.Context, lag *Lag) error {
	behind := make(map[int32]kgo.Offset)
	parts := make(map[int32]*PartitionLag)
	for i := range lag.Partitions {
		p := &lag.Partitions[i]
		if p.next() == p.LogEnd {
			p.SecondsBehind = new(float64)
			continue
		}
		behind[p.Partition], parts[p.Partition] = kgo.NewOffset().At(p.next()), p
	}
	if len(behind) == 0 {
		lag.SecondsBehind = new(float64)
		return nil
	}
	cl, err := kgo.NewClient(append(slices.Clone(r.Options),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{r.Topic: behind}),
		kgo.FetchMaxPartitionBytes(1), // a broker answers with one batch, whatever its size
		kgo.FetchMaxWait(100*time.Millisecond),
	)...)
	if err != nil {
		return fmt.Errorf("open Kafka client: %w", err)
	}
	defer cl.Close()
	waiting, cancel := context.WithTimeout(ctx, agePatience)
	defer cancel()
	oldest := math.Inf(-1)
	for len(parts) > 0 && waiting.Err() == nil {
		for _, f := range cl.PollFetches(waiting).Records() {
			p := parts[f.Partition]
			if p == nil {
				continue
			}
			age := math.Round(max(lag.at.Sub(f.Timestamp).Seconds(), 0)*1000) / 1000
			p.SecondsBehind, oldest = &age, max(oldest, age)
			delete(parts, f.Partition)
			cl.PauseFetchPartitions(map[string][]int32{r.Topic: {f.Partition}})
		}
	}
	if len(parts) == 0 {
		lag.SecondsBehind = &oldest
	}
	return ctx.Err()
}

// rate compares with an earlier look.
func (l *Lag) rate(before *Lag) {
	left := float64(l.unapplied())
	if left == 0 {
		l.DrainSeconds = new(float64)
	}
	if before == nil {
		return
	}
	earlier := make(map[int32]*PartitionLag, len(before.Partitions))
	for i := range before.Partitions {
		earlier[before.Partitions[i].Partition] = &before.Partitions[i]
	}
	var applied, arrived int64
	for i := range l.Partitions {
		p := &l.Partitions[i]
		b := earlier[p.Partition]
		if b == nil {
			continue
		}
		if p.next() < b.next() || p.LogEnd < b.LogEnd {
			return // a position went back: there is no rate
		}
		applied += p.next() - b.next()
		arrived += p.LogEnd - b.LogEnd
	}
	seconds := l.at.Sub(before.at).Seconds()
	if seconds <= 0 {
		return
	}
	in, out := math.Round(float64(arrived)/seconds*10)/10, math.Round(float64(applied)/seconds*10)/10
	l.RecordsPerSecond, l.ArrivingPerSecond = &out, &in
	if left > 0 && out > in {
		drain := math.Ceil(left / (out - in))
		l.DrainSeconds = &drain
	}
}
