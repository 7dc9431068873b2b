package ledger

import (
	"encoding/json"
	"fmt"
	"strings"

	"hookledger/schema"
)

// quarantineInserts lists the quarantined records, which are in offset order.
func (w *writing) quarantineInserts() []arg {
	list := w.plan.quarantined
	n := len(list)
	offsets, times, sources, ids := int8Column(n), timeColumn(n), textColumn(n, 16), textColumn(n, 32)
	reasons, details := textColumn(n, 24), textColumn(n, 64)
	keys, headers, bodies := byteaColumn(n, 32), jsonbColumn(n, 512), byteaColumn(n, 512)
	for _, it := range list {
		offsets.int8(it.record.Offset)
		times.timeOrEpoch(it.record.Timestamp)
		sources.optionalText(storable(it.event.Source))
		ids.optionalText(storable(it.event.ID))
		reasons.text(storable(it.reason))
		details.text(storable(it.detail))
		keys.bytes(it.record.Key)
		headers.jsonb(encodeHeaders(it.record.Headers))
		bodies.bytes(it.record.Value)
	}
	b := w.batch
	return []arg{textArg(b.Topic), uuidArg(b.TopicID), int4Arg(b.Partition), offsets.arg(), times.arg(), sources.arg(),
		ids.arg(), reasons.arg(), details.arg(), keys.arg(), headers.arg(), bodies.arg()}
}

// conflictInserts lists the conflicts, sorted by event key and body hash; of equal
// bodies the first is kept.
func (w *writing) conflictInserts() []arg {
	list := sortedConflicts(w.plan.conflicts)
	n := len(list)
	keys, sources, ids, types := uuidColumn(n), textColumn(n, 16), textColumn(n, 32), textColumn(n, 32)
	meanings, offsets, received := uuidColumn(n), int8Column(n), timeColumn(n)
	hashes, bodies, headers := byteaColumn(n, 32), byteaColumn(n, 512), jsonbColumn(n, 512)
	for _, c := range list {
		ev := &c.item.event
		keys.uuid(c.item.key)
		sources.text(ev.Source)
		ids.text(ev.ID)
		types.text(ev.Type)
		meanings.uuid(c.meaning)
		offsets.int8(c.item.record.Offset)
		received.time(ev.ReceivedAt)
		hashes.bytes(ev.BodySHA256[:])
		bodies.bytes(ev.Body)
		headers.jsonb(encodeHeaders(c.item.record.Headers))
	}
	b := w.batch
	return []arg{textArg(b.Topic), uuidArg(b.TopicID), int4Arg(b.Partition), keys.arg(), sources.arg(), ids.arg(), types.arg(),
		meanings.arg(), offsets.arg(), received.arg(), hashes.arg(), bodies.arg(), headers.arg()}
}

// storedHeader is a header in the headers column: as text where jsonb can hold it, and
// in base64 where it cannot (NUL, error 22P05, or bytes that are not UTF-8).
type storedHeader struct {
	Key         *string `json:"key,omitempty"`
	KeyBase64   []byte  `json:"key_base64,omitempty"`
	Value       *string `json:"value,omitempty"`
	ValueBase64 []byte  `json:"value_base64,omitempty"`
}

// encodeHeaders writes headers as a JSON array that keeps their order and every byte.
func encodeHeaders(headers []schema.Header) []byte {
	list := make([]storedHeader, len(headers))
	for i, h := range headers {
		s := &list[i]
		if isText(h.Key) {
			s.Key = &h.Key
		} else {
			s.KeyBase64 = []byte(h.Key)
		}
		if value := string(h.Value); isText(value) {
			s.Value = &value
		} else {
			s.ValueBase64 = h.Value
		}
	}
	text, err := json.Marshal(list)
	if err != nil {
		panic(fmt.Sprintf("encode headers: %v", err)) // strings and bytes always encode
	}
	return text
}

// storable is s as a text column can hold it.
func storable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}
