// Package testkit gives tests the real parts: Postgres, Apache Kafka, the
// hookledger binary, and ways to hurt them.
//
// # Guarantee
//
// Nothing is a mock and nothing is skipped: what is missing on the machine
// fails the test with the command that mends it. Everything started here ends
// with the test or, if shared, with the test process, however that dies; its
// folders are removed.
//
// # Flow
//
// Cheap and shared by all tests of a package's process:
//
//	Postgres, PostgresURL   an empty database of its own, in a shared cluster
//	LedgerDB, LedgerURL     the same, migrated
//	Kafka                   a shared broker of real Apache Kafka
//
// Made for one test:
//
//	Kfake                   Kafka in process: fast, with fault injection
//	NewPostgres             a cluster to kill, pause, stop, restart
//	KafkaCluster3           three real brokers to kill, pause, stop, restart
//	NewSecureKafka          a real broker with TLS, SASL and ACLs
//	authority.New           certificates; PostgresCluster.EnableTLS uses one
//	alerts.Start            a real Prometheus with the alert rules
//	StartHookledger         our binary, built once, to kill and signal
//	NewProxy                a TCP proxy that stalls, resets and cuts
//	Eventually              polls with a deadline, instead of a sleep
//	FreePort, FreeAddr      a place to listen that stays the test's
//
// HOOKLEDGER_TEST_POSTGRES names the major version of Postgres, and
// HOOKLEDGER_TEST_POOLER=transaction puts PgBouncer before the shared cluster:
// `make test-postgres` runs the suites that matter on both.
//
// # Failure modes
//
//   - Apache Kafka needs Java and its jars in .cache/kafka, which `make test`
//     fetches. Without them the tests that use it fail and say so.
//   - A test process killed with -9 leaves nothing behind: on Linux the kernel
//     tells the children, and a small shell, the janitor, waits for the end of
//     a pipe and then removes the folders.
package testkit
