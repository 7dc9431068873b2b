// Package dev runs all of hookledger on one machine with nothing installed: Kafka in this
// process, a local Postgres, migrations, topic, receiver and worker.
//
// # Guarantee
//
// `hookledger dev` needs no configuration and no network beyond a first download of
// Postgres, if there is none on the machine. What was acknowledged and applied is still
// there at the next start, also after kill -9. While it runs, every other command works
// beside it from the same folder, since it leaves .hookledger/hookledger.yaml there.
//
// # Flow
//
//	.hookledger/
//	  kafka/            records and offsets, synced before they are acknowledged
//	  postgres/         the cluster (as root it may have to live elsewhere: the banner says)
//	  secrets/NAME      a development secret for each source, made once
//	  hookledger.yaml   mode 0600, written at each start
//
//	lock ─▶ Kafka ─▶ Postgres ─▶ migrations ─▶ topic ─▶ receiver, worker ─▶ ready ─▶ banner
//	signal ─▶ receiver and worker drain ─▶ admin ─▶ Postgres ─▶ Kafka
//
// # Failure modes
//
//   - A port is taken: which one, and the flag that changes it; exit code 2.
//   - Another dev uses the folder: its process ID; exit code 1.
//   - Postgres ends by itself: everything stops, with the place of its log; exit code 1.
//   - One copy of each record: for development, and the log says so.
package dev
