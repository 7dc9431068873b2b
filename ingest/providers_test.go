package ingest

import (
	"bytes"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/ingest/signature"
	"hookledger/schema/provider"
)

// door returns a source of a provider; without a meaning of its own it gets one.
func doorOf(name, of string, secret provider.Secret, change func(*provider.Config)) provider.Config {
	c := provider.Config{Name: name, Provider: of, Account: []string{"account"}}
	if secret != "" {
		c.Secrets = []provider.SecretConfig{{ID: "main", Value: secret}}
	}
	if d, err := provider.Definition(of); err == nil && d.Postings == nil && d.Statuses == nil && d.NonEffect == "" {
		c.Postings = []provider.PostingConfig{{Key: "k", Amount: "amount", Unit: "minor", Currency: provider.Locator{Const: "EUR"}, Direction: provider.Direction{Always: "credit"}}}
	}
	if change != nil {
		change(&c)
	}
	return c
}

// signedMessage is a request as the provider of a source would send it.
func (b *bundle) signedMessage(source string, secret provider.Secret, m signature.Message) *http.Request {
	b.t.Helper()
	src, ok := b.sources.ByName(source)
	if !ok {
		b.t.Fatalf("no source %s", source)
	}
	m.At = time.Now()
	m, err := signature.Sign(src.Signature(), secret, m)
	if err != nil {
		b.t.Fatal(err)
	}
	url := b.url + source
	if m.Query != "" {
		url += "?" + m.Query
	}
	method := m.Method
	if method == "" {
		method = http.MethodPost
	}
	r, err := http.NewRequest(method, url, bytes.NewReader(m.Body))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header = m.Header
	return r
}

const canarySecret = "canary-of-providers-77aa-0033"

var formHeader = http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}

func TestReceive_TakesGETAndForms(t *testing.T) {
	t.Parallel()
	b := setup(t, options{only: []provider.Config{
		doorOf("sber", "sberbank", canarySecret, nil),
		doorOf("robo", "robokassa", canarySecret, nil),
		doorOf("cp", "cloudpayments", canarySecret, nil),
		doorOf("classic", "mollie-classic", "", nil),
		doorOf("prodamus", "prodamus", canarySecret, nil),
	}})
	const query = "mdOrder=a-b&operation=deposited&status=1&amount=100"
	for _, tc := range []struct {
		source, method, query, body string
		answer, id, value           string
	}{
		{"sber", "GET", query, "", "", "a-b:deposited", "mdOrder=a-b&operation=deposited&status=1&amount=100&checksum="},
		{"sber", "POST", "", query, "", "a-b:deposited", query + "&checksum="},
		{"robo", "GET", "OutSum=100.26&InvId=450009", "", "OK450009", "450009", "OutSum=100.26&InvId=450009&SignatureValue="},
		{"robo", "POST", "", "OutSum=100.26&InvId=450010&Shp_a=b", "OK450010", "450010", "OutSum=100.26&InvId=450010&Shp_a=b&SignatureValue="},
		{"cp", "POST", "type=pay", "TransactionId=7&Amount=1.00&Currency=RUB", `{"code":0}`, "pay:7", "TransactionId=7&Amount=1.00&Currency=RUB"},
		{"cp", "GET", "type=refund&TransactionId=8&Amount=1.00&Currency=RUB", "", `{"code":0}`, "refund:8", "type=refund&TransactionId=8"},
		{"prodamus", "POST", "", "order_id=5&sum=1.00&payment_status=success", "", "5", "order_id=5&sum=1.00"},
	} {
		m := signature.Message{Method: strings.TrimPrefix(tc.method, "POST"), Query: tc.query, Body: []byte(tc.body), Header: formHeader}
		if tc.method == "GET" {
			m.Header = nil
		}
		a := b.do(b.signedMessage(tc.source, canarySecret, m))
		if a.code != 200 || a.body != tc.answer {
			t.Errorf("%s %s: got %d %q, want 200 %q", tc.method, tc.source, a.code, a.body, tc.answer)
			continue
		}
		records := b.records()
		last := slices.IndexFunc(records, func(r *kgo.Record) bool {
			return string(r.Key) == tc.id && strings.HasPrefix(string(r.Value), tc.value)
		})
		if last < 0 {
			t.Errorf("%s %s: no record %s that begins with %s", tc.method, tc.source, tc.id, tc.value)
			continue
		}
		ev := decode(t, records[last])
		if ev.ContentType != "application/x-www-form-urlencoded" {
			t.Errorf("%s %s: got content type %s", tc.method, tc.source, ev.ContentType)
		}
	}
	// The same ID at every delivery would make one event of a payment and its refund.
	for range 2 {
		r, err := http.NewRequest(http.MethodPost, b.url+"classic", strings.NewReader("id=tr_1"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = formHeader
		if a := b.do(r); a.code != 200 {
			t.Errorf("mollie classic: got %d", a.code)
		}
	}
	ids := map[string]bool{}
	for _, r := range b.records() {
		if ev := decode(t, r); ev.Source == "classic" {
			ids[ev.ID] = true
			if !ev.BodyUnauthenticated {
				t.Errorf("%s: the record says that its body was authenticated", ev.ID)
			}
		}
		for _, h := range r.Headers {
			if bytes.Contains(h.Value, []byte(canarySecret)) {
				t.Errorf("header %s holds the secret", h.Key)
			}
		}
	}
	if len(ids) != 2 {
		t.Errorf("got %d events of mollie classic, want 2", len(ids))
	}
	r, err := http.NewRequest(http.MethodPut, b.url+"sber", strings.NewReader(""))
	if err != nil {
		t.Fatal(err)
	}
	if a := b.do(r); a.code != 405 || a.header.Get("Allow") != "GET, POST" {
		t.Errorf("PUT: got %d, Allow %q", a.code, a.header.Get("Allow"))
	}
	// Without its type in the address a notification is not guessed to be a payment.
	m := signature.Message{Body: []byte("TransactionId=9&Amount=1.00"), Header: formHeader}
	if a := b.do(b.signedMessage("cp", canarySecret, m)); a.code != 400 {
		t.Errorf("no type: got %d", a.code)
	}
}

func TestReceive_AnswersChallengesAndStoresNothing(t *testing.T) {
	t.Parallel()
	b := setup(t, options{only: []provider.Config{doorOf("bt", "braintree", "integration_private_key", func(c *provider.Config) {
		c.Signature.PublicKey = "integration_public_key"
	})}})
	get := func(query string) answer {
		r, err := http.NewRequest(http.MethodGet, b.url+"bt"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		return b.do(r)
	}
	if a := get("?bt_challenge=20f9f8ed05f77439fe955c977e4c8a53"); a.code != 200 || a.body != "integration_public_key|d9b899556c966b3f06945ec21311865d35df3ce4" {
		t.Errorf("got %d %q", a.code, a.body)
	}
	for _, query := range []string{"", "?bt_challenge=x", "?bt_challenge=20f9f8ed05f77439fe955c977e4c8a53&bt_challenge=20f9f8ed05f77439fe955c977e4c8a53"} {
		if a := get(query); a.code != 400 {
			t.Errorf("%s: got %d %q", query, a.code, a.body)
		}
	}
	if got := len(b.records()); got != 0 {
		t.Errorf("got %d records, want none", got)
	}
	payload := "bt_payload=PG5vdGlmaWNhdGlvbj48dGltZXN0YW1wIHR5cGU9ImRhdGV0aW1lIj4yMDI1LTExLTI5VDEyOjAwOjAwWjwvdGltZXN0YW1wPjxraW5kPnRyYW5zYWN0aW9uX3NldHRsZWQ8L2tpbmQ%2BPHN1YmplY3Q%2BPHRyYW5zYWN0aW9uPjxpZD50MTwvaWQ%2BPC90cmFuc2FjdGlvbj48L3N1YmplY3Q%2BPC9ub3RpZmljYXRpb24%2B"
	if a := b.do(b.signedMessage("bt", "integration_private_key", signature.Message{Header: formHeader, Body: []byte(payload)})); a.code != 200 {
		t.Errorf("got %d %q", a.code, a.body)
	}
	if records := b.records(); len(records) != 1 || decode(t, records[0]).Type != "transaction_settled" {
		t.Errorf("got %d records", len(records))
	}
}

// A header that is the secret is checked and never kept, and whoever reads the record
// learns that nobody vouches for its body.
func TestReceive_KeepsNoStaticToken(t *testing.T) {
	t.Parallel()
	b := setup(t, options{only: []provider.Config{
		doorOf("xendit", "xendit", canarySecret, nil), doorOf("flw", "flutterwave-v3", canarySecret, nil),
	}})
	for source, body := range map[string]string{"xendit": `{"id":"inv_1","status":"PAID"}`, "flw": `{"event":"charge.completed","data":{"id":5}}`} {
		m := signature.Message{Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(body)}
		if a := b.do(b.signedMessage(source, canarySecret, m)); a.code != 200 {
			t.Errorf("%s: got %d %s", source, a.code, a.body)
		}
		if a := b.do(b.signedMessage(source, canarySecret+"x", m)); a.code != 400 {
			t.Errorf("%s with another token: got %d", source, a.code)
		}
		if got := value(t, b.server.metrics.covered.WithLabelValues(source)); got != 0 {
			t.Errorf("%s: the metric says that the body is authenticated", source)
		}
	}
	records := b.records()
	if len(records) != 2 {
		t.Fatalf("got %d records, want 2", len(records))
	}
	for _, r := range records {
		if ev := decode(t, r); !ev.BodyUnauthenticated || ev.KeyID != "main" || len(ev.SignatureHeaders) != 0 {
			t.Errorf("got %+v", ev)
		}
		for _, h := range r.Headers {
			if bytes.Contains(h.Value, []byte(canarySecret)) {
				t.Errorf("header %s holds the secret", h.Key)
			}
		}
	}
	if strings.Contains(b.logs.String(), canarySecret) {
		t.Error("the log holds the secret")
	}
}

func TestReceive_SenderByItsAddress(t *testing.T) {
	t.Parallel()
	only := func() []provider.Config { return []provider.Config{doorOf("yk", "yookassa", "", nil)} }
	const body = `{"event":"payment.succeeded","object":{"id":"1","amount":{"value":"1.00","currency":"RUB"}}}`
	post := func(b *bundle, forwarded ...string) int {
		r := b.request("yk", body)
		r.Header["X-Forwarded-For"] = forwarded
		return b.do(r).code
	}
	direct := setup(t, options{only: only()})
	if got := post(direct, "185.71.76.5"); got != 400 {
		t.Errorf("forged X-Forwarded-For without a proxy: got %d", got)
	}
	proxied := setup(t, options{only: only(), config: func(c *Config) { c.TrustedProxies = []string{"127.0.0.0/8", "10.1.2.3"} }})
	for name, tc := range map[string]struct {
		forwarded []string
		want      int
	}{
		"by the proxy":           {[]string{"185.71.76.5"}, 200},
		"by two proxies":         {[]string{"185.71.76.5, 10.1.2.3"}, 200},
		"in two lines":           {[]string{"185.71.76.5", "10.1.2.3"}, 200},
		"forged further left":    {[]string{"185.71.76.5, 198.51.100.7"}, 400},
		"forged, in two lines":   {[]string{"185.71.76.5", "198.51.100.7"}, 400},
		"through a strange host": {[]string{"185.71.76.5, 198.51.100.7, 10.1.2.3"}, 400},
		"the proxy itself":       {nil, 400},
		"nonsense":               {[]string{"185.71.76.5, x"}, 400},
		"with a port":            {[]string{"185.71.76.5:443"}, 400},
		"mapped":                 {[]string{"::ffff:185.71.76.5"}, 200},
	} {
		if got := post(proxied, tc.forwarded...); got != tc.want {
			t.Errorf("%s: got %d, want %d", name, got, tc.want)
		}
	}
	for _, r := range proxied.records() {
		i := slices.IndexFunc(r.Headers, func(h kgo.RecordHeader) bool { return h.Key == "hl_remote" })
		if i < 0 || netip.MustParseAddr(string(r.Headers[i].Value)) != netip.MustParseAddr("185.71.76.5") {
			t.Errorf("the record does not say who sent it")
		}
	}
	bad := DefaultConfig()
	bad.TrustedProxies = []string{"10.0.0.0/8", "proxy.internal"}
	if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), "ingest.trusted_proxies[1]") {
		t.Errorf("got %v", err)
	}
}

type unreachable struct{}

func (unreachable) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("connection refused")
}

// Whether a signature is right is not known while the key is not: 400 would lose the event.
func TestReceive_KeyOutOfReachIs503(t *testing.T) {
	t.Parallel()
	b := setup(t, options{
		only: []provider.Config{doorOf("pp", "paypal", "", func(c *provider.Config) {
			c.Signature.WebhookID = "4JH86294D6297924G"
		})},
		trust: []signature.Option{signature.WithTransport(unreachable{})},
	})
	r := b.request("pp", `{"id":"WH-1"}`)
	for name, value := range map[string]string{
		"Paypal-Transmission-Id": "1", "Paypal-Transmission-Time": "2026-11-29T12:00:00Z", "Paypal-Auth-Algo": "SHA256withRSA",
		"Paypal-Transmission-Sig": "AAAA", "Paypal-Cert-Url": "https://api.paypal.com/v1/notifications/certs/CERT-1",
	} {
		r.Header.Set(name, value)
	}
	a := b.do(r)
	if p := problemOf(t, a); a.code != 503 || p != "key-unavailable" || a.header.Get("Retry-After") == "" {
		t.Errorf("got %d %s, Retry-After %q", a.code, p, a.header.Get("Retry-After"))
	}
	if got := b.counter("refusals", "pp", "key_unavailable"); got != 1 {
		t.Errorf("counted %v refusals", got)
	}
	r = b.request("pp", `{"id":"WH-1"}`)
	for name, value := range map[string]string{
		"Paypal-Transmission-Id": "1", "Paypal-Transmission-Time": "2026-11-29T12:00:00Z", "Paypal-Auth-Algo": "SHA256withRSA",
		"Paypal-Transmission-Sig": "AAAA", "Paypal-Cert-Url": "https://evil.example/v1/notifications/certs/CERT-1",
	} {
		r.Header.Set(name, value)
	}
	if a := b.do(r); a.code != 400 {
		t.Errorf("another host: got %d", a.code)
	}
}
