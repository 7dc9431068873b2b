package ingest

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
)

func problemOf(t testing.TB, a answer) string {
	t.Helper()
	if got := a.header.Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("content type: got %q, want application/problem+json (status %d, body %.200s)", got, a.code, a.body)
		return ""
	}
	var p struct {
		Type, Title, Instance string
		Status                int
	}
	if err := json.Unmarshal([]byte(a.body), &p); err != nil || p.Status != a.code || p.Title == "" || !strings.HasPrefix(p.Instance, "urn:hookledger:delivery:") {
		t.Errorf("problem: got %s (%v)", a.body, err)
	}
	return strings.TrimPrefix(p.Type, problemPrefix)
}

func TestReceive_AnswersWhatTheProviderWants(t *testing.T) {
	t.Parallel()
	b := setup(t, options{})
	for name, tc := range map[string]struct {
		request *http.Request
		code    int
		body    string
	}{
		"stripe":         {b.signed("stripe", "", `{"id":"evt_1","type":"payment_intent.succeeded"}`), 200, ""},
		"own answer":     {b.signed("acme", "", event("e1")), 202, "[accepted]"},
		"duplicate":      {b.signed("acme", "", event("e1")), 202, "[accepted]"},
		"standard":       {b.signed("standard", "msg_1", event("ignored")), 200, ""},
		"batch":          {b.signed("batch", "", `{"events":[`+event("b1")+`, `+event("b2")+`]}`), 200, ""},
		"batch of none":  {b.signed("batch", "", `{"events":[]}`), 200, ""},
		"charset":        {with(b.signed("acme", "", event("e2")), "Content-Type", "application/json; charset=UTF-8"), 202, "[accepted]"},
		"no type":        {with(b.signed("acme", "", event("e3")), "Content-Type", ""), 202, "[accepted]"},
		"identity":       {with(b.signed("acme", "", event("e4")), "Content-Encoding", "identity"), 202, "[accepted]"},
		"query ignored":  {withPath(b.signed("acme", "", event("e5")), "/webhooks/acme?x=1"), 202, "[accepted]"},
		"255 byte ID":    {b.signed("acme", "", event(strings.Repeat("x", 255))), 202, "[accepted]"},
		"depth 64":       {b.signed("acme", "", `{"id":"deep64","x":`+strings.Repeat("[", 63)+strings.Repeat("]", 63)+`}`), 202, "[accepted]"},
		"no type at all": {b.signed("acme", "", `{"id":"notype"}`), 202, "[accepted]"},
	} {
		a := b.do(tc.request)
		if a.code != tc.code || a.body != tc.body {
			t.Errorf("%s: got %d %q, want %d %q", name, a.code, a.body, tc.code, tc.body)
		}
	}
	if got := len(b.records()); got != 13 {
		t.Errorf("got %d records, want 13", got)
	}
}

func with(r *http.Request, name, value string) *http.Request {
	if value == "" {
		r.Header.Del(name)
	} else {
		r.Header.Set(name, value)
	}
	return r
}

func withPath(r *http.Request, path string) *http.Request {
	u, err := r.URL.Parse(path)
	if err != nil {
		panic(err)
	}
	r.URL = u
	return r
}

func withMethod(r *http.Request, method string) *http.Request {
	r.Method = method
	return r
}

func doubled(r *http.Request, name string) *http.Request {
	r.Header[name] = append(r.Header[name], r.Header[name][0])
	return r
}

// TestReceive_AnswersEveryOtherRow pins the table of answers: status, problem and the
// reason that is counted.
func TestReceive_AnswersEveryOtherRow(t *testing.T) {
	t.Parallel()
	b := setup(t, options{config: func(c *Config) { c.MaxBodyBytes = 64 << 10 }})
	now := time.Now()
	id := func(literal string) *http.Request {
		return b.signed("acme", "", `{"id":`+literal+`,"type":"payment.succeeded"}`)
	}
	gzipped := func() *http.Request {
		var z bytes.Buffer
		w := gzip.NewWriter(&z)
		_, _ = w.Write([]byte(event("z")))
		_ = w.Close()
		return with(b.signed("acme", "", z.String()), "Content-Encoding", "gzip")
	}
	for _, tc := range []struct {
		name    string
		request *http.Request
		code    int
		problem string
		source  string
		reason  string
	}{
		{"no signature", b.request("acme", event("x")), 400, "bad-signature", "acme", "signature_missing_header"},
		{"empty signature", with(b.request("acme", event("x")), "X-Signature", " "), 400, "bad-signature", "acme", "signature_missing_header"},
		{"wrong signature", with(b.request("acme", event("x")), "X-Signature", strings.Repeat("ab", 32)), 400, "bad-signature", "acme", "signature_no_match"},
		{"truncated signature", with(b.request("acme", event("x")), "X-Signature", strings.Repeat("ab", 31)), 400, "bad-signature", "acme", "signature_malformed"},
		{"doubled signature", doubled(b.signed("acme", "", event("x")), "X-Signature"), 400, "bad-signature", "acme", "signature_duplicate_header"},
		{"doubled stripe signature", doubled(b.signed("stripe", "", event("x")), "Stripe-Signature"), 400, "bad-signature", "stripe", "signature_duplicate_header"},
		{"other body", withBody(b.signed("acme", "", event("x")), event("y")), 400, "bad-signature", "acme", "signature_no_match"},
		{"v0 only", with(b.request("stripe", event("x")), "Stripe-Signature", "t=1,v0=00"), 400, "bad-signature", "stripe", "signature_unknown_version"},
		{"stale", b.signedAt("stripe", "", event("x"), now.Add(-302*time.Second)), 400, "stale-timestamp", "stripe", "signature_stale"},
		{"future", b.signedAt("stripe", "", event("x"), now.Add(303*time.Second)), 400, "future-timestamp", "stripe", "signature_future"},
		{"stale and forged", withBody(b.signedAt("stripe", "", event("x"), now.Add(-time.Hour)), event("y")), 400, "bad-signature", "stripe", "signature_no_match"},
		{"stale standard", b.signedAt("standard", "m", event("x"), now.Add(-302*time.Second)), 400, "stale-timestamp", "standard", "signature_stale"},

		{"empty body", b.signed("acme", "", ""), 400, "bad-body", "acme", "body_malformed"},
		{"broken body", b.signed("acme", "", `{"id":"x",`), 400, "bad-body", "acme", "body_malformed"},
		{"broken and not signed", b.request("acme", `{"id":"x",`), 400, "bad-signature", "acme", "signature_missing_header"},
		{"data behind", b.signed("acme", "", event("x")+"{}"), 400, "bad-body", "acme", "body_malformed"},
		{"duplicate key", b.signed("acme", "", `{"id":"x","amount":1,"amount":2}`), 400, "bad-body", "acme", "body_malformed"},
		{"folded key", b.signed("acme", "", `{"id":"x","amount":1,"Amount":2}`), 400, "bad-body", "acme", "body_malformed"},
		{"folded far away", b.signed("acme", "", `{"id":"x","s":1,"\u017f":2}`), 400, "bad-body", "acme", "body_malformed"},
		{"not UTF-8", b.signed("acme", "", "{\"id\":\"x\",\"n\":\"\xff\"}"), 400, "bad-body", "acme", "body_malformed"},
		{"lone surrogate", b.signed("acme", "", `{"id":"x","n":"\ud800"}`), 400, "bad-body", "acme", "body_malformed"},
		{"depth 65", b.signed("acme", "", `{"id":"x","n":`+strings.Repeat("[", 64)+strings.Repeat("]", 64)+`}`), 400, "bad-body", "acme", "body_malformed"},
		{"too many tokens", b.signed("acme", "", `{"id":"x","n":[`+strings.Repeat("1,", 10_000)+`1]}`), 400, "bad-body", "acme", "body_malformed"},
		{"no list", b.signed("batch", "", event("x")), 400, "bad-body", "batch", "body_malformed"},
		{"batch of texts", b.signed("batch", "", `{"events":["a"]}`), 400, "bad-body", "batch", "body_malformed"},

		{"no ID", b.signed("acme", "", `{"type":"payment.succeeded"}`), 400, "bad-event", "acme", "event_id"},
		{"null ID", id(`null`), 400, "bad-event", "acme", "event_id"},
		{"empty ID", id(`""`), 400, "bad-event", "acme", "event_id"},
		{"number as ID", id(`17`), 400, "bad-event", "acme", "event_id"},
		{"object as ID", id(`{}`), 400, "bad-event", "acme", "event_id"},
		{"256 bytes of ID", id(`"` + strings.Repeat("x", 256) + `"`), 400, "bad-event", "acme", "event_id"},
		{"ID not ASCII", id(`"é"`), 400, "bad-event", "acme", "event_id"},
		{"ID with a line", id(`"a\n{\"level\":\"error\"}"`), 400, "bad-event", "acme", "event_id"},
		{"ID with NUL", id(`"a\u0000"`), 400, "bad-event", "acme", "event_id"},
		{"type too long", b.signed("acme", "", `{"id":"x","type":"`+strings.Repeat("t", 256)+`"}`), 400, "bad-event", "acme", "event_type"},
		{"type with a line", b.signed("acme", "", `{"id":"x","type":"a\nb"}`), 400, "bad-event", "acme", "event_type"},
		{"only bad items", b.signed("batch", "", `{"events":[{"id":8},{"id":7}]}`), 400, "bad-event", "batch", "event_id"},

		{"unknown source", b.request("nobody", event("x")), 404, "not-found", unknownSource, "unknown_source"},
		{"unknown source, GET", withMethod(b.request("nobody", ""), "GET"), 404, "not-found", unknownSource, "unknown_source"},
		{"other path", withPath(b.request("acme", event("x")), "/"), 404, "not-found", unknownSource, "unknown_path"},
		{"trailing slash", withPath(b.signed("acme", "", event("x")), "/webhooks/acme/"), 404, "not-found", unknownSource, "unknown_source"},
		{"deeper path", withPath(b.signed("acme", "", event("x")), "/webhooks/acme/x"), 404, "not-found", unknownSource, "unknown_source"},
		{"metrics", withMethod(withPath(b.request("acme", ""), "/metrics"), "GET"), 404, "not-found", unknownSource, "unknown_path"},
		{"GET", withMethod(b.request("acme", ""), "GET"), 405, "method-not-allowed", "acme", "method"},
		{"PUT", withMethod(b.signed("acme", "", event("x")), "PUT"), 405, "method-not-allowed", "acme", "method"},
		{"odd method", withMethod(b.signed("acme", "", event("x")), "FETCH"), 405, "method-not-allowed", unknownSource, "method"},
		{"too large", b.signed("acme", "", strings.Repeat(" ", 64<<10)+event("x")), 413, "body-too-large", "acme", "body_too_large"},
		{"too large, chunked", chunked(b.signed("acme", "", strings.Repeat(" ", 64<<10)+event("x"))), 413, "body-too-large", "acme", "body_too_large"},
		{"gzip", gzipped(), 415, "unsupported-encoding", "acme", "content_encoding"},
		{"identity, gzip", with(b.signed("acme", "", event("x")), "Content-Encoding", "identity, gzip"), 415, "unsupported-encoding", "acme", "content_encoding"},
		{"form", with(b.signed("acme", "", event("x")), "Content-Type", "application/x-www-form-urlencoded"), 415, "unsupported-media-type", "acme", "content_type"},
		{"other charset", with(b.signed("acme", "", event("x")), "Content-Type", "application/json; charset=latin1"), 415, "unsupported-media-type", "acme", "content_type"},
		{"no media type", with(b.signed("acme", "", event("x")), "Content-Type", "nonsense;;"), 415, "unsupported-media-type", "acme", "content_type"},
	} {
		before := b.counter("refusals", tc.source, tc.reason)
		a := b.do(tc.request)
		if a.code != tc.code {
			t.Errorf("%s: got %d %s, want %d", tc.name, a.code, a.body, tc.code)
			continue
		}
		if got := problemOf(t, a); got != tc.problem {
			t.Errorf("%s: got problem %s, want %s", tc.name, got, tc.problem)
		}
		if got := b.counter("refusals", tc.source, tc.reason) - before; got != 1 {
			t.Errorf("%s: refusals{%s,%s} grew by %v, want 1", tc.name, tc.source, tc.reason, got)
		}
		if allow := a.header.Get("Allow"); (a.code == 405) != (allow == "POST") {
			t.Errorf("%s: got Allow %q with %d", tc.name, allow, a.code)
		}
	}
	if got := b.records(); len(got) != 0 {
		t.Errorf("got %d records of refused deliveries, want none", len(got))
	}
	if used := b.server.budget.used.Load(); used != 0 {
		t.Errorf("got %d bytes in flight after all, want 0", used)
	}
}

// A bad signature and one by an unknown key must look the same to who probes.
func TestReceive_UnknownKeyLooksLikeBadSignature(t *testing.T) {
	t.Parallel()
	b := setup(t, options{})
	strip := func(a answer) string {
		at := strings.Index(a.body, `,"instance"`)
		if at < 0 {
			t.Fatalf("got %s", a.body)
		}
		return a.body[:at]
	}
	missing := b.do(b.request("acme", event("x")))
	wrong := b.do(with(b.request("acme", event("x")), "X-Signature", strings.Repeat("ab", 32)))
	malformed := b.do(with(b.request("acme", event("x")), "X-Signature", "zz"))
	if strip(missing) != strip(wrong) || strip(wrong) != strip(malformed) {
		t.Errorf("got %s, %s and %s, want one answer", missing.body, wrong.body, malformed.body)
	}
}

func withBody(r *http.Request, body string) *http.Request {
	other, err := http.NewRequest(r.Method, r.URL.String(), strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	other.Header = r.Header
	return other
}

func chunked(r *http.Request) *http.Request {
	r.ContentLength = -1
	return r
}
