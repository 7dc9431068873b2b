// Package backfill puts events into the topic that a provider tells of in an export or a
// listing of its API: what a gap at the provider, or at us, has swallowed.
//
// # Guarantee
//
// An imported event has the same identity as if it had been delivered, read by the same
// code; so what is known already is a duplicate when a worker reads it, and importing a
// file twice moves nothing twice. A record is marked: hl_scheme is import, and in place of
// the provider's signature stand who imported it and why. An event is reported as imported
// only after all in-sync replicas have it.
//
// # Flow
//
//	file ─lines─▶ body ─Identify─▶ record ─acks=all─▶ imported
//	                  └─ dry run ─▶ Ledger.Look ─▶ Survey ─▶ what would become of them
//
// # Failure modes
//
//   - A line that is no event, or has no identity, is reported with its number; the good
//     ones before and behind it are imported.
//   - The brokers do not acknowledge in time: *StoppedError says from which line on it is
//     not known. The same file again is safe.
//   - A line or a body that is too large is reported and never held in memory.
//   - A source whose events have no identity of their own is refused: each import would
//     make new events.
package backfill
