// Package alerts watches a running stack with a real Prometheus and its alert rules.
//
// # Guarantee
//
// The rules are those of a file, over metrics that are scraped each second. Only their
// times are shorter: minutes are seconds.
//
// # Flow
//
//	Start ──▶ scrapes, evaluates ──▶ Firing, Await ──▶ ends with the test
//
// # Failure modes
//
//   - The program prometheus is not on the machine: the test fails and names the package.
//   - A test fails: the log of Prometheus is in its output.
package alerts
