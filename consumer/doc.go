// Package consumer reads the topic and has the ledger apply it: records in, ledger
// changed, offsets out.
//
// # Guarantee
//
// Every record below a committed offset is settled in Postgres, whatever is killed, cut
// or taken away at whatever moment: an offset is committed only after the transaction
// that settled its records, and it is the next one to read. No record is settled twice,
// which is the ledger's doing: here a record may come again at any time, and does after
// every crash. Going back is always safe; going forward without having settled never
// happens, and every jump of a position is on record as an incident.
//
// # Flow
//
//	poll ──records──▶ queues ──batch──▶ apply ──outcome──▶ settle ──committed──▶ commit
//
// Each arrow has a type that only the stage before it can make, so that to commit
// before applying does not compile.
//
//   - poll puts what the client fetched into one queue for each partition. A queue that
//     is full pauses its partition; when all are full polling waits. A pause ends with
//     the assignment.
//   - K appliers each take what is queued for one partition and give it to the ledger,
//     one transaction. No partition is ever in two hands. So the latency of a quiet topic
//     is one commit, and a busy one is applied a thousand records at a time.
//   - tend, beside all that, opens a new generation of the memory of events on schedule
//     and has the oldest one forgotten, if no other worker was faster.
//   - commit tells Kafka, at most ten times a second and for all partitions at once. The
//     offset that Kafka acknowledged last goes into the next transaction.
//
// # Positions
//
// Postgres decides where a partition starts; Kafka's offset is what operators see and
// reset. N is next_offset of consumer_progress, F its from_offset, C the offset that
// Kafka holds. When a partition is assigned, the first rule that matches wins, and no
// start is below the start of the log:
//
//	1 progress of another cluster      refuse                          -
//	2 progress of another topic ID     topic_recreated, wait           log start
//	3 N > log end, or lost records     truncated (loss), seen twice    log start
//	4 N < log start                    expired (loss), seen twice      log start
//	5 no progress                      database_new if C > log start   log start
//	6 no commit, F < N                 commit_missing                  N
//	7 C > N                            progress_behind                 N
//	8 C < F                            rewind, seen twice              C
//	9 F ≤ C ≤ N, or F = N and no C     nothing: an ordinary crash      C, or N
//
// Where Kafka holds another position than the start, or none, it is told, and nothing is
// applied until it has acknowledged: so that a crash in between stays an ordinary one.
// An ordinary restart does not wait.
//
// The rules write only if the row is still what they read, and the incident in the same
// transaction. They run at assignment and nowhere else: whatever finds that a position
// does not hold (a transaction, the check every consume.check_interval and after
// Postgres was away, a fetch out of range, lost records) ends the membership. In-hand
// work is rolled back, the queues are dropped, and the worker joins again.
//
// # Failure modes
//
//   - Crash between the two commits: the batch comes again as duplicates.
//   - The answer of COMMIT is lost: the batch is applied again, on a new connection.
//   - Postgres is away, slow or refuses: the partition waits and tries again for ever,
//     after up to 5 s, and Ready says why. Batches that take too long get smaller.
//   - Postgres lost commits (restored, failed over): rules 5 and 7 start where it stands.
//   - A record of an unknown source or version: its partition waits, with an incident.
//   - A rebalance: partitions that leave finish their batch within half the session
//     timeout or roll it back; Kafka is told before the next owner asks. Partitions that
//     were lost are rolled back at once and nothing is committed.
//   - A worker that was frozen past its session: its transaction may still commit, as the
//     next owner's may, and the ledger lets each event in once. Its offset is refused.
//   - The commit of an offset fails: counted, repeated, and of no consequence.
//   - The memory of events cannot be rotated or forgotten, because somebody reads it for
//     long: logged, counted and tried again; records are applied meanwhile.
//   - Brokers away: the client looks for them; Ready says so.
package consumer
