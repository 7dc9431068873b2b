package payments

// Every statement of a payment, in the order of its two transactions. Above each stands
// the index it walks.
//
// Locks: the row of the key first, always without waiting; then entries and accounts as
// package ledger takes them. So nobody who holds a lock of an account waits for a key,
// and the order is the one that workers keep.

// The level is explicit: under REPEATABLE READ and SERIALIZABLE, which a database may
// have as its default, a row that changed meanwhile is an error instead of news.
const queryBegin = `begin isolation level read committed`

// No timeout ends a COMMIT that waits for its standby: Postgres stops the clock of
// statement_timeout before it commits (15), and only a cancel request, which our pool
// does not send, would let it through unreplicated.
const queryCommit = `commit`

// querySettings end with the transaction, so that a pooler may give its connection to
// anybody next. Sequential scans are off because plans are kept: one made while the
// table was empty would read all of it for each key once it is not.
const querySettings = `
select set_config('synchronous_commit', $1, true),
       set_config('statement_timeout', $2, true),
       set_config('lock_timeout', $3, true),
       set_config('idle_in_transaction_session_timeout', $2, true),
       set_config('enable_seqscan', 'off', true)`

// queryTransactionTimeout bounds a transaction whose client fell silent between two
// statements of one write, which the timeouts above do not see. Postgres 17 and later.
const queryTransactionTimeout = `select set_config('transaction_timeout', $1, true)`

// queryClaim looks the key up and claims it if it is not there, in one statement. It
// returns the row that stands, or the one it made, or nothing: then another request
// inserted the key after the snapshot, and a second look will find it. The insert waits
// for another one that has not committed, as long as lock_timeout allows.
// Index: idempotency_keys_pkey.
const queryClaim = `
with found as materialized (
	select fingerprint = $3 as same, state = 'done' as done, expires_at <= now() as expired,
	       claimed_at < now() - $5::interval as stale, claimed_at = '-infinity' as released,
	       response_code, response_body
	  from idempotency_keys
	 where client = $1 and key = $2
), claimed as (
	insert into idempotency_keys (client, key, fingerprint, state, claimed_at, expires_at)
	select $1, $2, $3, 'processing', now(), now() + $4::interval
	 where not exists (select from found)
	    on conflict on constraint idempotency_keys_pkey do nothing
	returning attempt, claimed_at
)
select false, same, done, expired, stale, released, response_code, response_body, 0::bigint, now() from found
union all
select true, true, false, false, false, false, null, null, attempt, claimed_at from claimed`

// queryTakeOver takes a row over that expired, whatever it was, or whose claim is stale.
// A row that is locked is somebody's who is alive, or who takes it over this instant: it
// is skipped, nobody waits. The attempt makes sure that what was judged is what changes.
// Index: idempotency_keys_pkey.
const queryTakeOver = `
with free as materialized (
	select attempt
	  from idempotency_keys
	 where client = $1 and key = $2
	   and (expires_at <= now()
	        or state = 'processing' and claimed_at < now() - $5::interval and fingerprint = $3)
	   for update skip locked
)
update idempotency_keys k
   set attempt = nextval('idempotency_attempts'), claimed_at = now(), expires_at = now() + $4::interval,
       fingerprint = $3, state = 'processing', response_code = null, response_body = null
  from free
 where k.client = $1 and k.key = $2 and k.attempt = free.attempt
returning k.attempt, k.claimed_at`

// The work begins with the question whether the claim is still ours, and then keeps the
// answer, for everybody to see if the rest of the transaction holds. It fails with 22012 if
// the row is not ours any more, or is locked: then somebody is taking it over. It skips
// what is locked instead of NOWAIT, whose error looks like that of a wait for any other
// lock, such as that of the page by which a table grows. Beside the attempt it asks for the
// time of the claim and for the request: a Postgres that crashed may have lost a claim
// whose commit was not waited for, and with it the number it had given out. The row is
// found once and then changed in its place: it is locked.
const fencedAnswer = `
with mine as materialized (
	select ctid as place
	  from idempotency_keys
	 where client = $1 and key = $2 and attempt = $3 and claimed_at = $4 and fingerprint = $5
	   and state = 'processing'
	   for update skip locked
), done as (
	update idempotency_keys
	   set state = 'done', response_code = $6, response_body = $7
	 where ctid = (select place from mine)
	returning 1
)`

// queryPaid keeps the answer and the payment behind it.
// Index: idempotency_keys_pkey.
const queryPaid = fencedAnswer + `, paid as (
	insert into payments (payment_id, client, from_account, to_account, amount, currency, reference,
	                      status, created_at, meaning, idempotency_key)
	select $8, $1, $9, $10, $11, $12, $13, 'succeeded', $4, $14, $2 from done
	returning 1
)
select 1 / count(*) from paid`

// queryRefused keeps an answer behind which there is nothing.
// Index: idempotency_keys_pkey.
const queryRefused = fencedAnswer + `
select 1 / count(*) from done`

// queryPoor comes behind queryRefused with the answer that the account does not hold
// enough: that must be true at this instant. Otherwise it fails with 22012, and the
// payment can be tried again.
// Index: accounts_pkey.
const queryPoor = `
select 1 / (not exists (select from accounts where account_id = $1 and currency = $2 and balance >= $3))::int`

// queryRelease gives a claim back whose work was rolled back: the next request takes it
// over at once. The row stays, so that the key stays bound to its request.
// Index: idempotency_keys_pkey.
const queryRelease = `
update idempotency_keys
   set claimed_at = '-infinity'
 where client = $1 and key = $2 and attempt = $3 and state = 'processing'`

// Index: payments_pkey.
const queryReadPayment = `
select payment_id, from_account, to_account, amount, currency, reference, status, created_at
  from payments
 where payment_id = $1 and client = $2`

// Index: accounts_pkey.
const queryReadAccount = `
select currency, balance, entry_count, updated_at
  from accounts
 where account_id = $1
 order by currency`

// queryClean removes up to $2 keys that expired, the oldest first, from $1 on. A row
// that is locked is being taken over, and no longer expired when that is done. It tells
// how far it got, so that the next batch need not walk over what was removed and not
// yet vacuumed. Processes clean one at a time: more would only add load.
// Index: idempotency_keys_expiry; then by place.
const queryClean = `
with expired as materialized (
	select ctid as place, expires_at
	  from idempotency_keys
	 where expires_at >= $1 and expires_at <= now()
	   and (select pg_try_advisory_xact_lock(hashtextextended('hookledger payments clean', 0)))
	 order by expires_at
	 limit $2
	   for update skip locked
), removed as (
	delete from idempotency_keys where ctid = any (array(select place from expired))
)
select count(*), max(expires_at) from expired`

// queryHealth: is this a primary, and does a COMMIT wait for a standby.
const queryHealth = `select pg_is_in_recovery(), current_setting('synchronous_standby_names')`

// queryAbandoned counts claims that are older than $1 and not released.
// Index: idempotency_keys_processing.
const queryAbandoned = `
select count(*)
  from idempotency_keys
 where state = 'processing' and claimed_at < now() - $1::interval and claimed_at > '-infinity'`

// queryCountDuplicates counts which of the payments ($1 IDs, $2 meanings, $3 times) are
// not the first of their meaning within $4. It looks a little ahead in time too, because
// two that were accepted at once may commit in either order.
// Index: payments_meaning.
const queryCountDuplicates = `
select p.client
  from unnest($1::uuid[], $2::uuid[], $3::timestamptz[], $5::text[]) as p (payment_id, meaning, created_at, client)
 where exists (select from payments q
                where q.meaning = p.meaning and q.payment_id <> p.payment_id
                  and q.created_at between p.created_at - $4::interval and p.created_at
                  and (q.created_at, q.payment_id) < (p.created_at, p.payment_id))`

// queryDuplicates lists payments that repeat an earlier one, with the one before them.
// Index: payments_meaning.
const queryDuplicates = `
select d.*
  from (select payment_id, client, from_account, to_account, amount, currency, reference, created_at, idempotency_key,
               lag(payment_id) over w, lag(created_at) over w as before, lag(idempotency_key) over w
          from payments
         where created_at >= $1::timestamptz - $2::interval
        window w as (partition by meaning order by created_at, payment_id)) d
 where d.before is not null and d.created_at - d.before <= $2::interval and d.created_at >= $1
 order by d.created_at, d.payment_id
 limit $3`
