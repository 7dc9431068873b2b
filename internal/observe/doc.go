// Package observe is how a running process is seen: its log, its metrics, and the
// admin listener with /livez, /readyz, /metrics and /debug/pprof.
//
// # Guarantee
//
// A log line is one line, whatever the data in it, and neither logs nor metrics nor
// readiness hold payloads or secrets: the packages that write them pass identities,
// counts and errors alone. Every metric of the product is in METRICS.md, with unit
// and meaning; a test compares the two.
//
// # Flow
//
//	NewLogger ──▶ every package
//	NewRegistry ──▶ every package registers its own metrics ──▶ /metrics
//	Checks.Add(name, Ready) ──▶ /readyz, as JSON: which check fails, why, since when
//
// /livez says only that the process answers. /readyz is 200 when the role can do its
// work and 503 otherwise, and while the process drains. A process that waits for
// Postgres or Kafka is alive and not ready: restarting it would mend nothing.
//
// # Failure modes
//
//   - The admin port is taken: ListenAdmin fails, and the role does not start.
//   - The admin listener is not on loopback: it works, with a warning, since whoever
//     reaches it can read profiles.
//   - A metric cannot be gathered: the others are still answered.
package observe
