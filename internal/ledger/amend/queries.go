package amend

// sqlSettings: an operator waits a moment for locks, and workers never long for an operator.
const sqlSettings = `
select set_config('synchronous_commit', 'on', true),
       set_config('statement_timeout', '10s', true),
       set_config('lock_timeout', '5s', true),
       set_config('idle_in_transaction_session_timeout', '5s', true)`

// sqlLockEvent makes amendments of one event wait for each other. The event's row may be
// forgotten, so it is a lock of its own, which the end of the transaction releases.
const sqlLockEvent = `select pg_advisory_xact_lock(hashtextextended($1, 0))`

// sqlStanding: what the entries of an event and of its amendments add up to, by all that
// tells movements apart; sums of zero too. Indexes: ledger_entries_event_line_once,
// amendments_event, ledger_entries_amendment.
const sqlStanding = `
select account_id, contra, currency, rule, movement_id, sum(amount)::bigint
  from (select account_id, contra, currency, rule, movement_id, amount
          from ledger_entries where event_key = $1
        union all
        select l.account_id, l.contra, l.currency, l.rule, l.movement_id, l.amount
          from amendments a join ledger_entries l on l.amendment_id = a.amendment_id
         where a.event_key = $1) as e
 group by account_id, contra, currency, rule, movement_id
 order by account_id, currency, rule, movement_id, contra`

// sqlOutcome reads the outcome of an event; where it slipped into two generations, the
// one that blocks. Index: processed_events_N_pkey.
const sqlOutcome = `
select outcome from processed_events where event_key = $1
 order by outcome in ('applied', 'same_effect', 'discarded') desc
 limit 1`

// sqlTold: the entries that have effect keys of $1, and whether they are of the event or
// of its amendments. Index: ledger_entries_effect_once.
const sqlTold = `
select l.effect_key,
       coalesce(l.event_key = $2, false) or exists (
         select from amendments a where a.amendment_id = l.amendment_id and a.event_key = $2),
       l.account_id, l.currency, l.amount
  from ledger_entries l
 where l.effect_key = any ($1::uuid[])`

// Index: processed_events_N_pkey.
const sqlMeaning = `update processed_events set meaning = $2 where event_key = $1 and outcome = 'applied'`

const sqlAmendment = `
insert into amendments (amended_at, amendment_id, event_key, source, event_id, kind, meaning, topic, partition, "offset", amended_by, reason)
values (now(), $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`

// sqlEntry meets the first wall. An amendment happens when it is made.
// Index: ledger_entries_effect_once.
const sqlEntry = `
insert into ledger_entries (applied_at, occurred_at, effect_key, amendment_id, line, account_id, contra, currency, amount, rule, movement_id)
values (now(), now(), $1, $2, $3, $4, $5, $6, $7, $8, $9)
    on conflict do nothing`

// Index: accounts_pkey.
const sqlAccount = `
insert into accounts as a (updated_at, account_id, currency, balance, entry_count)
values (now(), $1, $2, $3, $4)
    on conflict on constraint accounts_pkey do update
   set balance = a.balance + excluded.balance,
       entry_count = a.entry_count + excluded.entry_count,
       updated_at = excluded.updated_at
returning balance`

// sqlNoTimeout: a COMMIT that is cancelled while it waits for a standby has committed.
const sqlNoTimeout = `select set_config('statement_timeout', '0', true)`
