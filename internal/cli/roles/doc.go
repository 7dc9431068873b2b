// Package roles wires the roles of hookledger to their pools, clients and listeners, and
// runs them until they are asked to stop.
//
// # Guarantee
//
// A role starts only on what keeps the promise: a topic that does not lose acknowledged
// records, a schema that is this program's. It refuses with exit code 2 and the command
// that mends it. What is merely away is waited for, not ready meanwhile.
//
// # Flow
//
//	configuration ──▶ checks ──▶ admin listener ──▶ role runs ──signal──▶ drains ──▶ admin closes
//
// Ingest has no database: it opens no pool and cannot. Pools belong to this package and
// are closed after the role that uses them has ended.
//
// # Failure modes
//
//   - A port is taken: exit code 2, with the key that changes it.
//   - Kafka or Postgres is away at the start or later: the role waits; /readyz says what
//     for and since when.
//   - The database belongs to another cluster's topic: exit code 2.
package roles
