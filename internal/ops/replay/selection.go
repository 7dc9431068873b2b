package replay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/broker"
	"hookledger/internal/ledger"
	"hookledger/internal/ops"
	"hookledger/schema"
)

// Selection says which records. All that is set must hold; nothing set selects all.
type Selection struct {
	// FromTime and ToTime bound when records were received: from included, to not.
	FromTime *time.Time `json:"from_time,omitempty"`
	ToTime   *time.Time `json:"to_time,omitempty"`
	// Sources are keys of sources.
	Sources  []string `json:"sources,omitempty"`
	Types    []string `json:"types,omitempty"`
	EventIDs []string `json:"event_ids,omitempty"`
	// Account selects events that mean money of this account today.
	Account string `json:"account,omitempty"`
	// Partition is nil for all; FromOffset is included, ToOffset not.
	Partition  *int32 `json:"partition,omitempty"`
	FromOffset *int64 `json:"from_offset,omitempty"`
	ToOffset   *int64 `json:"to_offset,omitempty"`
}

// Span is a run of offsets of one partition.
type Span struct {
	Partition int32 `json:"partition"`
	// From is included, To not.
	From int64 `json:"from_offset"`
	To   int64 `json:"to_offset"`
}

// clockSlack is how much later than its timestamp, which is when it was received, a record
// can lie in the log: the receiver gives up after seconds, so this is for clocks that
// differ.
const clockSlack = 10 * time.Minute

// spans returns where what is selected lies, by partition. end bounds some partitions
// beside the end of the log.
func (s *Selection) spans(ctx context.Context, cl *kgo.Client, topic string, end map[int32]int64) ([]Span, error) {
	starts, err := broker.StartOffsets(ctx, cl, topic)
	if err != nil {
		return nil, err
	}
	ends, err := broker.EndOffsets(ctx, cl, topic)
	if err != nil {
		return nil, err
	}
	var from, to map[int32]int64
	if s.FromTime != nil {
		if from, err = ops.OffsetsAt(ctx, cl, topic, *s.FromTime); err != nil {
			return nil, err
		}
	}
	if s.ToTime != nil {
		if to, err = ops.OffsetsAt(ctx, cl, topic, s.ToTime.Add(clockSlack)); err != nil {
			return nil, err
		}
	}
	list := []Span{}
	for _, p := range slices.Sorted(maps.Keys(starts)) {
		if s.Partition != nil && p != *s.Partition {
			continue
		}
		one := Span{p, starts[p].At, ends[p].At}
		if at, ok := from[p]; ok {
			one.From = max(one.From, at)
		}
		if s.FromOffset != nil {
			one.From = max(one.From, *s.FromOffset)
		}
		if at, ok := to[p]; ok {
			one.To = min(one.To, at)
		}
		if s.ToOffset != nil {
			one.To = min(one.To, *s.ToOffset)
		}
		if at, ok := end[p]; ok {
			one.To = min(one.To, at)
		}
		one.To = max(one.To, one.From)
		list = append(list, one)
	}
	if len(list) == 0 {
		return nil, &ops.PartitionError{Topic: topic, Partition: *s.Partition, Has: len(starts)}
	}
	return list, nil
}

// matches tells whether r, which lies in a span, is selected.
func (s *Selection) matches(r *kgo.Record, mapper ledger.Mapper) (bool, error) {
	if s.FromTime != nil && r.Timestamp.Before(*s.FromTime) || s.ToTime != nil && !r.Timestamp.Before(*s.ToTime) {
		return false, nil
	}
	if len(s.EventIDs) > 0 && !slices.Contains(s.EventIDs, string(r.Key)) {
		return false, nil
	}
	if len(s.Sources) > 0 && !slices.Contains(s.Sources, header(r, schema.HeaderHLSource)) {
		return false, nil
	}
	if len(s.Types) > 0 && !slices.Contains(s.Types, header(r, schema.HeaderType)) {
		return false, nil
	}
	if s.Account == "" {
		return true, nil
	}
	return s.pays(r, mapper)
}

// pays tells whether r means money of the account today. What cannot be told is not
// selected; a source that is not configured here is an error.
func (s *Selection) pays(r *kgo.Record, mapper ledger.Mapper) (bool, error) {
	one := ledgerRecord(r)
	e, err := schema.DecodeRecord(one.Key, one.Value, one.Headers)
	var bad *schema.DecodeError
	if errors.As(err, &bad) {
		return false, nil
	}
	var m schema.Meaning
	if err == nil {
		m, err = mapper(&e)
	}
	var unclear *schema.MappingError
	switch {
	case errors.As(err, &unclear):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("select record %d@%d by account: %w", r.Partition, r.Offset, err)
	}
	return slices.ContainsFunc(m.Postings, func(p schema.Posting) bool { return p.Account == s.Account }), nil
}

func header(r *kgo.Record, key string) string {
	for i := range r.Headers {
		if r.Headers[i].Key == key {
			return string(r.Headers[i].Value)
		}
	}
	return ""
}

// ledgerRecord returns r as the ledger takes it. Bytes are shared.
func ledgerRecord(r *kgo.Record) ledger.Record {
	headers := make([]schema.Header, len(r.Headers))
	for i, h := range r.Headers {
		headers[i] = schema.Header{Key: h.Key, Value: h.Value}
	}
	return ledger.Record{
		Partition: r.Partition, Offset: r.Offset, LeaderEpoch: r.LeaderEpoch, Timestamp: r.Timestamp,
		Key: r.Key, Value: r.Value, Headers: headers,
	}
}
