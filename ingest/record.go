package ingest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/ingest/signature"
	"hookledger/schema"
	"hookledger/schema/provider"
)

// delivery is one HTTP attempt, filled stage by stage.
type delivery struct {
	id string
	// begun is when its headers had been read.
	begun      time.Time
	source     *provider.Source
	receivedAt time.Time
	bytes      int
}

func newDeliveryID() string {
	var b [16]byte
	// crypto/rand.Read never fails (Go 1.24 and later).
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// newRecord returns the record of one event of a verified delivery.
func newRecord(d *delivery, v signature.Verified, item provider.Item, trace string) *kgo.Record {
	ev := schema.Event{
		Source: d.source.Key(), ID: item.ID, Type: item.Type, OccurredAt: item.OccurredAt,
		ReceivedAt: d.receivedAt, DeliveryID: d.id,
		Scheme: v.Scheme(), KeyID: v.KeyID(), BodyUnauthenticated: !v.BodyAuthenticated(),
		SignatureHeaders: v.Headers(), Livemode: item.Livemode, TraceParent: trace,
		ContentType: item.ContentType, Body: item.Body, BodySHA256: sha256.Sum256(item.Body),
	}
	r := &kgo.Record{Key: ev.RecordKey(), Value: item.Body, Timestamp: d.receivedAt, Headers: make([]kgo.RecordHeader, 0, 16)}
	ev.EachHeader(func(key string, value []byte) {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: key, Value: value})
	})
	return r
}

// traceParent returns the W3C trace context of a request, empty if it is not valid.
// Source: Trace Context, W3C recommendation of 2021-11-23, section 3.2.
func traceParent(h http.Header) string {
	values := h["Traceparent"]
	if len(values) != 1 {
		return ""
	}
	parts := strings.Split(values[0], "-")
	// Later versions may append parts to the first four.
	if len(parts) < 4 || len(values[0]) > 128 || parts[0] == "ff" || parts[0] == "00" && len(parts) != 4 {
		return ""
	}
	for i, size := range []int{2, 32, 16, 2} {
		if len(parts[i]) != size || !isLowerHex(parts[i]) {
			return ""
		}
	}
	for _, rest := range parts[4:] {
		if !isLowerHex(rest) {
			return ""
		}
	}
	if strings.Trim(parts[1], "0") == "" || strings.Trim(parts[2], "0") == "" {
		return ""
	}
	return values[0]
}

func isLowerHex(s string) bool {
	for i := range len(s) {
		if (s[i] < '0' || s[i] > '9') && (s[i] < 'a' || s[i] > 'f') {
			return false
		}
	}
	return true
}
