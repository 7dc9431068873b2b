// Package source turns the configuration of a webhook endpoint into what receiver and
// worker need of it: what it is signed with, how its events are identified, what answer
// counts as success, and what an event means in money. It knows no provider: those are
// definitions, one file each, in package provider.
//
// # Guarantee
//
// Receiver and worker read one configuration through one type, so what was accepted as
// an event of a source is mapped as an event of that source. Nothing here guesses: an
// event either has an ID that can be kept for ever, or is refused; a rule either reads
// an exact amount, or the event goes to quarantine with the path that could not be read.
//
// # Flow
//
//	Config ──New──▶ Source ─┬─ Signature ─▶ package ingest/signature
//	                        ├─ Identify(Delivery) ─▶ Items ─▶ records
//	                        ├─ Success(Items) ─▶ Answer
//	                        └─ Map(Event) ─▶ schema.Meaning ─▶ ledger
//
// A Definition is mostly data in the words of the configuration itself (paths, units,
// directions), so that a built-in provider and a generic source run through the same
// rules.
//
// # Rules of meaning
//
//   - A rule is for exact event types and makes at most one posting; several rules make
//     several postings. With each it is read for every item of a list. Without a rule for
//     its type an event is ignored. A provider's own rules and those of the configuration
//     count together.
//   - An amount of zero moves nothing and makes no posting. An amount that is missing,
//     null or not a number, and a negative one where the direction is not signed, is an
//     error of the mapping: quarantine.
//   - Amounts may be numbers or decimal numbers in strings, in both units, and are
//     converted exactly or not at all. The ledger keeps the decimals of ISO 4217; where a
//     provider's minor units have others, amounts are converted, and where nobody knows
//     them the event goes to quarantine.
//   - Of a total that grows, less takes off the total before. Without it, quarantine.
//   - The movement is the event ID unless configured. It must name one movement, never an
//     order or a cumulative object. Of several paths together, colons are escaped.
//   - Source and rule have an immutable key beside the name. Renaming keeps the key, so
//     nobody is paid twice; the default contra is external: and the key for the same reason.
//
// # Failure modes
//
// A wrong configuration is an error of New or NewSet that names the key
// (sources[1].postings[0].unit) and what is allowed, all problems at once. A verified
// delivery without usable events is an *IdentifyError, answered 400. An event whose
// rules cannot read it is a *schema.MappingError, kept in quarantine. An event of a
// source that is not configured here is schema.ErrUnknownSource: another configuration
// can read it.
package source
