package schema

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// Version is the format of records that this package writes, the value of the
// header hl_version.
const Version = "1"

// MaxEventIDBytes is the longest event ID accepted, in bytes.
const MaxEventIDBytes = 255

// ErrEventID says that a text cannot be an event ID: see CheckEventID.
var ErrEventID = errors.New("event ID must be 1 to 255 bytes of printable ASCII")

// Event is one verified fact, told by one source.
type Event struct {
	// Source is the immutable key of the source (its name, unless configured).
	Source string
	// ID is the provider's identity of the event: opaque, 1–255 printable ASCII.
	ID string
	// Type is the provider's word for what happened. An event without one becomes a
	// record of UnknownType.
	Type string
	// OccurredAt is the provider's time of the fact; zero if it gives none.
	OccurredAt time.Time

	// ReceivedAt is when the delivery's body had been read, by the receiver's clock.
	ReceivedAt time.Time
	// DeliveryID names the HTTP attempt; the events of a batch share it.
	DeliveryID string
	// Scheme is the signature scheme that held, KeyID the ID of the secret.
	Scheme string
	KeyID  string
	// BodyUnauthenticated says that the scheme does not cover the body.
	BodyUnauthenticated bool
	// SignatureHeaders are the HTTP headers needed to verify the body again, at
	// ReceivedAt. Names are lower case. Headers that are a credential are not kept.
	SignatureHeaders []Header
	// Livemode is live or test where the delivery says it beside the event, else empty.
	Livemode string
	// TraceParent is the W3C trace context of the delivery, or empty.
	TraceParent string

	// ContentType is the media type of Body.
	ContentType string
	// Body is the event's bytes exactly as received.
	Body []byte
	// BodySHA256 is the hash of Body.
	BodySHA256 [sha256.Size]byte
}

// EventKey is the identity of an event: the first 128 bits of a SHA-256 over its
// source key and ID. By the birthday bound, 10^12 events collide with a
// probability below 10^-14; a collision would show as a conflict, not as silence.
type EventKey [16]byte

// KeyOf returns the identity of the event id of the source with key source.
// Lengths are part of what is hashed, so ("ab", "c") and ("a", "bc") differ.
func KeyOf(source, id string) EventKey {
	return EventKey(hash128(source, id))
}

// Key returns the event's identity.
func (e *Event) Key() EventKey { return KeyOf(e.Source, e.ID) }

// CheckEventID returns an error that wraps ErrEventID unless id can be an event ID. IDs
// are never trimmed or folded: "evt_1", "EVT_1" and "evt_1 " are three events.
func CheckEventID(id string) error {
	switch {
	case id == "":
		return fmt.Errorf("%w: it is empty", ErrEventID)
	case len(id) > MaxEventIDBytes:
		return fmt.Errorf("%w: it has %d bytes", ErrEventID, len(id))
	}
	for i := range len(id) {
		if id[i] < 0x20 || id[i] > 0x7e {
			return fmt.Errorf("%w: byte %d is not", ErrEventID, i)
		}
	}
	return nil
}

// hash128 returns the first 128 bits of the SHA-256 of parts, each preceded by
// its length as a big-endian uint32.
func hash128(parts ...string) [16]byte {
	var stack [256]byte
	buf := stack[:0]
	for _, p := range parts {
		buf = binary.BigEndian.AppendUint32(buf, uint32(len(p)))
		buf = append(buf, p...)
	}
	sum := sha256.Sum256(buf)
	return [16]byte(sum[:16])
}
