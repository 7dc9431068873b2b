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
//	replay plan … --out FILE ─▶ file with a hash
//	replay run FILE --reason TEXT ─▶ the same counts? ─▶ row in replays ─▶ batches ─▶ result, compared
//	replay reset --to-… --reason TEXT ─▶ plan ─▶ group empty? ─▶ row and incident ─▶ offsets
//	replay list, replay show ─▶ rows of replays
//
// # Failure modes
//
// A group with members is refused, with what to stop. A wrong flag, two targets, no reason,
// a plan that was edited, is of another world or was run already is a matter of usage: exit
// code 2. A world that changed since the plan was made is exit code 1, with what differs.
// The bar of progress is on a terminal alone, never with --json.
package replay
