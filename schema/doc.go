// Package schema is the contract of the topic: what an event is, how it is
// written as a Kafka record, how its JSON is read, and what it means in money.
//
// # Guarantee
//
// Whoever holds a record of the topic can, with this package alone, tell which
// event it is, check that its bytes are those that were received, and read them
// the one way hookledger reads them. Two programs never disagree about the
// identity of an event or about an amount.
//
// # Flow
//
//		bytes received ──ParseJSON──▶ Value ──provider──▶ Event ──Headers──▶ record
//		record ──DecodeRecord──▶ Event ──provider──▶ Meaning (postings, status)
//
//	  - An Event is one verified fact. Its identity is Key, made of the key of its
//	    source and its ID; both are opaque bytes and compared as such.
//	  - A Meaning is what an event means in money. Its EffectKeys name the
//	    movements themselves, so that a fact told twice under two IDs pays once.
//	  - Amounts are int64 minor units from the first digit to the last; no float is
//	    involved anywhere.
//
// # Failure modes
//
// Reading is strict because two readers of one sloppy text may see two different
// amounts: duplicate keys (also when they differ by case alone), bytes that are
// not UTF-8, lone surrogates, data after the value, and texts nested or split
// beyond Limits are errors. A record that is not ours, or whose bytes do not
// match their hash, is a *DecodeError; a record of a later format is
// ErrUnknownVersion, which is no fault of the record: a newer program can read it.
//
// The package imports nothing of hookledger and no Kafka client, so that analysts
// and checkers can use it as it is.
package schema
