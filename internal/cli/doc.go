// Package cli is the command line of hookledger: one command a file, in the packages
// below it, and the wiring of roles to pools, clients and lifecycles.
//
// # Guarantee
//
// Exit codes: 0 done, 1 failed, 2 usage, configuration or setup, 3 a check found
// something. Each command has --help with examples. Reading commands have --json: one
// object with "schema": "hookledger.<command>.v1" on standard output and nothing else.
// Writing commands have --dry-run.
//
// # Flow
//
//	main ──signals──▶ Run ──▶ app (configuration, output, exit codes)
//	                           ├─ dev, roles   run
//	                           ├─ sender       play a provider
//	                           ├─ setup        config, migrate, topics, version
//	                           ├─ books        accounts, events, verify
//	                           ├─ lag          lag
//	                           ├─ replay       replay
//	                           └─ repair       incidents, quarantine
//
// # Failure modes
//
//   - The first SIGINT or SIGTERM lets the command finish the work in hand, and a role
//     then ends with 0. The second abandons it: nothing is lost, since what was not
//     finished was neither answered 2xx nor committed.
//   - An error is printed once, on standard error, and ends in what to do next.
package cli
