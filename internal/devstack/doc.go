// Package devstack runs the real parts on one machine with nothing installed:
// Kafka inside this process and a local Postgres. `hookledger dev` and the
// tests use it. It runs on Unix systems.
//
// # Guarantee
//
// What was acknowledged stays: Kafka's records, group offsets, topic IDs and
// cluster ID, and Postgres's commits survive a stop, a kill -9 of this process
// and, unless Throwaway was asked for, a power cut. Two processes never use
// one data folder.
//
// # Flow
//
// StartKafka loads the folder and listens on a fixed port. StartPostgres
// chooses an account (root gives way to postgres or nobody, since initdb and
// postgres refuse root), a folder that this account reaches, binaries (local
// ones of version 15 or newer, otherwise a download kept for the next time)
// and a port; it makes the cluster if there is none and returns once a login
// works.
//
//	folder of Postgres            folder of Kafka
//	  lock          held by us      lock
//	  password      mode 0600       data/
//	  postgres.log
//	  data/
//
// # Failure modes
//
//   - This process is killed: on Linux the kernel tells Postgres, which shuts
//     down in good order. Elsewhere, or when that is still going on, the next
//     start finds the leftover by its working folder, stops it and waits. The
//     pid file of a live server is never removed.
//   - Killed during initdb: the unfinished cluster is thrown away.
//   - A port is taken, a folder is in use or out of reach: an error that says
//     what to do.
//   - A worker is killed while its group rebalances: the embedded broker alone would keep its
//     partitions, or let the others wait, for ever. It is made to go on after the session
//     timeout, at worst after twice the rebalance timeout.
//   - Postgres ends by itself: Done is closed; the owner decides.
package devstack
