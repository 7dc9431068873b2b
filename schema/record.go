package schema

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// Header is a header of a record or of a delivery.
type Header struct {
	Key   string
	Value []byte
}

// Names of record headers: the CloudEvents 1.0 Kafka binding in binary mode, W3C
// trace context, and hookledger's own.
const (
	HeaderSpecVersion = "ce_specversion"
	HeaderID          = "ce_id"
	HeaderSource      = "ce_source"
	HeaderType        = "ce_type"
	HeaderTime        = "ce_time"
	HeaderContentType = "content-type"
	HeaderTraceParent = "traceparent"

	HeaderHLVersion       = "hl_version"
	HeaderHLSource        = "hl_source"
	HeaderHLReceivedAt    = "hl_received_at"
	HeaderHLScheme        = "hl_scheme"
	HeaderHLKeyID         = "hl_key_id"
	HeaderHLBodySHA256    = "hl_body_sha256"
	HeaderHLDeliveryID    = "hl_delivery_id"
	HeaderHLAuthenticated = "hl_body_authenticated"
	HeaderHLLivemode      = "hl_livemode"
)

// UnknownType is the type of an event whose provider gives it none: CloudEvents
// requires one.
const UnknownType = "unknown"

// ErrUnknownVersion says that a record was written in a format this program does
// not know. The record is good; a program that knows the format can read it.
var ErrUnknownVersion = errors.New("unknown record version: deploy a release that knows it")

// DecodeError says that a record is not an event of ours, or not the one it claims.
type DecodeError struct {
	// Reason is a stable word: not_an_event, null_value, bad_header, key_mismatch
	// or body_hash_mismatch.
	Reason string
	Detail string
}

// Error returns reason and detail.
func (e *DecodeError) Error() string { return "decode record: " + e.Reason + ": " + e.Detail }

// RecordKey returns the key of the event's record: the bytes of its ID.
func (e *Event) RecordKey() []byte { return []byte(e.ID) }

// Headers returns the headers of the event's record. Values are UTF-8 text; times
// are RFC 3339 in UTC with nine decimals.
func (e *Event) Headers() []Header {
	hs := make([]Header, 0, 15+len(e.SignatureHeaders))
	e.EachHeader(func(key string, value []byte) { hs = append(hs, Header{key, value}) })
	return hs
}

// EachHeader gives the headers of the event's record one by one, as Headers does.
func (e *Event) EachHeader(add func(key string, value []byte)) {
	all := make([]byte, 0, 512) // room for all values
	value := func() []byte { v := all[:len(all):len(all)]; all = all[len(all):]; return v }
	text := func(key, v string) {
		all = append(all, v...)
		add(key, value())
	}
	instant := func(key string, t time.Time) {
		all = t.UTC().AppendFormat(all, timeLayout)
		add(key, value())
	}
	text(HeaderSpecVersion, "1.0")
	text(HeaderID, e.ID)
	text(HeaderSource, "/webhooks/"+e.Source)
	text(HeaderType, cmp.Or(e.Type, UnknownType))
	if !e.OccurredAt.IsZero() {
		instant(HeaderTime, e.OccurredAt)
	}
	text(HeaderContentType, e.ContentType)
	text(HeaderHLVersion, Version)
	text(HeaderHLSource, e.Source)
	instant(HeaderHLReceivedAt, e.ReceivedAt)
	text(HeaderHLScheme, e.Scheme)
	text(HeaderHLKeyID, e.KeyID)
	all = hex.AppendEncode(all, e.BodySHA256[:])
	add(HeaderHLBodySHA256, value())
	text(HeaderHLDeliveryID, e.DeliveryID)
	if e.BodyUnauthenticated {
		text(HeaderHLAuthenticated, "false")
	}
	if e.Livemode != "" {
		text(HeaderHLLivemode, e.Livemode)
	}
	if e.TraceParent != "" {
		text(HeaderTraceParent, e.TraceParent)
	}
	for _, h := range e.SignatureHeaders {
		add(h.Key, h.Value)
	}
}

// DecodeRecord reads the event of a record. It checks that the record is complete,
// that its key is the event's ID and that its value matches its hash, and it parses
// nothing of the value. It fails with a *DecodeError, or with an error that wraps
// ErrUnknownVersion. What could be read is in the event even when it fails.
func DecodeRecord(key, value []byte, headers []Header) (Event, error) {
	e := Event{Body: value, BodySHA256: sha256.Sum256(value)}
	var version, sum string
	var timeErr error
	for _, h := range headers {
		v := string(h.Value)
		switch h.Key {
		case HeaderHLVersion:
			version = v
		case HeaderID:
			e.ID = v
		case HeaderType:
			e.Type = v
		case HeaderTime:
			e.OccurredAt, timeErr = parseTime(h, timeErr)
		case HeaderContentType:
			e.ContentType = v
		case HeaderTraceParent:
			e.TraceParent = v
		case HeaderHLSource:
			e.Source = v
		case HeaderHLReceivedAt:
			e.ReceivedAt, timeErr = parseTime(h, timeErr)
		case HeaderHLScheme:
			e.Scheme = v
		case HeaderHLKeyID:
			e.KeyID = v
		case HeaderHLBodySHA256:
			sum = v
		case HeaderHLDeliveryID:
			e.DeliveryID = v
		case HeaderHLAuthenticated:
			e.BodyUnauthenticated = v == "false"
		case HeaderHLLivemode:
			e.Livemode = v
		case HeaderSpecVersion, HeaderSource:
		default:
			e.SignatureHeaders = append(e.SignatureHeaders, h)
		}
	}
	switch {
	case version == "":
		return e, &DecodeError{"not_an_event", "header " + HeaderHLVersion + " is missing"}
	case version != Version:
		return e, fmt.Errorf("record of version %.16q: %w", version, ErrUnknownVersion)
	case value == nil:
		return e, &DecodeError{"null_value", "the record is a tombstone"}
	case e.Source == "" || e.ReceivedAt.IsZero() || timeErr != nil:
		return e, &DecodeError{"bad_header", fmt.Sprintf("%s or %s is missing or unreadable: %v", HeaderHLSource, HeaderHLReceivedAt, timeErr)}
	case CheckEventID(e.ID) != nil:
		return e, &DecodeError{"bad_header", HeaderID + ": " + CheckEventID(e.ID).Error()}
	case string(key) != e.ID:
		return e, &DecodeError{"key_mismatch", "the record's key is not the event's ID"}
	case sum != hex.EncodeToString(e.BodySHA256[:]):
		return e, &DecodeError{"body_hash_mismatch", "the value does not match " + HeaderHLBodySHA256}
	}
	return e, nil
}

// timeLayout is RFC 3339 with all nine decimals, so that texts sort as times do.
const timeLayout = "2006-01-02T15:04:05.000000000Z07:00"

func formatTime(t time.Time) string { return t.UTC().Format(timeLayout) }

// parseTime reads a time header and keeps the first error.
func parseTime(h Header, first error) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, string(h.Value))
	if err != nil {
		if first == nil {
			first = fmt.Errorf("header %s is not an RFC 3339 time", h.Key)
		}
		return time.Time{}, first
	}
	return t.UTC(), first
}
