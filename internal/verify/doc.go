// Package verify proves that the books are right, or says what is wrong with them.
//
// # Guarantee
//
// A report that is OK says: every record below the group's committed offsets that
// the topic still holds is on record (applied, ignored, a duplicate, a conflict or in
// quarantine); the bytes that were applied are those of the topic; every balance is
// the sum of its entries; every entry has an event, a payment or an amendment behind
// it, and each of these its entries; the entries of an applied event, and of an
// amendment, are what it was recorded to mean; every entry has the keys of its event and
// of its movement; signatures hold as of when they were received, where that can be
// checked; what a history says was acknowledged is in the topic or on record; positions
// agree; no loss is open. What is at or above a committed offset is not judged: it is
// work to do. What is open but breaks no promise (quarantine, conflicts, warnings) is a
// note, unless Options.Strict.
//
// The second path is a path of its own. The package shares no code with the one
// that writes: it imports only the contract of the topic (schema), and of that not
// the mapping; its queries, its positions, its hash of a meaning and its Kafka client are
// its own. The command line hands it two functions of others, to ask about one event:
// whether a signature holds, and what today's mapping makes of a body; see below how far
// they are believed. It writes nothing, so any role that may SELECT will do.
//
// # Flow
//
//	histories ─▶ committed offsets ─▶ log starts and ends ─┬▶ topic up to committed ──batches──▶ rows by key ─┬▶ progress ─▶ report, mark
//	                                                       └▶ tables against each other, meanings ──────────┘
//
// Workers run meanwhile, and no snapshot spans Kafka and Postgres. The order makes
// one unnecessary: a worker commits an offset only after the transaction that put
// the records below it on record. So whatever is below an offset that was read
// first is in the tables when they are read later, and rows that came in between
// do no harm, because only rows that are missing are findings. The other way round
// (tables first) a record applied in between would look lost. The same holds for
// progress, which is read after the committed offset and may be ahead of it, never
// behind; and for the log's end, which is asked for again after progress.
//
// One thing does disappear: the rows of a generation of the memory of events.
// Therefore the reach of memory is read after the rows that it excuses, and what is
// in doubt is judged by the later reach. Tables are compared by single statements,
// each a snapshot by itself; what belongs together was written in one transaction.
//
// Records are read by one client for all partitions and hashed and looked up by
// several workers, in batches of batchRecords keys answered through the primary
// keys. Order does not matter, so a batch may mix partitions. Memory is bounded by
// the fetches in flight and one batch per worker, whatever the topic's size (94 MB for
// a million records of 1 KiB); findings are counted and only the first few are kept.
// A history takes 16 bytes for each acknowledged event.
//
// # What is decided how
//
//   - A record whose event has a row with the hash of the record's bytes is well.
//
//   - The record that a row names as the first of its event (topic, partition,
//     offset) must have the hash in the row: otherwise bytes or row were changed, a
//     finding of CheckHashes. So is a value that contradicts the hash in its own
//     header and is not in quarantine, a record in quarantine with other bytes, and
//     a conflict whose bytes are not its hash.
//
//   - Another record of a known event may have other bytes: as a conflict on record,
//     or because the worker found that they mean the same, or a status that another
//     superseded, which leaves no row. Verify does not run the mapping, so that is a
//     note (changed_bodies).
//
//   - A record that is no event of ours, or that cannot be read, is in quarantine by
//     its partition and offset, or it is unaccounted.
//
//   - A record that left the quarantine has an event with a row, an entry or a conflict, if it
//     came since memory begins and is an event at all: whoever settles one writes it
//     in the same transaction (CheckResolutions).
//
//   - An event without a row whose entry stands is applied: its record is accounted
//     for by the ledger alone. Whether the row may be gone is judged by CheckEntries:
//     yes before the memory of events begins, with clockSlack between clocks, no after.
//     This rests on a row lying in the generation that was open when its entries came.
//
//   - An event without row and entry that occurred, or was received, before memory
//     begins was ignored then or was never there; nobody can tell any more, so it is a
//     note (forgotten). When it occurred counts, because a repeat is received later
//     than what it repeats, leaves no row, and outlives it.
//
//   - An entry of a payment is founded if it is one of the two legs that the payment's
//     row tells of; one of an amendment if the amendment's row is there. And back: a
//     payment has both its legs, an amendment an entry.
//
//   - The hash of a meaning is computed from the entries. Where it is another, the
//     meaning may hold more than entries: a status, or a movement of which another event
//     told first. Then the record is read again and today's mapping is asked, and believed
//     only if its answer has the recorded hash: it then is what was applied, and each of
//     its postings must have its entry (CheckMeaning). Else nothing can be compared, a
//     note.
//
//   - The hash of an amended event is that of its last amendment. So amendments are judged
//     instead: each takes back exactly what stood before it, and the rest are the postings
//     that it was recorded to mean, by the same hash and the same closer look.
//
//   - The effect key of every entry is made again: from source, rule, movement and line; of a
//     payment from its ID and the leg; of an amendment from its ID and line, or from its
//     event's source, rule and movement (CheckEffectKeys). So is the event key of an entry, from
//     source and event ID (CheckEntries). How many postings of one event share
//     rule and movement is not on record, so of those any number up to the line will do, and
//     two that exchanged their keys are not noticed.
//
//   - A signature that does not hold is a finding only between two records that the same
//     secret did sign, clockSlack from each: before and after, another secret may have had
//     its name. Everything else is a note: static tokens, which are not stored; secrets
//     that are gone; keys that would have to be fetched; items of a batch, whose whole was
//     signed; events that an operator filled in (scheme import).
//
//   - An acknowledged event is looked for in the topic up to the log's end as it was after
//     the history was read, and if it is not there, in the tables.
//
//   - Where the group committed nothing, records are judged up to where Postgres says that
//     workers came: a mistyped group, or one whose offsets expired, proves nothing less. If
//     workers applied another topic of this cluster and nothing of this one, its name is wrong,
//     a finding of CheckPositions.
//
//   - A range of time bounds the records and the history. Tables are compared whole: a
//     balance is the sum of all its entries.
//
// # Increments
//
// A mark says how far the last run proved: offsets by partition, and the ledger up to an
// entry. It is a file of the caller's and not a table, because whoever proves the books
// should need no right to write beside them, and two provers should not share a memory.
// An increment reads the records and the entries behind the mark, and compares all
// balances: sums of balances and of amounts, each times a random number of its account,
// are kept for the entries up to the mark, so that old entries need not be read and
// still every account counts. If the sums differ, whole tables say where. A mark is kept
// only if the report is OK, so a finding is found again until it is mended.
//
// Entries have numbers before they can be seen. So the mark moves to the newest entry
// seen only once every transaction that wrote entries then has ended (settled).
//
// What an increment does not see, and a whole run does: rows of events below the mark
// that were changed or removed; effect keys below the mark that were changed; entries below the mark whose account, amount and currency
// stayed, or were exchanged so that each account has the same sum; a payment or an
// amendment that has lost an entry; an event applied by hand (quarantine retry) without
// an entry; records of the topic below the mark that were removed or replaced. So run
// verify as a whole once a day.
//
// A mark is set aside, and everything proved, if the topic, the cluster, the group or the
// version of Postgres is another, if the log was cut below it, or if the ledger does not hold the entry of the mark: it
// was restored from a copy.
//
// # Failure modes
//
//   - Something cannot be read: an error, never a report. Nothing is then known.
//   - A standby is refused: it may lag behind the committed offsets, and what it has
//     not heard of yet would look lost.
//   - Retention deletes records before they are read: the reader goes on at the new
//     start of the log and a note says how many offsets it passed.
//   - The log is cut or the topic is made again while it is read: an error that says
//     to run verify again.
//   - Nothing arrives for stallTimeout: an error that names the partition.
//   - A topic of the same name was made again, an event came again with other bytes
//     that mean the same, and lies at the very offset its row names: a false finding
//     of CheckHashes. Rows do not hold the topic's ID;
//     three rare things at once.
//   - A repeat that went into quarantine, of an event that moves no money and was forgotten
//     since: a false finding of CheckResolutions until the repeat is older than memory, too.
//   - An event that moves no money and does not say when it occurred is sent again just
//     before its row is forgotten: a false finding of CheckRecords until that repeat
//     leaves the topic, or is read again.
package verify
