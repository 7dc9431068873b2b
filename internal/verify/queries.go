package verify

// Every statement reads and nothing else. Findings come as (how many, id, words),
// the first sampleSize of them: how many is a window over all, so that number and
// sample are of one snapshot, and what does not fit in memory spills in Postgres.

const sqlIsStandby = `select pg_is_in_recovery()`

// sqlMemory: how far back the memory of events reaches. Null: nothing was forgotten.
const sqlMemory = `
select case when forgotten_count > 0 then opened_at[oldest_generation + 1] end
from event_ring`

// sqlByIndex makes the look-ups of one transaction go through the indexes. A plan
// that reads the whole memory of events to answer for 10,000 keys can look cheaper
// to the planner, and would be paid again for every batch. Without jit, because a
// plan around what is off counts as expensive and would be compiled each time.
const sqlByIndex = `
set local enable_hashjoin = off;
set local enable_mergejoin = off;
set local enable_seqscan = off;
set local jit = off`

// sqlByScan is the opposite, for statements that compare whole tables: without
// statistics of a table that has just grown, the planner takes it for small and
// looks up each row (measured: 0.87 s instead of 0.2 s for 300,000 entries).
// Without jit as well: it took longer to compile the hash of a meaning than to run it
// 300,000 times (5.6 s of 11.8, Postgres 15 on a busy machine).
const sqlByScan = `
set local enable_nestloop = off;
set local jit = off`

// sqlStrange: the records (by place in the arrays, from 1) whose event has no row
// with their hash. Index: processed_events_pkey.
const sqlStrange = `
select a.i
from unnest($1::uuid[], $2::bytea[]) with ordinality as a (event_key, body_sha256, i)
where not exists (
	select from processed_events e
	where e.event_key = a.event_key and e.body_sha256 = a.body_sha256)
order by a.i`

// sqlTraces: what else is on record of a record. Indexes: processed_events_pkey,
// event_conflicts_once, quarantined_events_record_once, ledger_entries_event_line_once.
const sqlTraces = `
select
	exists (select from processed_events e where e.event_key = a.event_key),
	exists (select from processed_events e
		where e.event_key = a.event_key and e.body_sha256 <> a.body_sha256
		and e.topic = $5 and e.partition = a.partition and e."offset" = a."offset"),
	exists (select from event_conflicts c where c.event_key = a.event_key and c.body_sha256 = a.body_sha256),
	exists (select from quarantined_events q
		where q.topic_id = $6 and q.partition = a.partition and q."offset" = a."offset"),
	exists (select from quarantined_events q
		where q.topic_id = $6 and q.partition = a.partition and q."offset" = a."offset" and sha256(q.body) <> a.body_sha256),
	exists (select from ledger_entries l where l.event_key = a.event_key)
from unnest($1::uuid[], $2::bytea[], $3::int[], $4::bigint[])
	with ordinality as a (event_key, body_sha256, partition, "offset", i)
order by a.i`

const sqlSizes = `
select (select count(*) from accounts), (select count(*) from ledger_entries), (select count(*) from processed_events)`

const sqlBalances = `
with sums as (
	select account_id, currency, sum(amount) as total, count(*) as entries
	from ledger_entries
	group by account_id, currency
)
select count(*) over (), account_id, format('%s minor %s: balance %s, entries sum to %s; entry_count %s, entries %s', account_id, currency,
	coalesce(a.balance::text, 'none'), coalesce(s.total::text, 'none'),
	coalesce(a.entry_count::text, 'none'), coalesce(s.entries::text, 'none'))
from accounts a full join sums s using (account_id, currency)
where a.balance is distinct from s.total or a.entry_count is distinct from s.entries
order by account_id, currency
limit $1`

// sqlUnfounded: entries above $3 with nothing behind them. Entries applied before $2 may
// stand for an event whose row was forgotten. A payment is behind an entry only if the
// entry is one of its two legs. An entry of an amendment needs its row, which says why.
const sqlUnfounded = `
select count(*) over (), coalesce(l.event_id, ''), format('entry %s of %s', l.entry_id,
	coalesce(l.source || '/' || l.event_id, 'payment ' || l.payment_id, 'amendment ' || l.amendment_id, 'nothing'))
from ledger_entries l
where l.entry_id > $3
	and not exists (select from processed_events e where e.event_key = l.event_key and e.outcome = 'applied')
	and (l.event_key is null or l.applied_at >= $2
		or exists (select from processed_events e where e.event_key = l.event_key))
	and not exists (select from payments p where p.payment_id = l.payment_id and p.currency = l.currency
		and (l.account_id, l.contra, l.amount) in ((p.from_account, p.to_account, -p.amount), (p.to_account, p.from_account, p.amount)))
	and not exists (select from amendments a where a.amendment_id = l.amendment_id)
order by l.entry_id
limit $1`

// sqlAged: how many entries' event was forgotten: the ledger alone vouches for them.
const sqlAged = `
select count(*)
from ledger_entries l
where l.entry_id > $2 and l.event_key is not null and l.applied_at < $1
	and not exists (select from processed_events e where e.event_key = l.event_key)`

// sqlMoneyless: what says that money moved, and has no entries that say so: an applied
// event or an amendment without any, a payment without its two legs.
const sqlMoneyless = `
select count(*) over (), id, words
from (
	select e.event_id as id, format('%s/%s at %s/%s@%s', e.source, e.event_id, e.topic, e.partition, e."offset") as words
	from processed_events e
	where e.outcome = 'applied'
		and not exists (select from ledger_entries l where l.event_key = e.event_key)
	union all
	select '', format('payment %s from %s to %s: %s of its 2 entries', p.payment_id, p.from_account, p.to_account, count(l.payment_id))
	from payments p left join ledger_entries l on l.payment_id = p.payment_id
	group by p.payment_id
	having count(l.payment_id) <> 2 or sum(l.amount) <> 0
	union all
	select a.event_id, format('amendment %s of %s/%s', a.amendment_id, a.source, a.event_id)
	from amendments a
	where not exists (select from ledger_entries l where l.amendment_id = a.amendment_id)
) as f
order by words
limit $1`

const sqlAmounts = `
select count(*) over (), coalesce(event_id, ''), format('entry %s: %s minor %s', entry_id, amount, currency)
from ledger_entries
where entry_id > $3 and (amount = 0 or amount not between -$2::bigint and $2::bigint or currency !~ '^[A-Z][A-Z0-9]{2,7}$')
order by entry_id
limit $1`

const sqlConflictHashes = `
select count(*) over (), event_id, format('conflict of %s/%s at %s/%s@%s', source, event_id, topic, partition, "offset")
from event_conflicts
where seen_at >= $2 and sha256(body) <> body_sha256
order by source, event_id
limit $1`

const sqlQuarantined = `
select (sum(count(*)) over ())::bigint, reason, format('%s %s', count(*), reason)
from quarantined_events
where resolved_at is null
group by reason
order by count(*) desc, reason
limit $1`

const sqlConflicts = `
select count(*) over (), event_id, format('%s/%s at %s/%s@%s', source, event_id, topic, partition, "offset")
from event_conflicts
where resolved_at is null
order by seen_at, source, event_id
limit $1`

// sqlIncidents: what nobody acknowledged, of severity $2.
const sqlIncidents = `
select count(*) over (), incident_id::text, format('incident %s: %s %s', incident_id, kind,
	topic || coalesce('/' || partition || coalesce(', offsets ' || from_offset || ' to ' || to_offset, ''), ''))
from incidents
where severity = $2 and acknowledged_at is null
order by incident_id
limit $1`

const sqlProgress = `
select cluster_id, topic, topic_id, partition, next_offset
from consumer_progress
order by cluster_id, topic, topic_id, partition`
