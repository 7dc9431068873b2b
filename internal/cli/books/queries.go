package books

// sqlAccounts lists accounts: currency or empty, ID to start after or empty, limit
// or 0. Index: accounts_pkey (account_id, currency).
const sqlAccounts = `
select account_id, currency, balance, entry_count, updated_at
from accounts
where ($1::text = '' or currency = upper($1::text)) and ($2::text = '' or account_id > $2::text)
order by account_id, currency
limit nullif($3::bigint, 0)`

// sqlAccount reads one account. Index: accounts_pkey.
const sqlAccount = `
select account_id, currency, balance, entry_count, updated_at
from accounts
where account_id = $1::text
order by currency`

// sqlAccountAt adds up what an account's entries came to at a time. No index: the ledger
// has none beyond its walls, so this reads the whole table.
const sqlAccountAt = `
select account_id, currency, sum(amount)::bigint, count(*), max(applied_at)
from ledger_entries
where account_id = $1::text and applied_at <= $2::timestamptz
group by account_id, currency
order by currency`

const entryColumns = `entry_id, account_id, contra, amount, currency, source, event_id,
	payment_id::text, amendment_id::text, rule, movement_id, occurred_at, applied_at`

// sqlEntriesOfAccount reads the latest entries of an account, each with what the balance
// came to with it: ID, limit or 0, time until or null. No index, as above.
const sqlEntriesOfAccount = `
select ` + entryColumns + `, sum(amount) over (partition by currency order by entry_id)::bigint
from ledger_entries
where account_id = $1::text and ($3::timestamptz is null or applied_at <= $3::timestamptz)
order by entry_id desc
limit nullif($2::bigint, 0)`

// sqlEntriesOfEvent reads the entries of an event and of its amendments. Indexes:
// ledger_entries_event_line_once (event_key, line), amendments_event,
// ledger_entries_amendment.
const sqlEntriesOfEvent = `
select ` + entryColumns + `
from ledger_entries
where event_key = $1::uuid or amendment_id in (select amendment_id from amendments where event_key = $1::uuid)
order by entry_id`

// sqlAmendmentsOfEvent reads who amended an event, and why. Index: amendments_event.
const sqlAmendmentsOfEvent = `
select amendment_id::text, kind, reason, amended_by, amended_at
from amendments
where event_key = $1::uuid
order by amended_at`

const eventColumns = `source, event_id, type, outcome, topic, partition, "offset",
	occurred_at, received_at, processed_at, body_sha256`

// sqlEvents lists the latest events: source, outcome, type, account, object (a movement or
// an object with a status), each or empty, received from and before, or null, limit or 0.
// No index: it reads the memory of events, and for account or object the ledger.
const sqlEvents = `
select ` + eventColumns + `
from processed_events p
where ($1::text = '' or source = $1::text) and ($2::text = '' or outcome = $2::text) and ($3::text = '' or type = $3::text)
	and ($4::text = '' or event_key in (
		select event_key from ledger_entries where account_id = $4::text
		union
		select a.event_key from ledger_entries l join amendments a on a.amendment_id = l.amendment_id where l.account_id = $4::text))
	and ($5::text = '' or event_key in (
		select event_key from ledger_entries where movement_id = $5::text
		union
		select event_key from payment_states where object = $5::text))
	and ($6::timestamptz is null or received_at >= $6::timestamptz) and ($7::timestamptz is null or received_at < $7::timestamptz)
order by processed_at desc, topic, partition, "offset" desc
limit nullif($8::bigint, 0)`

// sqlEvent reads one event, whichever generation holds it. Index:
// processed_events_pkey (event_key, generation) of each.
const sqlEvent = `
select ` + eventColumns + `
from processed_events
where event_key = $1::uuid
order by processed_at
limit 1`

// sqlConflictsOfEvent reads the conflicts of an event. Index: event_conflicts_once
// (event_key, body_sha256).
const sqlConflictsOfEvent = `
select conflict_id, topic, partition, "offset", received_at, headers::text, seen_at, resolved_at, body_sha256,
	resolution, resolved_by, resolved_reason
from event_conflicts
where event_key = $1::uuid
order by seen_at`

// sqlQuarantineOfEvent reads an event's records in quarantine: source, event ID. No
// index: the quarantine is small, or there is a larger problem.
const sqlQuarantineOfEvent = `
select id, topic, partition, "offset", record_time, headers::text, reason, detail, quarantined_at, resolved_at,
	resolution, resolved_by, resolved_reason
from quarantined_events
where source = $1::text and event_id = $2::text
order by id`

// sqlQuarantinedBody reads the bytes of a record in quarantine. Index:
// quarantined_events_pkey.
const sqlQuarantinedBody = `select body from quarantined_events where id = $1::bigint`

// sqlHeld counts what waits for a person, of one source or of all. No index: the
// quarantine is small, or there is a larger problem.
const sqlHeld = `
select (select count(*) from quarantined_events where resolved_at is null and ($1 = '' or source = $1)),
       (select count(*) from event_conflicts where resolved_at is null and ($1 = '' or source = $1))`
