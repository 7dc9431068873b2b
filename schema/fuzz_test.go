package schema

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// FuzzParsePath checks that a path that is accepted leads somewhere: each step written
// with its escapes is the same path again, and a text built from the steps is found.
func FuzzParsePath(f *testing.F) {
	for _, s := range []string{"data.object.id", "items[0].price", `d\.e`, `\[`, `a\\b`, "a[1][2]", "a..b", "[0]", "a[", "1"} {
		f.Add(s)
	}
	escape := strings.NewReplacer(`\`, `\\`, ".", `\.`, "[", `\[`)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePath(text)
		if err != nil {
			return
		}
		steps := p.Steps()
		if len(steps) == 0 || slices.Contains(steps, "") {
			t.Fatalf("path %q: got steps %q, want none empty", text, steps)
		}
		var again []string
		for _, s := range steps {
			again = append(again, escape.Replace(s))
		}
		q, err := ParsePath(strings.Join(again, "."))
		if err != nil || !slices.Equal(q.Steps(), steps) {
			t.Fatalf("path %q: got %q %v when its steps are written again, want %q", text, q.Steps(), err, steps)
		}
	})
}

// FuzzDecodeRecord checks that whatever stands in a topic is an event that can be
// written again as the same, or an error of a kind that consumers know.
func FuzzDecodeRecord(f *testing.F) {
	sum := sha256.Sum256([]byte(`{"id":"evt_1"}`))
	e := Event{
		Source: "acme", ID: "evt_1", Type: "payment.succeeded", OccurredAt: time.Unix(1795953600, 5), ReceivedAt: time.Unix(1795953601, 0),
		Scheme: "hmac", KeyID: "k", ContentType: "application/json", Body: []byte(`{"id":"evt_1"}`), BodySHA256: sum,
		SignatureHeaders: []Header{{"x-signature", []byte("00")}},
	}
	for _, version := range []string{Version, "99", ""} {
		var lines []string
		for _, h := range e.Headers() {
			if h.Key == HeaderHLVersion {
				h.Value = []byte(version)
			}
			lines = append(lines, h.Key+"="+string(h.Value))
		}
		f.Add("evt_1", e.Body, strings.Join(lines, "\n"), true)
	}
	f.Add("", []byte(nil), "hl_version=1\nhl_received_at=2026-13-01T00:00:00Z\nce_time=x", false)
	f.Fuzz(func(t *testing.T, key string, value []byte, headers string, rehash bool) {
		var hs []Header
		for line := range strings.SplitSeq(headers, "\n") {
			k, v, _ := strings.Cut(line, "=")
			hs = append(hs, Header{k, []byte(v)})
		}
		if rehash { // else nearly nothing gets beyond the hash
			sum := sha256.Sum256(value)
			hs = append(hs, Header{HeaderHLBodySHA256, []byte(hex.EncodeToString(sum[:]))})
		}
		got, err := DecodeRecord([]byte(key), value, hs)
		if err != nil {
			var bad *DecodeError
			if !errors.As(err, &bad) && !errors.Is(err, ErrUnknownVersion) {
				t.Fatalf("got %v, want a *DecodeError or ErrUnknownVersion", err)
			}
			return
		}
		again, err := DecodeRecord(got.RecordKey(), got.Body, got.Headers())
		if err != nil {
			t.Fatalf("%+v cannot be read again: %v", got, err)
		}
		if again.Key() != got.Key() || again.BodySHA256 != got.BodySHA256 || !again.OccurredAt.Equal(got.OccurredAt) || !again.ReceivedAt.Equal(got.ReceivedAt) {
			t.Fatalf("read again: got %+v, want %+v", again, got)
		}
	})
}
