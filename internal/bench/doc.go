// Package bench measures the product beside the least that could do the same work, and
// prints one table. It is all tests: `make bench` runs it, `make test` runs it tiny.
//
// # Guarantee
//
// Every line stands beside its floor, measured in the same run on the same machine, in
// turn: hookledger, floor, hookledger, floor. A ratio is the median of the ratios of the
// pairs, so that a machine that slows down slows both. Nothing is written but the table,
// and the file that OUT names.
//
// # Flow
//
//	group ──starts──▶ Kafka, Postgres, hookledger and floor as processes
//	      ──loads───▶ one side, then the other, as often as the mode says
//	      ──adds────▶ lines to the table
//
// A floor is a process too: this binary under another role, see floor_test.go. What each
// floor does and leaves out is written beside it, and in BENCHMARKS.md.
//
// # Failure modes
//
//   - A side that answers wrongly, or does not finish, fails its group; the lines of the
//     other groups are printed, and the exit code says that something is missing.
//   - A ratio that is missed is a figure, not a failure: machines differ.
//   - A noisy machine shows in the spread, which stands in the note of a line.
package bench
