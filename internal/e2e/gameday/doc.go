// Package gameday plays incidents on real Kafka and Postgres with the built binary, and mends
// each with the commands of its runbook page.
//
// # Guarantee
//
// For each incident a real Prometheus with deploy/alerts.yaml fires what the page says, the
// commands in the page's blocks are run as they stand there, `hookledger verify` ends with
// exit code 0, and balances are what was acknowledged, added up by hand.
//
// # Flow
//
//	stack (broker, Postgres, ingest, consume, Prometheus) ──▶ harm ──▶ alerts
//	   ──▶ blocks of deploy/runbook/PAGE.md: Look, Do ──▶ nothing behind ──▶ Prove, sums
//
// `make gameday` plays all and tells them as a story (build tag gameday); `make test` plays two.
//
// Minutes of the rules are seconds here (for: 2m is 2s, [5m] is 6s), so a worker that is dead
// for a minute is one that is dead for an hour and more to the alerts. systemctl in a page
// stops and starts the processes of the stack, journalctl shows the end of their output.
//
// # Failure modes
//
// An alert that does not fire, a command that fails, a proof that does not hold or a sum that
// differs fails the incident; what follows is played all the same.
package gameday
