package repair

// sqlReasons counts what is held, by kind, source and reason. Conflicts have one reason.
// No index: what is held is little, or there is a larger problem.
const sqlReasons = `
select false, coalesce(source, ''), reason, count(*)
from quarantined_events
where resolved_at is null
group by source, reason
union all
select true, source, 'conflict', count(*)
from event_conflicts
where resolved_at is null
group by source
order by 4 desc, 2, 3`

const quarantinedColumns = `
	id, coalesce(source, ''), coalesce(event_id, ''), '', topic, partition, "offset", reason, detail,
	record_time, quarantined_at, resolved_at, coalesce(resolution, ''), coalesce(resolved_by, ''), coalesce(resolved_reason, '')`

const conflictColumns = `
	conflict_id, source, event_id, type, topic, partition, "offset", 'conflict',
	format('%s/%s@%s stands', topic, first_partition, first_offset),
	received_at, seen_at, resolved_at, coalesce(resolution, ''), coalesce(resolved_by, ''), coalesce(resolved_reason, '')`

// sqlQuarantined lists records in quarantine: source or empty, reason or empty, resolved
// ones too, number to start after, limit or 0. Index: quarantined_events_pkey.
const sqlQuarantined = `
select ` + quarantinedColumns + `
from quarantined_events
where ($1::text = '' or source = $1::text) and ($2::text = '' or reason = $2::text)
	and ($3::boolean or resolved_at is null) and id > $4::bigint
order by id
limit nullif($5::bigint, 0)`

// sqlConflicts is the same of conflicts; their reason is conflict. No index.
const sqlConflicts = `
select ` + conflictColumns + `
from event_conflicts
where ($1::text = '' or source = $1::text) and $2::text in ('', 'conflict')
	and ($3::boolean or resolved_at is null) and conflict_id > $4::bigint
order by conflict_id
limit nullif($5::bigint, 0)`

// sqlQuarantinedOne reads a record in quarantine with its bytes. Index:
// quarantined_events_pkey.
const sqlQuarantinedOne = `
select ` + quarantinedColumns + `, record_key, headers::text, body, null::bytea
from quarantined_events
where id = $1::bigint`

// sqlConflictOne reads a conflict with its bytes. No index.
const sqlConflictOne = `
select ` + conflictColumns + `, convert_to(event_id, 'UTF8'), headers::text, body, first_body_sha256
from event_conflicts
where conflict_id = $1::bigint`
