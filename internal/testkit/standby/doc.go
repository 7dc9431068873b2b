// Package standby is a standby of Postgres for tests of what waits for one.
//
// # Guarantee
//
// It speaks the streaming replication protocol of a real standby with a real primary, so
// Postgres counts it, and its COMMITs wait for it. It keeps nothing of what it is sent.
//
// # Flow
//
//	Attach ──▶ START_REPLICATION ──▶ every piece of WAL is confirmed ──▶ detach
//	Want   ──▶ synchronous_standby_names ──▶ COMMITs wait for that name, or for none
//
// # Failure modes
//
//   - The primary ends: so does the standby.
//   - It is detached: COMMITs that wait for its name wait on.
package standby
