// Package checker judges a run of hookledger from outside: from what the clients
// saw, what the topic holds and what Postgres holds.
//
// # Guarantee
//
// It shares no code with the program it judges: no package of ours is imported. The
// topic is read by kcat (librdkafka), group offsets by Kafka's own
// ConsumerGroupCommand, tables by plain SELECTs of the columns that are promised to
// everyone. Sums are made in SQL and again with big integers. What Check returns is
// a pure function of a World, so a run that failed can be judged again from its files.
//
// # Flow
//
//	ReadHistory   deliveries, one a line, as the clients wrote them
//	ReadTopic     every record, byte by byte
//	ReadGroup     the committed offset of each partition
//	ReadTables    events, entries, accounts, quarantine, positions, incidents
//	Check         the invariants, the first violated one first, with event IDs
//
// # Invariants
//
//	I1   no acknowledged event is lost
//	I2   nothing is invented: whatever is on record was sent, and was not refused
//	I3   an event, and a movement of money, is applied at most once
//	I4   each balance is the sum of its entries and of what was sent
//	I5   bodies are intact, in the topic and in the hashes of Postgres
//	I6   what was refused is nowhere
//	I7   offsets never lead: records below a committed offset are on record
//	I8   a replay changes nothing
//	I9   conservation: each record below the committed offset has one outcome
//	I10  an acknowledged event was in the topic before its answer
//	I11  once healed, nothing lags, and no request outlived its deadline
//	I13  no configured secret shows up in logs, metrics or the topic
//	I14  a jump of a position is an incident, and an incident has a cause
//	I15  progress never trails the committed offset, unless an incident says so
//
//	S1   the state of an object is the latest that was told of it, in whatever order
//	P1   an Idempotency-Key makes one payment at most, and has one answer, byte by byte
//	P2   a payment that was answered 201 is in the books as it was asked for
//	P3   a payment in the books was asked for, and moves its money once, sum zero
//
// I12, bounded memory, is for who starts the processes to measure.
//
// # Failure modes
//
// A read that fails is an error, never an empty answer: an empty world would pass. A
// record that expired before it was read is reported as lost; runs are shorter than
// retention.
package checker
