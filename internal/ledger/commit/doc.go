// Package commit keeps the driver from cancelling a COMMIT.
//
// # Guarantee
//
// A COMMIT that waits for a synchronous standby is not ended by us. A wait that is
// cancelled counts as committed, on one machine: everybody sees what a failover loses. So a
// connection whose user gives up is closed and left to the server, which keeps the locks of
// that transaction until the standby has it, and shows nothing of it.
//
// # Flow
//
//	Pool ──▶ each connection has a guard ──▶ Begin ──▶ COMMIT ──▶ End
//
// A driver (pgx v5.13) whose context ends closes the connection and sends a cancel request
// beside it, over a connection of its own. The guard refuses to dial that one: between
// Begin and End, or, after NeverCancel, always. COMMITs of a pgx.Tx are guarded by
// themselves.
//
// # Failure modes
//
//   - The user gives up while the standby is away: the outcome is unknown, and whoever tries
//     again waits for a lock until it is known.
//   - Somebody else ends the wait (pg_cancel_backend): the server says so beside its answer,
//     and End returns ErrAlone. Doing it again waits for the standby again.
//   - The statements before COMMIT in the same write are not cancelled either; their
//     timeouts, which are the server's, end them.
//   - A connection without a guard: Begin and End do nothing, and its COMMIT is cancelled.
package commit
