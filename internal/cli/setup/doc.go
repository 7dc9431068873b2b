// Package setup holds the commands that prepare and explain an installation: config,
// migrate, topics and version.
//
// # Guarantee
//
// Each can be run again: what is done already is said to be done. What changes
// something has --dry-run, and what drops data asks for --yes.
//
// # Flow
//
//	config check ──▶ migrate up ──▶ topics apply ──▶ the roles start
//
// # Failure modes
//
//   - Wrong configuration: all problems at once, with file and line, exit code 2.
//   - Postgres or Kafka away: exit code 1; run it again.
//   - `topics check` on a topic that a role would refuse: the reasons, exit code 3.
package setup
