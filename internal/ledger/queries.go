package ledger

// Every statement of the hot path, in the order of a transaction. Above each stands
// the index it walks. Locks are taken in the order of the statements here, and inside
// each in the order of bytes, in every program that writes these tables:
// progress, payment_states, known events, new events, entries, quarantine, conflicts,
// accounts.

// The level is explicit: under REPEATABLE READ and SERIALIZABLE, which a database may
// have as its default, a conflict with a newer row is 40001 instead of no row.
var queryBegin = query{"begin", `begin isolation level read committed`}

// Settings end with the transaction, so that a pooler may give its connection to
// anybody next. Plans must not depend on statistics: tables here grow from nothing to
// 10^8 rows, and a plan made for the first thousand is wrong for the rest; each
// statement has its one index, and nested loops over it are the only sane way. So a plan
// that was made once for a connection is as good as one made each time.
var querySettings = query{"set timeouts", `
select set_config('synchronous_commit', 'on', true),
       set_config('statement_timeout', $1, true),
       set_config('lock_timeout', $2, true),
       set_config('idle_in_transaction_session_timeout', $3, true),
       set_config('enable_seqscan', 'off', true),
       set_config('enable_hashjoin', 'off', true),
       set_config('enable_mergejoin', 'off', true),
       set_config('plan_cache_mode', 'force_generic_plan', true),
       set_config('jit', 'off', true)`}

// Index: consumer_progress_pkey.
var queryLockProgress = query{"lock progress", `
select next_offset
  from consumer_progress
 where cluster_id = $1 and topic_id = $2 and partition = $3
   for no key update`}

// queryKnown tells which of the event keys $1 are known: by their row in any
// generation or, once one was forgotten, by an entry (whose outcome is null). The
// array hides behind a subselect, else the planner weighs each of its elements for
// each of the eight partitions.
// Indexes: processed_events_N_pkey, ledger_entries_event_line_once.
var queryKnown = query{"filter known events", `
with known as materialized (
	select event_key, outcome, meaning, body_sha256, generation
	  from processed_events
	 where event_key = any ((select $1::uuid[])::uuid[])
)
select event_key, outcome, meaning, body_sha256, generation, generation = (select open_generation from event_ring) from known
union all
select distinct event_key, null, null::uuid, null::bytea, null::smallint, null::boolean
  from ledger_entries
 where (select forgotten_count > 0 from event_ring)
   and event_key = any (array(select k from unnest($1::uuid[]) k
                               where k not in (select event_key from known)))`}

// queryConflictsKnown: which of these event keys have conflicts, with which bodies.
// Index: event_conflicts_once.
var queryConflictsKnown = query{"read conflicts", `
select event_key, body_sha256
  from event_conflicts
 where event_key = any ((select $1::uuid[])::uuid[])`}

// queryClaimStates makes the states ($1 source, $2 object; sorted) that do not exist, so
// that they are locked before events are: made after them, two transactions that find
// the same events in two partitions could wait for each other. The lowest rank marks
// them; the same transaction moves each.
// Index: payment_states_pkey.
var queryClaimStates = query{"claim payment states", `
insert into payment_states (source, object, status, rank, occurred_at, updated_at, event_key, event_id)
select k.source, k.object, '', -9223372036854775808, '-infinity', now(), '00000000-0000-0000-0000-000000000000', ''
  from unnest($1::text[], $2::text[]) as k (source, object)
    on conflict do nothing`}

// queryLockStates locks the objects ($1 source, $2 object; sorted) that exist.
// Index: payment_states_pkey.
var queryLockStates = query{"lock payment states", queryStatesNow.sql + `
   for no key update of s`}

// Index: payment_states_pkey.
var queryStatesNow = query{"read payment states", `
select s.source, s.object, s.occurred_at, s.rank, s.status
  from unnest($1::text[], $2::text[]) with ordinality as k (source, object, n)
  join payment_states s on s.source = k.source collate "C" and s.object = k.object collate "C"
 order by k.n`}

// queryLockEvents locks known events that are to change, sorted by key.
// Index: processed_events_N_pkey.
var queryLockEvents = query{"lock known events", `
select event_key, generation, outcome, meaning
  from processed_events
 where event_key = any ((select $1::uuid[])::uuid[])
 order by event_key, generation
   for no key update`}

// insertEvents takes rows sorted by event key. A set-returning function among the
// columns hands its rows on one by one; in a FROM clause Postgres keeps all of them
// first, which took a fifth more time.
// Index: processed_events_N_pkey of the open generation.
const insertEvents = `
insert into processed_events
       (generation, processed_at, topic, partition,
        event_key, source, event_id, type, outcome, meaning,
        "offset", occurred_at, received_at, body_sha256)
select (select open_generation from event_ring), now(), $1, $2,
       unnest($3::uuid[]), unnest($4::text[]), unnest($5::text[]), unnest($6::text[]), unnest($7::text[]), unnest($8::uuid[]),
       unnest($9::int8[]), unnest($10::timestamptz[]), unnest($11::timestamptz[]), unnest($12::bytea[])`

// queryInsertEvents: what it returns is new.
var queryInsertEvents = query{"insert events", insertEvents + `
    on conflict do nothing
returning event_key`}

// queryAddEvents fails with 23505 unless all are new to the open generation.
var queryAddEvents = query{"add events", insertEvents}

// queryUpdateEvents gives known rows, locked before, what they mean today. They move
// to the open generation: the entries written beside them are of today, and an entry
// within memory must find its event there. A row that has a twin there, from the
// instant of a rotation, stays; whoever waits for a row that moves gets 40001 and
// tries again.
// Index: processed_events_N_pkey.
var queryUpdateEvents = query{"update known events", `
update processed_events p
   set generation = case when exists (select from processed_events t
                                       where t.event_key = p.event_key and t.generation = (select open_generation from event_ring))
                         then p.generation else (select open_generation from event_ring) end,
       outcome = e.outcome, meaning = e.meaning, body_sha256 = e.body_sha256, type = e.type,
       topic = $1, partition = $2, "offset" = e.kafka_offset,
       occurred_at = e.occurred_at, received_at = e.received_at, processed_at = now()
  from unnest($3::uuid[], $4::int4[], $5::uuid[], $6::text[], $7::text[], $8::uuid[],
              $9::int8[], $10::timestamptz[], $11::timestamptz[], $12::bytea[])
    as e (event_key, generation, old_meaning, type, outcome, meaning, kafka_offset, occurred_at, received_at, body_sha256)
 where p.event_key = e.event_key and p.generation = e.generation::smallint and p.meaning = e.old_meaning
returning p.event_key`}

// insertEntries takes rows sorted by effect key.
// Indexes: ledger_entries_effect_once, ledger_entries_event_line_once.
const insertEntries = `
insert into ledger_entries
       (applied_at, effect_key, event_key, line, source, event_id,
        account_id, contra, currency, amount, rule, movement_id, occurred_at)
select now(), unnest($1::uuid[]), unnest($2::uuid[]), unnest($3::int4[]), unnest($4::text[]), unnest($5::text[]),
       unnest($6::text[]), unnest($7::text[]), unnest($8::text[]), unnest($9::int8[]), unnest($10::text[]), unnest($11::text[]), unnest($12::timestamptz[])`

// queryInsertEntries meets both walls: it has no conflict target. What it returns is
// written.
var queryInsertEntries = query{"insert entries", insertEntries + `
    on conflict do nothing
returning effect_key`}

// queryAddEntries fails with 23505 if any of them meets a wall.
var queryAddEntries = query{"add entries", insertEntries}

// queryOtherEntries reads the entries in whose way ours were: by effect key ($1), or
// by event ($2).
// Indexes: ledger_entries_effect_once, ledger_entries_event_line_once.
var queryOtherEntries = query{"read standing entries", `
select effect_key, event_key, line, account_id, currency, amount
  from ledger_entries where effect_key = any ((select $1::uuid[])::uuid[])
union all
select effect_key, event_key, line, account_id, currency, amount
  from ledger_entries where event_key = any ((select $2::uuid[])::uuid[])`}

// queryQuarantine: what it returns is new in quarantine.
// Index: quarantined_events_record_once.
var queryQuarantine = query{"insert quarantined records", `
insert into quarantined_events
       (quarantined_at, topic, topic_id, partition,
        "offset", record_time, source, event_id, reason, detail, record_key, headers, body)
select now(), $1, $2, $3, q.*
  from unnest($4::int8[], $5::timestamptz[], $6::text[], $7::text[], $8::text[], $9::text[],
              $10::bytea[], $11::jsonb[], $12::bytea[]) as q
    on conflict on constraint quarantined_events_record_once do nothing
returning "offset"`}

// queryConflicts keeps conflicting bodies beside the record that stood, which may be of
// this very transaction. Sorted by event key and body hash.
// Indexes: processed_events_N_pkey, event_conflicts_once.
var queryConflicts = query{"insert conflicts", `
insert into event_conflicts
       (seen_at, topic, topic_id, partition,
        event_key, source, event_id, type, meaning, "offset", received_at, body_sha256, body, headers,
        first_partition, first_offset, first_meaning, first_body_sha256)
select now(), $1, $2, $3,
       c.event_key, c.source, c.event_id, c.type, c.meaning, c.kafka_offset, c.received_at, c.body_sha256, c.body, c.headers,
       f.partition, f."offset", f.meaning, f.body_sha256
  from unnest($4::uuid[], $5::text[], $6::text[], $7::text[], $8::uuid[], $9::int8[], $10::timestamptz[],
              $11::bytea[], $12::bytea[], $13::jsonb[])
    as c (event_key, source, event_id, type, meaning, kafka_offset, received_at, body_sha256, body, headers),
       lateral (select p.partition, p."offset", p.meaning, p.body_sha256
                  from processed_events p
                 where p.event_key = c.event_key
                 order by p.processed_at
                 limit 1) f
    on conflict on constraint event_conflicts_once do nothing`}

// queryResolveQuarantine closes what stood in quarantine of the offsets $3 to $4, except
// the offsets $5, because each of these records has now an ordinary outcome.
// Index: quarantined_events_record_once.
var queryResolveQuarantine = query{"resolve quarantined records", `
update quarantined_events
   set resolved_at = now(), resolution = 'replayed'
 where topic_id = $1 and partition = $2 and "offset" between $3 and $4
   and resolved_at is null
   and "offset" <> all ($5::int8[])`}

// queryAccounts adds sums, one row per account and currency, sorted by both as bytes.
// The division is a guard: it fails with 22012 unless exactly $5 rows were written, so
// COMMIT may travel in the same write.
// Index: accounts_pkey.
var queryAccounts = query{"add to accounts", `
with written as (
	insert into accounts as a (updated_at, account_id, currency, balance, entry_count)
	select now(), unnest($1::text[]), unnest($2::text[]), unnest($3::int8[]), unnest($4::int8[])
	    on conflict on constraint accounts_pkey do update
	   set balance = a.balance + excluded.balance,
	       entry_count = a.entry_count + excluded.entry_count,
	       updated_at = excluded.updated_at
	returning 1
)
select 1 / (count(*) = $5)::int from written`}

// queryStates moves states forward, sorted by source and object. The guard fails with
// 22012 unless all $8 moved: a state that did not exist when we looked does by now.
// Index: payment_states_pkey.
var queryStates = query{"move payment states", `
with moved as (
	insert into payment_states as s
	       (updated_at, source, object, status, rank, occurred_at, event_key, event_id)
	select now(), n.*
	  from unnest($1::text[], $2::text[], $3::text[], $4::int8[], $5::timestamptz[], $6::uuid[], $7::text[]) as n
	    on conflict on constraint payment_states_pkey do update
	   set status = excluded.status, rank = excluded.rank, occurred_at = excluded.occurred_at,
	       event_key = excluded.event_key, event_id = excluded.event_id, updated_at = excluded.updated_at
	 where (s.occurred_at, s.rank, s.status) < (excluded.occurred_at, excluded.rank, excluded.status)
	returning 1
)
select 1 / (count(*) = $8)::int from moved`}

// queryOutcomes corrects events of this transaction whose money others had told of.
// Index: processed_events_N_pkey.
var queryOutcomes = query{"correct outcomes", `
update processed_events
   set outcome = $1
 where event_key = any ((select $2::uuid[])::uuid[]) and processed_at = now()`}

// queryAdvance writes the next offset. A row that is ahead stays where it is: its
// owner was faster; it keeps its leader epoch too, for an older one beside its offset
// looks like a log that was cut. With that the statement timeout ends, because a COMMIT that is
// cancelled while it waits for a standby has committed, but on one machine.
// Index: consumer_progress_pkey.
var queryAdvance = query{"advance progress", `
update consumer_progress
   set next_offset = greatest(next_offset, $4), from_offset = greatest(from_offset, $5),
       leader_epoch = case when $4 >= next_offset then $6 else leader_epoch end, updated_at = now()
 where cluster_id = $1 and topic_id = $2 and partition = $3
returning set_config('statement_timeout', '0', true)`}

var queryCommit = query{"commit", `commit`}

// queryRaiseSurge raises the incident of a source unless one is open: its key counts
// those acknowledged before.
// Index: incidents_once.
var queryRaiseSurge = query{"raise quarantine surge", `
insert into incidents (raised_at, severity, kind, once_key, detail)
select now(), $1, $2,
       $3 || '/' || (select count(*) from incidents
                      where starts_with(once_key, $3 || '/') and acknowledged_at is not null),
       $4
 where not exists (select from incidents where starts_with(once_key, $3 || '/') and acknowledged_at is null)
    on conflict on constraint incidents_once do nothing`}
