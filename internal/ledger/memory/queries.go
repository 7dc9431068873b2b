package memory

import "strconv"

// queryRing reads the one row of the ring.
// Index: none, the table has one row.
const queryRing = `select open_generation, oldest_generation, forgotten_count, opened_at, clock_timestamp() from event_ring`

// querySettings: every wait is bounded, and the commit does not wait for a standby while
// it holds locks.
const querySettings = `
select set_config('lock_timeout', $1, true),
       set_config('statement_timeout', '10s', true),
       set_config('idle_in_transaction_session_timeout', '5s', true),
       set_config('synchronous_commit', 'local', true)`

// queryRotate opens the next generation, if $1 is still the open one and was opened at
// least $2 seconds ago. Whoever waits for a faster one reads the row again and finds
// that it is not. The time is that of the statement, after any wait, and never earlier
// than that of the generation before. Transactions that begin until this one is visible,
// some milliseconds, still write into the older generation: verify allows minutes.
const queryRotate = `
update event_ring
   set open_generation = (open_generation + 1) % 8,
       opened_at[(open_generation + 1) % 8 + 1] = greatest(clock_timestamp(), opened_at[open_generation + 1])
 where open_generation = $1
   and opened_at[open_generation + 1] <= clock_timestamp() - make_interval(secs => $2)
   and (open_generation + 1) % 8 <> oldest_generation
returning open_generation`

// queryLockRing is at once or not at all: who does not get it knows that somebody is
// at it.
const queryLockRing = `select from event_ring for no key update nowait`

// queryForget says that generation $1 is forgotten, if it is still the oldest, and was
// closed at least $2 seconds ago.
const queryForget = `
update event_ring
   set oldest_generation = (oldest_generation + 1) % 8, forgotten_count = forgotten_count + 1
 where oldest_generation = $1 and oldest_generation <> open_generation
   and opened_at[(oldest_generation + 1) % 8 + 1] <= clock_timestamp() - make_interval(secs => $2)`

// queryForgetAgain is for rows that lie in generation $1 although it is not in use, if it
// still is not.
const queryForgetAgain = `
update event_ring
   set forgotten_count = forgotten_count + 1
 where ($1 - oldest_generation + 8) % 8 > (open_generation - oldest_generation + 8) % 8`

// queryDiscarded: events that a person decided against.
// Index: none; quarantine holds what people look through.
const queryDiscarded = `
select distinct source, event_id
  from quarantined_events
 where resolution = 'discarded' and source is not null and event_id is not null`

// queryCarry gives those events among $1 that stand as discarded in generation g a row in
// the open one. Index: processed_events_N_pkey.
func queryCarry(g int) string {
	return `
insert into processed_events
       (generation, processed_at, topic, partition, "offset", event_key, source, event_id, type, outcome, meaning,
        occurred_at, received_at, body_sha256)
select (select open_generation from event_ring), processed_at, topic, partition, "offset", event_key, source, event_id, type, outcome, meaning,
       occurred_at, received_at, body_sha256
  from ` + table(g) + `
 where event_key = any ($1::text[]::uuid[]) and outcome = 'discarded'
    on conflict do nothing`
}

// queryHolders: which transactions have locks on the table $1. A virtual transaction
// names one transaction, a pid only its session. Others' activity may be hidden.
const queryHolders = `
select distinct coalesce(l.virtualtransaction, ''), coalesce(l.pid, 0),
       coalesce(a.usename::text, ''), coalesce(a.application_name, ''), a.xact_start
  from pg_locks l left join pg_stat_activity a on a.pid = l.pid
 where l.locktype = 'relation' and l.granted and l.pid is distinct from pg_backend_pid()
   and l.database = (select oid from pg_database where datname = current_database())
   and l.relation = to_regclass($1)
 order by a.xact_start, 2`

// table is the partition of generation g.
func table(g int) string { return "processed_events_" + strconv.Itoa(g) }

func queryTruncate(g int) string { return `truncate ` + table(g) }

func queryHoldsEvents(g int) string { return `select exists (select from ` + table(g) + `)` }
