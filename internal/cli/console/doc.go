// Package console is the one look of everything the commands print: tables, amounts,
// times, and JSON for scripts.
//
// # Guarantee
//
// Data from outside (account IDs, event types, errors of others) never steers the
// terminal: it goes through Safe. An amount is never printed without its currency.
// Output for scripts is one JSON object on standard output and nothing else; what
// people are told meanwhile goes to standard error.
//
// # Flow
//
//	command ──▶ Table, Amount, Time ──▶ standard output
//	command --json ──▶ one object with "schema": "hookledger.<command>.v1"
//
// # Failure modes
//
//   - A currency outside ISO 4217 has no known decimals: it is printed in minor
//     units, with that word.
//   - The reader of a pipe went away: the error of writing is the command's error.
package console
