// Package repair holds the commands by which a person decides: about incidents, about
// what stands in quarantine, about conflicts, and about money that an event moved wrongly.
//
// # Guarantee
//
// Nothing leaves without a trace: who decided, when and why stays on record, and no row is
// deleted. Whatever moves money goes through the same core as the workers, in one
// transaction, and is shown first by --dry-run, which does the same work and rolls it
// back. Commands may run beside workers and beside each other. Bytes of providers never
// steer the terminal.
//
// # Flow
//
//	incidents list ─▶ ack
//	quarantine list ─▶ show ─▶ retry | discard      (conflicts: c7 instead of 7)
//	events show ─▶ get ─▶ amend
//	export of the provider ─▶ events import ─▶ topic ─▶ workers
//
// # Failure modes
//
//   - A decision that somebody made before stands: it is told, not repeated.
//   - The connection breaks during COMMIT: the outcome is unknown, the command fails and
//     may be given again; what held is then told as decided before.
//   - A role without the rights: refused by Postgres. Writing here needs
//     hookledger_operator, reading hookledger_reader.
//   - Lines of an import that are no events are listed; the others are stored, and the
//     exit code is 1. An import that stopped says from which line on, and may be repeated.
//   - Several were asked for and some could not be mended: the others are, the answer
//     lists each, and the exit code is 1.
package repair
