// Package deploy is what runs hookledger in earnest: rights, units, alerts. There is no
// code in it; its tests hold each file against the program.
//
// # Guarantee
//
// What stands in this folder was run: ACLS.md on a broker with ACLs and a Postgres with
// TLS, the compose file against the configuration and the program's own command lines,
// the alerts by promtool and by a Prometheus that watches a real stack.
//
// # Flow
//
//	ACLS.md           one user for each role, and what it may do
//	systemd/          units for machines without containers
//	compose/          the configuration that ../docker-compose.yml mounts
//	alerts.yaml       rules for Prometheus, each with its line of RUNBOOK.md
//
// # Failure modes
//
// A file that differs from the program fails a test: an environment variable that is no
// setting, a metric that does not exist, an image without a version.
package deploy
