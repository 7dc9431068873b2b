// Package doctor examines what the promise rests on: the brokers, the topic, the group,
// the database, the clock and the secrets.
//
// # Guarantee
//
// Nothing is changed: no record, no offset, no row. Every finding says what was found,
// why it matters and what mends it. What could not be asked is a finding too, never a
// silence. No finding holds a secret.
//
// # Flow
//
//	Examine ──▶ secrets and certificates    from the configuration alone
//	        ├─▶ Kafka                       brokers, topic, group
//	        └─▶ Postgres                    server, rights, schema, positions
//
// A problem breaks the promise, or keeps a role from starting. A warning will do harm in
// circumstances that do come. A note is worth knowing. With kafka.durability: single,
// what that gives up is a note.
//
// # Failure modes
//
//   - A part is away: one problem, and nothing more is said of that part.
//   - A right to ask is missing: a note that names the right.
//   - The clocks of brokers are not compared: Kafka has no question for the time of a
//     broker, and asking by a record would write one. What depends on them is told where it
//     shows: brokers refuse records of more than an hour ahead (INVALID_TIMESTAMP), and
//     retention counts from the times of ingest.
//   - Postgres behind a pooler that gives each transaction another connection: told
//     from two connections that share one server process.
package doctor
