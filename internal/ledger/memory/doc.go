// Package memory keeps the memory of events small: it opens the next generation of
// processed_events on time, and empties the oldest one when it may be forgotten.
//
// # Guarantee
//
//   - Forgetting moves no money: whatever is forgotten meets the walls of ledger_entries,
//     which never forget. An event is remembered at least as long as was asked for.
//   - A generation is opened by exactly one of many workers, never earlier than asked
//     for, and never while it holds events. The ring does not wrap onto what it holds.
//   - event_ring says that a generation is forgotten in the transaction in which its rows
//     vanish. So whoever reads the rows first and the ring after knows what may be missing.
//   - What a person discarded is never forgotten: it moves on to the open generation.
//   - No DDL, nothing that grows with the number of events, and no right beyond those of
//     the worker: TRUNCATE of a generation, UPDATE of event_ring.
//   - Applying goes on. A rotation locks a row that applying only reads. Forgetting needs
//     its generation for itself for some milliseconds, and queues for that at most 400 ms.
//
// # Flow
//
//	Read ─▶ rotation due? ─▶ Rotate: one UPDATE of one row, if nobody was faster
//	     └▶ oldest due?   ─▶ Forget: look who holds it ─▶ lock the ring, UPDATE, TRUNCATE
//
// The eight generations form a ring. From oldest to open they are in use; the open one
// takes new events. A generation is closed when the next one is opened, and its youngest
// row is not younger than that. Times are those of Postgres: workers' clocks decide
// nothing.
//
// TRUNCATE waits for every transaction that reads the generation, and whoever comes after
// it waits behind it, applying included. Therefore Forget looks first: while a
// transaction holds the generation for longer than a second (an analyst's SELECT, a
// session somebody left open, a vacuum), it does not queue at all. Among short ones it
// queues for 50 ms, and for longer each time it was in vain.
//
// Neither waits for a synchronous standby, because TRUNCATE would keep its lock
// meanwhile. A failover may lose a rotation or a forgetting, rows and ring together; it
// is done again.
//
// # Failure modes
//
//   - The generation is held: *BusyError with who holds it. Try later; nothing else waits.
//   - The connection dies between UPDATE and TRUNCATE: both are rolled back.
//   - COMMIT without an answer: read again, and see.
//   - Nothing can be forgotten for so long that all eight generations are in use: ErrFull.
//     The open one goes on growing; repeats cost more, and nothing else changes.
//   - Rows in a generation that is not in use: applying does not leave any, because it
//     holds every generation from its first look to its end. Should another program have
//     put some there, they are found by their keys as any others, and the generation is
//     emptied once more before it is opened.
//   - An event that told of another event's money (same_effect) has no entry: once it is
//     forgotten, its effect key alone stands in its way. Whoever changes a rule's key or
//     its movement, and then replays beyond memory or is resent what is older, pays such an
//     event anew. With keep above the topic's retention a replay does not reach that far.
//   - Postgres's clock jumps ahead: what is due by it is done. Money does not notice.
package memory
