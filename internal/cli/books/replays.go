package books

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"hookledger/internal/cli/console"
)

// replayed is a replay in whose range a record of the event lies: a run that selects it, or
// a reset behind it.
type replayed struct {
	ReplayID    int64   `json:"replay_id"`
	Kind        string  `json:"kind"`
	State       string  `json:"state"`
	RequestedBy string  `json:"requested_by"`
	Reason      string  `json:"reason"`
	StartedAt   *string `json:"started_at"`
}

// sqlReplaysOfRecords reads the replays of records: topics, partitions, offsets, and the
// event's ID, source and type, or empty. Spans are what plans of runs have, partitions
// what resets have. Index: none, replays are few.
const sqlReplaysOfRecords = `
select replay_id, kind, state, requested_by, reason, started_at
from replays r
where (r.kind = 'run' or r.state = 'done')
	and exists (
		select from unnest($1::text[], $2::int4[], $3::int8[]) as n (topic, partition, kafka_offset),
			jsonb_array_elements(coalesce(r.plan->'spans', r.plan->'partitions', '[]'::jsonb)) s
		where n.topic = r.topic and (s->>'partition')::int4 = n.partition
			and case r.kind
				when 'run' then (s->>'from_offset')::int8 <= n.kafka_offset and n.kafka_offset < (s->>'to_offset')::int8
				else (s->>'to_offset')::int8 <= n.kafka_offset and n.kafka_offset < (s->>'to_offset')::int8 + (s->>'records')::int8
			end)
	and coalesce(r.plan->'selection'->'event_ids' ? $4::text, true)
	and coalesce(r.plan->'selection'->'sources' ? $5::text, true)
	and ($6::text = '' or coalesce(r.plan->'selection'->'types' ? $6::text, true))
order by replay_id`

// readReplays reads the replays of l's records.
func (l *life) readReplays(ctx context.Context, tx pgx.Tx) error {
	var topics []string
	var partitions []int32
	var offsets []int64
	for _, r := range l.Records {
		topics, partitions, offsets = append(topics, r.Topic), append(partitions, r.Partition), append(offsets, r.Offset)
	}
	kind := ""
	if l.Event != nil {
		kind = l.Event.Type
	}
	var err error
	l.Replays, err = collect(ctx, tx, scanReplayed, sqlReplaysOfRecords, topics, partitions, offsets, l.id, l.source, kind)
	return err
}

func scanReplayed(row pgx.CollectableRow) (replayed, error) {
	var r replayed
	var at time.Time
	err := row.Scan(&r.ReplayID, &r.Kind, &r.State, &r.RequestedBy, &r.Reason, &at)
	r.StartedAt = console.JSONTime(at)
	return r, err
}
