// Package ingest receives deliveries: HTTP bytes in, acknowledged record out. It never
// touches Postgres.
//
// # Guarantee
//
// Success is answered after every event of the delivery was acknowledged by all in-sync
// replicas of its partition, and in no other case. The value of a record is the event's
// bytes exactly as received, and its signature held over them. Whatever else is answered,
// sending the delivery again is safe.
//
// # Flow
//
//	POST /webhooks/{source}, or GET where the provider sends so
//	  screen   method, encoding, content type, declared length, does the broker answer
//	  read     the whole raw body, within the limit and the bytes in flight
//	  Verify   the signature                                   → signature.Verified
//	  Identify parse once, strictly: ID, type, time per event  → provider.Item
//	  produce  acks=all, idempotent, with a timer of our own   → acknowledged
//	  succeed  takes the acknowledgement, so success before it does not compile
//
// A provider that asks by a challenge whether the address is ours is answered after
// Verify; no event is in it. Where the signature stands inside the body, Verify parses it,
// strictly and within limits, as nothing else can.
//
// A delivery of several events is answered with success when all are acknowledged. Items
// that cannot be identified make it a 400, as anywhere; the others are stored all the same,
// so that one item does not hold back 249, and come again as duplicates with every repeat.
//
// Producing takes no context of a request: kgo fails all records that share a batch with
// one whose context ended, so that one sender who hangs up could fail others. For the
// same reason no time of the client library is waited for: the ack timeout is ours, and a
// record still on its way when it is over is left to finish, counted as unknown.
//
// # Answers
//
// Answers other than success are application/problem+json. Their type is
// urn:hookledger:problem: and one of these names, which do not change:
//
//	bad-signature           400  missing, malformed, doubled or not matching; one for all
//	stale-timestamp         400  the signature holds and is older than the tolerance
//	future-timestamp        400  the signature holds and is ahead by more than the tolerance
//	bad-body                400  not valid for its content type
//	bad-event               400  no usable event ID or type in it, or in one of its items
//	unread-body             400  it ended before its length, or stalled
//	not-found               404  no such source or path
//	method-not-allowed      405  Allow says which
//	body-too-large          413  the connection is closed after the answer
//	unsupported-encoding    415  compressed
//	unsupported-media-type  415  not what the source sends
//	internal                500  a fault of ours
//	not-acknowledged        503  stored or not, nobody knows
//	overloaded              503  no room in the buffers
//	key-unavailable         503  the provider's key cannot be fetched
//	unavailable             503  the broker does not acknowledge at the moment
//
// All 5xx carry Retry-After. Neither answers nor logs tell which secret was tried or what
// MAC was expected.
//
// # Failure modes
//
//   - Broker away or without enough replicas: 503 at the ack timeout. After five in a row a
//     circuit opens: 503 before the body is read, but for four probes a second; the first
//     acknowledged record closes it. Memory is bounded by max_inflight_bytes and
//     max_buffered_bytes. A record that was certainly not stored is dropped after twice the
//     ack timeout, so one sick partition does not fill the buffers of all.
//   - Clock wrong by more than the tolerance: stale-timestamp or future-timestamp for all.
//   - Secrets: read again when their file changes and by Reload; what cannot be read leaves
//     the old ones in use.
//   - Stop: not ready, then ShutdownDelay, then no new connections, deliveries in hand
//     answered, records flushed. Cut at ShutdownTimeout: those deliveries saw no answer.
package ingest
