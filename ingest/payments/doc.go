// Package payments is the door for payments of our own: money moved between two
// accounts of the ledger, once for each Idempotency-Key, whatever clients, networks and
// processes do.
//
// # Guarantee
//
// For each key of a client at most one payment exists, as long as the key is remembered,
// and everybody who sends the key with the same request gets the same answer, byte by
// byte. An answer is kept in the transaction of its payment, so neither exists without
// the other. No payment takes an account below zero that it spends from.
//
// Payments are not in the topic: they have the promise of Postgres alone. So the role
// refuses a Postgres whose COMMIT waits for no standby, unless payments.durability says
// single.
//
// # Flow
//
//	POST /v1/payments
//	  admit     bearer token, rate of the client
//	  read      content type, key, body, strictly; the token's authority over from
//	  claim     one short transaction: what stands, or a row processing → claim
//	  work      one transaction in one write: still my claim? → answer and payment,
//	            entries, balances, COMMIT
//	GET /v1/payments/{id}, GET /v1/accounts/{id}, GET /openapi.json
//
// The claim's number, attempt, is the fencing token: it is given out once, and the work
// begins by asking whether the row still has it. A claim older than claim_ttl is taken
// over with a new number; the worker that had it, when it wakes, changes nothing. COMMIT
// of the claim does not wait for the disk, that of the work waits for disk and standby.
//
// Both transactions travel in one write each, so a process that stops holds no lock, and
// no statement waits longer than 100 ms for one. Locks are taken in the order of package
// ledger behind the row of the key, which is taken without waiting.
//
// # Answers
//
// Answers other than success are application/problem+json. Their type is
// urn:hookledger:problem: and one of these names, which do not change:
//
//	bad-idempotency-key     400  missing, doubled, malformed
//	bad-body                400  not a payment; detail says what to mend
//	unauthorized            401  no token, or one that is not known
//	insufficient-funds      402  kept: a repeat is answered the same
//	forbidden               403  not an account of this token
//	not-found               404  no such path, payment or account
//	method-not-allowed      405
//	in-progress             409  somebody works on the key; Retry-After
//	body-too-large          413
//	unsupported-media-type  415
//	key-reused              422  the key belongs to another request
//	balance-range           422  kept: the balance of to would not fit 64 bits
//	rate-limited            429  Retry-After
//	internal                500  a fault of ours
//	unavailable             503  it did not happen: Postgres is away
//	overloaded              503  it did not happen: no connection, or locks, in time
//	unknown-outcome         503  COMMIT was not answered; the next request finds out
//
// Kept are 201, 402 and balance-range. Nothing else is, so the same key can be sent again.
//
// # Failure modes
//
//   - The process dies after the claim: the key is busy until claim_ttl is over, then the
//     next request takes it over. Before COMMIT nothing happened, behind it all did.
//   - A lock that is not the key's is not had in time, of an account or of all of a table
//     (DDL, a page by which it grows): tried again, then 503. It makes no key busy.
//   - The answer of COMMIT is lost: 503, and the claim is left as it is. The next request
//     reads what became of it.
//   - The work is rolled back for certain (locks, timeouts): the claim is released, and
//     the next request need not wait. The key stays bound to its request.
//   - The standby is away: COMMIT waits, and nobody sees the payment until it has it. The
//     request is answered 503 at answer_timeout; its connection stays taken, so at most a
//     pool of payments hangs. Connections need a pool made by PoolConfig for this.
//   - Postgres is away: 503, not ready. Restarted without the last claims: they are made
//     anew, and the old claimants are fenced off by number, time and request.
//   - A client falls silent in the middle of a write, by a broken network: Postgres 17 and
//     later end the transaction after claim_ttl; before that it ends with the connection,
//     so set tcp_keepalives on the server. Its locks cost others 409 and 503, never a wait.
//   - A key is used after key_ttl: it is a new payment. A client must not retry for so long.
//   - A client makes a new key for each retry: it pays twice, and nothing here can know.
//     duplicates_total counts it, `hookledger accounts duplicates` lists it.
//   - A pooler in transaction mode: works if it supports prepared statements (pgbouncer
//     1.21 with max_prepared_statements); else add default_query_exec_mode=exec to the URL.
package payments
