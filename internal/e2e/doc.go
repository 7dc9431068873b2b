// Package e2e proves the product from end to end: the built binary, its roles as
// separate processes, real Apache Kafka, real Postgres, clients that sign on their
// own, and a judge that shares no code with any of it.
//
// # Guarantee
//
// A test here passes only if the outside checker finds no violated invariant: every
// webhook that was answered 2xx is in the topic byte by byte and in the balances once.
//
// # Flow
//
//	system     one topic, one database, one configuration file, any number of roles
//	workload   events from a seed: what they mean, and their exact bytes
//	load       callers that deliver them, again and again, and keep a history
//	sampler    offsets and progress, noted all the time
//	settle     waits until all is read, gathers the world, and asks the checker
//
// A story is what happens between load and settle: kill -9, a broker that is away, a
// database restored from an older copy. Faults are triggered by what has happened
// ("at the 300th acknowledgement"), never by the clock alone.
//
// # Failure modes
//
// A failed test prints its seed, the first violated invariant with event IDs, and the
// end of what every process wrote.
package e2e
