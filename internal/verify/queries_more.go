package verify

// sqlMoneylessKeys: which of these events (by place, from 1) are applied and have no
// entry. Indexes: processed_events_pkey, ledger_entries_event_line_once.
const sqlMoneylessKeys = `
select a.i
from unnest($1::uuid[]) with ordinality as a (event_key, i)
where exists (select from processed_events e where e.event_key = a.event_key and e.outcome = 'applied')
	and not exists (select from ledger_entries l where l.event_key = a.event_key)
order by a.i`

// sqlUnrecorded: of which of these events (by place, from 1) no table knows. Indexes:
// processed_events_pkey, ledger_entries_event_line_once, event_conflicts_once.
const sqlUnrecorded = `
select a.i
from unnest($1::uuid[]) with ordinality as a (event_key, i)
where not exists (select from processed_events e where e.event_key = a.event_key)
	and not exists (select from ledger_entries l where l.event_key = a.event_key)
	and not exists (select from event_conflicts c where c.event_key = a.event_key)
order by a.i`

const sqlQuarantinedEvents = `
select distinct source, event_id from quarantined_events where source is not null and event_id is not null`

// sqlResolved: the records that left the quarantine and came since $1, without those whose
// reason is among $2.
const sqlResolved = `
select source, event_id, format('%s: %s at %s/%s@%s', reason, resolution, topic, partition, "offset")
from quarantined_events
where resolved_at is not null and source is not null and event_id is not null
	and least(record_time, quarantined_at) >= $1 and reason <> all ($2::text[])
order by id`

// sqlEntries: the entries above $1, each with its effect key and what that is made of;
// those of applied events with what the event was recorded to mean.
const sqlEntries = `
select coalesce(l.event_key, '00000000-0000-0000-0000-000000000000'), coalesce(e.meaning, '00000000-0000-0000-0000-000000000000'),
	l.line, l.account_id, l.contra, l.amount, l.currency, l.rule, l.movement_id,
	e.event_key is not null, l.entry_id, l.effect_key, l.payment_id::text, l.amendment_id::text, coalesce(l.event_id, ''),
	case when l.amendment_id is null then l.source else (select a.source from amendments a where a.amendment_id = l.amendment_id) end
from ledger_entries l
left join processed_events e on e.event_key = l.event_key and e.outcome = 'applied'
where l.entry_id > $1`

// sqlWhole: all entries of the events $1 that are applied and not amended, by event and
// line. $2 is the topic. Indexes: ledger_entries_event_line_once, processed_events_pkey.
const sqlWhole = `
select l.event_key, e.meaning, l.line, l.account_id, l.contra, l.amount, l.currency, l.rule, l.movement_id,
	e.source, e.event_id, e.partition, e."offset", e.topic = $2
from ledger_entries l
join processed_events e on e.event_key = l.event_key and e.outcome = 'applied'
where l.event_key = any ((select $1::uuid[])::uuid[]) and not exists (select from amendments a where a.event_key = l.event_key)
order by l.event_key, l.line`

// sqlAmended: the entries of events of which an amendment has one above $1, and those of
// their amendments, as they came, each amendment's by line. $2 is the topic. Indexes:
// ledger_entries_amendment, ledger_entries_event_line_once, amendments_event.
const sqlAmended = `
with amended as (
	select distinct a.event_key
	from amendments a join ledger_entries l on l.amendment_id = a.amendment_id
	where l.entry_id > $1
), stands as (
	select x.event_key as event, null::uuid as amendment, l.*
	from amended x join ledger_entries l on l.event_key = x.event_key
	union all
	select x.event_key, a.amendment_id, l.*
	from amended x join amendments a on a.event_key = x.event_key join ledger_entries l on l.amendment_id = a.amendment_id
)
select s.event, coalesce(a.meaning, '00000000-0000-0000-0000-000000000000'), s.line, s.account_id, s.contra, s.amount, s.currency, s.rule, s.movement_id,
	coalesce(a.amendment_id::text, ''), coalesce(a.kind, ''), coalesce(a.source, ''), coalesce(a.event_id, ''),
	coalesce(a.partition, -1), coalesce(a."offset", -1), coalesce(a.topic = $2, false)
from stands s left join amendments a on a.amendment_id = s.amendment
order by s.event, min(s.entry_id) over (partition by s.event, s.amendment), s.line`

// sqlStanding: the entries of events $1, and of movements $2. Indexes:
// ledger_entries_event_line_once, ledger_entries_effect_once.
const sqlStanding = `
with wanted as (
	select l.* from ledger_entries l where l.event_key = any ((select $1::uuid[])::uuid[])
	union
	select l.* from ledger_entries l where l.effect_key = any ((select $2::uuid[])::uuid[])
)
select coalesce(event_key, '00000000-0000-0000-0000-000000000000'), line, effect_key, account_id, currency, amount, contra, rule, movement_id
from wanted`

// sqlNewest: the newest entry above $1 that is visible, with its effect key as its
// fingerprint. Index: ledger_entries_by_id.
const sqlNewest = `
select entry_id, effect_key from ledger_entries where entry_id > $1 order by entry_id desc limit 1`

// sqlAnchor: whether the entry $1 is the one that was marked. Index: ledger_entries_by_id.
const sqlAnchor = `select exists (select from ledger_entries where entry_id = $1 and effect_key::text = $2)`

// sqlServer: the version of the server, whose hashes are its own affair.
const sqlServer = `select current_setting('server_version_num')::int`

// sqlWriters: the transactions that write entries now, by name. Whoever has a number for
// an entry holds this lock since before, and until others see the entry.
const sqlWriters = `
select coalesce(array_agg(distinct virtualtransaction), '{}')
from pg_locks
where locktype = 'relation' and relation = 'ledger_entries'::regclass and mode = 'RowExclusiveLock' and granted
	and database = (select oid from pg_database where datname = current_database())`

// sqlSketch compares the accounts with the entries in one snapshot and one number: the
// sum of balances, each times a random number of its account, is the sum of amounts,
// each times that of its account. It is linear, so what was added up once stays added
// up: entries to $1 are in the mark, those to $2 go into the next. $3 seeds the random
// numbers. Index: ledger_entries_by_id.
const sqlSketch = `
with fresh as (
	select entry_id <= $2 as settles, hashtextextended(account_id || E'\n' || currency, $3)::numeric as h, amount
	from ledger_entries
	where entry_id > $1
), held as (
	select hashtextextended(account_id || E'\n' || currency, $3)::numeric as h, balance, entry_count
	from accounts
)
select (select coalesce(sum(h * balance), 0)::text from held), (select coalesce(sum(h * entry_count), 0)::text from held),
	(select coalesce(sum(h * amount) filter (where settles), 0)::text from fresh), (select coalesce(sum(h) filter (where settles), 0)::text from fresh),
	(select coalesce(sum(h * amount), 0)::text from fresh), (select coalesce(sum(h), 0)::text from fresh),
	(select count(*) from held), (select count(*) from fresh)`
