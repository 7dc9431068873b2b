// Package ledger is the transactional core: it turns batches of records into entries
// and balances, exactly once.
//
// # Guarantee
//
//   - An event is applied at most once, whatever is delivered, replayed or run twice,
//     by however many workers at once: constraints decide, never a look before an act.
//   - A balance is the sum of its entries, at every commit.
//   - Every record below a committed position has an outcome on record: its event's row,
//     a conflict, or a place in quarantine.
//   - The position in Postgres moves in the transaction that did the work, and Committed,
//     which alone allows the commit to Kafka, exists only after COMMIT was answered.
//
// # Flow
//
//	Batch ─decode─▶ items ─look─▶ known ─decide─▶ plan ─lock─▶ write ─▶ weigh ─▶ commit ─▶ Committed
//
// A transaction is two round trips if all that is left of the batch looks new: begin, lock
// the progress row and ask which events are known; insert events and entries, add to the
// balances, advance progress and COMMIT in one write. There the constraints decide alone:
// if one of them is met, the transaction is rolled back and the batch runs again, wary.
// Where anything else is to be written, and for some batches after such a meeting, it is
// three: events and entries are inserted with ON CONFLICT DO NOTHING, and what RETURNING
// says comes between. (The inserts of the first kind take two thirds of the time, Postgres
// 15: no row is looked up before it is inserted.) Events that are known with the same bytes are neither parsed nor mapped,
// so a replay does not depend on today's configuration.
//
// A plan is what the batch will write if nobody else is faster. Whether an event was new
// is for the constraint or RETURNING to say: if one was not, the transaction is rolled back
// and the batch runs again, seeing what the faster one committed.
//
// # Outcomes of an event
//
// applied ⇔ the event has at least one entry. So a status event without money is ignored
// even when it moved a payment state: its meaning, which includes the status, is stored
// with its row. Events without entries (ignored, stale) do not block: the same record,
// replayed after a change of the mapping, is looked at again, and if it means something
// else today than what is stored, its row takes that meaning, with money or without.
// same_effect: all its money is on record under other events. stale: it has a status
// alone, older than the state it speaks of. discarded: a person decided; it blocks.
//
// # Outcomes of a record of a known event
//
// Same bytes, or other bytes with the same meaning: duplicate. Another meaning: conflict,
// with both hashes and the new bytes kept; or, for types whose latest status wins, the
// state moves if the status is later (the record is ignored, the row takes its bytes and
// meaning) and else the record is stale. Money never moves a second time; where such a
// record also has postings, a conflict is kept beside the move. A body of a known event
// that cannot be mapped is a conflict with a meaning of zeros.
//
// # Two walls
//
// processed_events may forget (package memory does). ledger_entries is unique by effect key (one movement of
// money) and by (event key, line), for ever, and every insert meets both. Entries that
// were not written are read: of the same event, it was applied before; of another event
// with equal money, two events tell of one movement; with other money the event goes to
// quarantine as effect_mismatch, and the batch runs again without it.
//
// # What people decide
//
// Retry gives a record in quarantine, or a conflict, to the same plan and the same writes
// as Apply, without progress, and notes the decision in the same transaction; Discard puts
// the outcome discarded in their place. Both may run beside workers and beside each other.
// Money that was applied wrongly is mended by package amend, which only adds.
//
// # What operators replay
//
// Replay is Apply with the row of a replay in place of the progress: locked first, moved
// last, with its counts, by the one attempt that owns it. Look and Survey make the same
// plan from the same questions without a lock or a write, and keep in mind what earlier
// batches would do; a random test holds them to what Replay then does.
//
// # Order of locks
//
// progress or replay, payment_states, known events, new events, entries, quarantine, conflicts,
// accounts, incidents; inside each by bytes. Whoever else writes these tables keeps that
// order.
//
// # Failure modes
//
//   - Data that Postgres refuses (class 22, or a named constraint of accounts or
//     ledger_entries, or a sum that overflows): the batch is halved until the record is
//     alone; it goes to quarantine and its neighbours are applied.
//   - A record of a source or version not known here: what lies before it is applied, an
//     incident is raised once, and *WaitError says that the partition waits.
//   - COMMIT without an answer: its outcome is unknown. The error leads to the same batch
//     again, which comes out as duplicates if it held.
//   - COMMIT waits for a synchronous standby for longer than the caller does: it is never
//     cancelled (package commit), and the same batch again waits for its locks meanwhile.
//   - A progress row that is missing or behind: ErrPositionMoved, nothing is written.
//   - More than 20 of a source's last 1,000 records in quarantine: incident
//     quarantine_surge, once until it is acknowledged. Each process counts what it settles.
//   - Everything else (deadlock, shutdown, full disk, read-only, timeouts) is an error to
//     retry with back-off.
//
// Connections may lead through a pooler in transaction mode: settings are local to the
// transaction. Statements are prepared once for each connection, by names made of their
// text; behind a pooler, which shows by its process ID, none is.
package ledger
