// Package broker is what every role knows about Kafka: how to reach it, what the
// topic must look like, and where its partitions stand.
//
// # Guarantee
//
// A role that passed CheckTopic talks to a topic that keeps what it acknowledged,
// or to one whose operator said, with durability: single, that it may not. No
// function here takes "I could not ask" for "there is nothing": a list call with an
// error for any partition is an error, never an offset 0.
//
// # Flow
//
//	topics apply:  Options ──▶ ApplyTopic   creates, or alters what differs
//	ingest:        Options ──▶ CheckTopic   refuses a topic that may lose records
//	consume:       Options ──▶ CheckTopic ──▶ Identity, StartOffsets, EndOffsets, CommittedOffsets
//
// A topic is known by its ID, not by its name: a topic deleted and created again
// has the same name and other records.
//
// # Failure modes
//
//   - The topic is missing: ErrNoTopic. No client creates topics by accident, since
//     a topic made so has one replica and the broker's default partitions.
//   - The topic may lose acknowledged records (too few replicas, too few in sync,
//     unclean election, compaction): a *RefusedError with one line per setting, each
//     ending in what to do.
//   - The topic takes smaller records than the receiver: refused as well, because
//     each delivery of such a size would be answered 503 for ever.
//   - The broker is away: the error of the call. Callers retry.
//   - The broker is on another machine and TLS is off: refused by Config.Validate, and
//     once more when an address is dialled, unless kafka.insecure_plaintext says so.
//   - A certificate or password is renewed: the next connection reads it.
package broker
