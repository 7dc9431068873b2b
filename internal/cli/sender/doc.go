// Package sender plays a payment provider: it composes, signs and posts deliveries to
// the receiver, repeats some of them, and keeps a history of what was answered.
//
// # Guarantee
//
// The same seed makes the same events, byte by byte, so that a run can be repeated
// and a repeat moves no money. A line of the history is on disk before the sender
// takes up its next delivery, so that what it calls acknowledged can be held against
// the books by another program, whatever happened to this one.
//
// # Flow
//
//	Plan (seed) ──▶ schedule with repeats ──▶ C posters ──▶ answer ──▶ history ──▶ Summary
//
// An answer is ok (2xx), reject (a 4xx that says the delivery is wrong), or unknown
// (503 and other 5xx, 429, a broken connection): it may or may not be in the topic.
// Unknown ones are sent again with growing pauses until they are answered, as
// providers do.
//
// # Failure modes
//
//   - The receiver is away: every delivery is unknown and repeated until the time for
//     giving up; then the summary says how many were never acknowledged, exit code 1.
//   - The history cannot be written: the run stops, since it would prove nothing.
//   - Interrupted: what is under way is waited for, and the summary is printed.
package sender
