// Package replay has records of the topic applied again by an operator's decision: it says
// before what would become of them, and does it.
//
// # Guarantee
//
// What was applied stays applied once: a replay goes through the same core and the same
// walls as the workers. It has a reader of its own, and touches neither the group nor the
// progress of any partition, so workers may run or not. A plan writes nothing and locks
// nothing. A run that would do something else than its plan says is refused, unless that
// is accepted. What a run did is counted in the transactions that did it, so a run that
// was cut goes on where it stood, and its counts are exact.
//
// # Flow
//
//	Selection ─spans─▶ reader ─batches─▶ Ledger.Look ×4 ─in order─▶ Survey ─▶ Plan ─▶ file
//	file ─▶ the same again ─same?─▶ claim the row ─▶ batches that change something ─▶ Ledger.Replay ─▶ done
//
// A run first looks at everything once more. Batches that would change nothing are then
// only counted; the others are read again and applied in the order in which they were
// foreseen: by partition, by offset.
//
// While the group has members a plan ends where Postgres stands: what lies beyond is the
// workers' to apply. Without members it goes to the end of the log.
//
// # Failure modes
//
//   - Another cluster, another database or a topic that was made again than the plan's:
//     ErrElsewhere, a new plan is needed.
//   - Records that retention deleted, a log that was cut, a restored database, a forgotten
//     generation, workers that were faster, another configuration: the counts differ, and
//     *ChangedError says how; with Accept the run goes on, and its result says that it
//     does not match.
//   - Two at once: a row of replays is running at most once, by a unique index, and its
//     attempt fences whoever had it before. A runner that died is succeeded after Lease.
//   - A COMMIT without an answer: the row tells whether it held.
//   - More events would change than fit in memory: ledger.ErrTooMuchChanges.
//   - A record of a source or version not known here: *ledger.WaitError; nothing is put
//     in quarantine that another configuration can read.
package replay
