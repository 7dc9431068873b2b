// Package replay holds the commands that have events applied again.
//
// # Guarantee
//
// A command here shows what it will do before it does it, needs a reason, and leaves
// both on record. No replay moves money that moved before: that is the ledger's law,
// not a courtesy of these commands.
//
// # Flow
//
//	replay reset --to-… --reason TEXT ─▶ plan ─▶ group empty? ─▶ incident ─▶ offsets
//
// # Failure modes
//
// A group with members is refused, with what to stop. A wrong flag, two targets or no
// reason is a matter of usage: exit code 2, and nothing was asked of Kafka.
package replay
