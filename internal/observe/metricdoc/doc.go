// Package metricdoc writes the document of all metrics from the metrics themselves.
//
// # Guarantee
//
// What is registered with a Recorder is in its Docs, whether it has a value yet or
// not: a vector without children shows nothing at /metrics, but is documented.
//
// # Flow
//
//	every package's metrics ──Register──▶ Recorder ──Docs──▶ Markdown ──▶ METRICS.md
//
// A test of the commands builds the metrics of every role and compares the result
// with the file; `go test ./internal/cli -run Metrics -args -update` writes it anew.
//
// # Failure modes
//
// client_golang keeps the fields of a Desc to itself, so they are read from its
// text. A release that prints it differently leaves the document empty, and the
// test fails.
package metricdoc
