// Package books holds the commands that read the books: accounts, events and verify.
// What changes them is in package repair.
//
// # Guarantee
//
// They change nothing there (`verify --incremental` keeps a file, its mark), see one
// moment of the database, and may run at any time beside the workers, also through a
// pooler in transaction mode. What providers wrote (account IDs, types, event IDs) never
// steers the terminal.
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
//   - The topic does not hold an event's record any more, or Kafka is away: `events show`
//     tells the rest and says so, `events get` fails.
//   - `verify` finds a broken promise: exit code 3.
package books
