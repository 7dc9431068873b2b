package ledger

// Statements beside the hot path: positions at assignment, and incidents.

// queryProgress reads the progress of a topic, by name in every cluster and by ID,
// because another cluster or another ID is what the rules of positions look for.
// A standby may be behind, so the server says beside each row, or beside none, whether
// it is one.
// Index: none, the table has a row per partition.
var queryProgress = query{"read progress", `
select p.cluster_id, p.topic, p.topic_id, p.partition, p.from_offset, p.next_offset, p.leader_epoch, p.updated_at, s.standby
  from (select pg_is_in_recovery() as standby) s
  left join consumer_progress p on p.topic = $1 or p.topic_id = $2
 order by p.cluster_id, p.topic_id, p.partition`}

// queryPositions reads the next offsets of one topic.
// Index: consumer_progress_pkey.
var queryPositions = query{"check positions", `
select p.partition, p.next_offset, s.standby
  from (select pg_is_in_recovery() as standby) s
  left join consumer_progress p on p.cluster_id = $1 and p.topic_id = $2`}

// Index: consumer_progress_pkey.
var queryLockRow = query{"lock position", `
select from_offset, next_offset
  from consumer_progress
 where cluster_id = $1 and topic_id = $2 and partition = $3
   for no key update`}

// Index: consumer_progress_pkey.
var queryInsertProgress = query{"insert position", `
insert into consumer_progress (cluster_id, topic, topic_id, partition, from_offset, next_offset, leader_epoch, updated_at)
values ($1, $2, $3, $4, $5, $6, $7, now())
    on conflict on constraint consumer_progress_pkey do nothing`}

// Index: consumer_progress_pkey.
var queryWriteProgress = query{"write position", `
update consumer_progress
   set from_offset = $4, next_offset = $5, leader_epoch = $6, topic = $7, updated_at = now()
 where cluster_id = $1 and topic_id = $2 and partition = $3`}

// Index: incidents_once. The subselect spares a number of the sequence for each retry.
var queryRaise = query{"raise incident", `
insert into incidents (raised_at, severity, kind, topic, partition, from_offset, to_offset, detail, once_key)
select now(), $1, $2, $3, $4, $5, $6, $7::jsonb, $8
 where $8::text is null or not exists (select from incidents where once_key = $8)
    on conflict on constraint incidents_once do nothing`}

// Index: incidents_pkey.
var queryAcknowledge = query{"acknowledge incident", `
update incidents set acknowledged_at = now(), acknowledged_by = $2, acknowledged_reason = $3
 where incident_id = $1 and acknowledged_at is null`}

// Index: incidents_pkey.
var queryIncidentExists = query{"find incident", `select 1 from incidents where incident_id = $1`}

const incidentColumns = `incident_id, severity, kind, topic, partition, from_offset, to_offset, detail::text, once_key,
       raised_at, acknowledged_at, acknowledged_by, acknowledged_reason`

// Index: incidents_once.
var queryIncidentOnce = query{"find incident", `select ` + incidentColumns + ` from incidents where once_key = $1`}

// Index: incidents_pkey.
var queryIncidents = query{"list incidents", `
select ` + incidentColumns + `
  from incidents
 where not $1 or acknowledged_at is null
 order by incident_id desc`}
