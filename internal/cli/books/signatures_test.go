package books

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"hookledger/internal/config"
	"hookledger/internal/verify"
	"hookledger/schema"
)

func signed(text, secret string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(text))
	return hex.EncodeToString(mac.Sum(nil))
}

func TestSignatures_AsOfWhenTheyCame(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "secret")
	const secret = "whsec_0123456789abcdef0123"
	if err := os.WriteFile(file, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Parse("c.yaml", fmt.Appendf(nil, `
kafka: { durability: single, replication: 1 }
sources:
  - { name: cards, key: stripe, provider: stripe, account: data.object.metadata.account_id, secrets: [{ id: s, file: %[1]q, not_after: 2026-06-01T00:00:00Z }] }
  - { name: token, provider: xendit, account: data.reference_id, secrets: [{ file: %[1]q }] }
  - { name: unread, provider: generic, signature: { header: X-S, algorithm: hmac-sha256, encoding: hex }, secrets: [{ env: HOOKLEDGER_NOT_SET_ANYWHERE }], account: a, event: { id: id }, postings: [{ key: k, amount: n, unit: minor, currency: c, direction: credit }] }
  - { name: batch, provider: generic, signature: { header: X-S, algorithm: hmac-sha256, encoding: hex }, secrets: [{ file: %[1]q }], account: a, event: { id: id, items: events }, postings: [{ key: k, amount: n, unit: minor, currency: c, direction: credit }] }
`, file), nil)
	if err != nil {
		t.Fatal(err)
	}
	s := newSignatures(cfg)
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	body := `{"id":"evt_1","type":"x","data":{"object":{}}}`
	header := func(by string, when time.Time) []schema.Header {
		text := fmt.Sprintf("%d", when.Unix())
		return []schema.Header{{Key: "stripe-signature", Value: []byte("t=" + text + ",v1=" + signed(text+"."+body, by))}}
	}
	for name, c := range map[string]struct {
		event schema.Event
		want  string // empty: it holds; wrong: it does not
	}{
		"good, long ago":     {schema.Event{Source: "stripe", SignatureHeaders: header(secret, at), ReceivedAt: at}, ""},
		"older than allowed": {schema.Event{Source: "stripe", SignatureHeaders: header(secret, at.Add(-time.Hour)), ReceivedAt: at}, ""},
		"another secret":     {schema.Event{Source: "stripe", SignatureHeaders: header("another", at), ReceivedAt: at}, "wrong"},
		"no signature":       {schema.Event{Source: "stripe", ReceivedAt: at}, "wrong"},
		"after the secret":   {schema.Event{Source: "stripe", SignatureHeaders: header(secret, at.AddDate(1, 0, 0)), ReceivedAt: at.AddDate(1, 0, 0)}, whyExpired},
		"unknown source":     {schema.Event{Source: "cards", ReceivedAt: at}, whyUnknown},
		"static token":       {schema.Event{Source: "token", ReceivedAt: at}, whyStatic},
		"no secret here":     {schema.Event{Source: "unread", ReceivedAt: at}, whySecrets},
		"item of a batch":    {schema.Event{Source: "batch", ReceivedAt: at, SignatureHeaders: []schema.Header{{Key: "x-s", Value: []byte(signed("all", secret))}}}, whyPart},
	} {
		c.event.Body, c.event.ContentType = []byte(body), "application/json"
		err := s.check(&c.event)
		var unchecked *verify.UncheckedError
		got := ""
		if errors.As(err, &unchecked) {
			got = unchecked.Why
		} else if err != nil {
			got = "wrong"
		}
		if got != c.want {
			t.Errorf("%s: got %q (%v), want %q", name, got, err, c.want)
		}
	}
}
