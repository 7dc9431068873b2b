// Package books holds the commands that read the books: accounts, events and verify.
//
// # Guarantee
//
// They change nothing, see one moment of the database, and may run at any time beside
// the workers, also through a pooler in transaction mode. What providers wrote
// (account IDs, types, event IDs) never steers the terminal.
//
// # Flow
//
//	configuration ──▶ pool, schema check ──▶ one read-only transaction ──▶ table or JSON
//
// # Failure modes
//
//   - Schema older or newer than the program: exit code 2 with what to run.
//   - Nothing found: an empty list is an answer; an account or an event asked for by
//     name that does not exist is an error, exit code 1.
//   - `verify` finds a broken promise: exit code 3.
package books
