// Package migrations holds the database schema and moves it forward and back.
//
// # Guarantee
//
// After Up the database has exactly the schema this program was built with, however
// many processes call Up at once. Check lets a role start only on such a database,
// and its error names the command that mends anything else.
//
// # Flow
//
// Files are numbered, embedded and applied in order by goose, each in a transaction
// of its own with its row in the table hookledger_schema. Up and Down hold a
// session-level advisory lock, so they need a direct connection: not one through a
// pooler in transaction mode.
//
// # Failure modes
//
// A file that fails is rolled back as a whole; Up can be called again. Roles belong to
// the cluster: a migrating user without CREATEROLE needs them made before, and the
// error says which statement does it. Down never drops roles, because other databases
// may use them.
//
// A schema that becomes newer beneath a worker that runs makes it not ready, and it goes
// on: what it writes must be allowed there. Started again, it refuses.
package migrations
