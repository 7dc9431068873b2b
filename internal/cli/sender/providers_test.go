package sender

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"hookledger/ingest/signature"
	"hookledger/schema"
	"hookledger/schema/provider"
	"hookledger/schema/source"
)

// What is sent for a provider is believed, read and means the money it was sent for. Two
// providers sign with keys that nobody else has.
func TestSend_EveryProviderCanBePlayed(t *testing.T) {
	t.Parallel()
	theirsAlone := map[string]bool{"paypal": true, "wise": true}
	played := 0
	for _, name := range provider.Names() {
		d, err := provider.Definition(name)
		if err != nil {
			t.Fatal(err)
		}
		if len(d.Postings) == 0 || theirsAlone[name] {
			continue
		}
		played++
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, d)
		})
	}
	if played < 20 {
		t.Errorf("%d providers were played", played)
	}
}

func play(t *testing.T, d *source.Definition) {
	c := provider.Config{Name: "played", Provider: d.Name, Account: d.Account}
	c.Signature.URL, c.Signature.PublicKey = d.Required["url"], d.Required["public_key"]
	secret := provider.Secret("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef")
	if !d.Signature.Secretless() {
		c.Secrets = []provider.SecretConfig{{ID: "a", Value: secret}}
	}
	if d.Signature.Scheme == source.SchemeNetworks {
		c.Signature.Networks = []string{"127.0.0.1"}
	}
	if !d.Signature.BodyAuthenticated {
		c.Trust = source.TrustBody
	}
	if d.NoCurrency {
		c.Currency = "EUR"
	}
	s, err := provider.New(c)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Accounts: 3, Currencies: possible(s, Options{}, []string{"EUR", "RUB"}), Seed: 7}
	e, err := newEvent(s, &o, 0)
	if err != nil {
		t.Fatal(err)
	}
	secret, err = secretOf(s, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	at := time.Now()
	m, err := signature.Sign(s.Signature(), secret, signature.Message{
		Method: e.delivery.Method, Query: e.delivery.Query, Header: e.delivery.Header, Body: e.delivery.Body, At: at,
	})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := signature.NewKeyring(s, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	v, err := signature.New(s.Signature(), keys)
	if err != nil {
		t.Fatal(err)
	}
	verified, err := v.Verify(signature.Request{
		Method: m.Method, Query: m.Query, Header: m.Header, Body: m.Body, At: at, Remote: netip.MustParseAddr("127.0.0.1"),
	})
	if err != nil {
		t.Fatalf("%s %s: %v", m.Query, m.Body, err)
	}
	items, err := s.Identify(provider.Delivery{ID: "dlv_1", Method: m.Method, Query: m.Query, Header: m.Header, Body: verified.Body()})
	if err != nil || len(items) != 1 || items[0].ID != e.fact.EventID {
		t.Fatalf("got %+v and error %v, want event %s", items, err, e.fact.EventID)
	}
	meaning, err := s.Map(&schema.Event{Source: s.Key(), ID: items[0].ID, Type: items[0].Type, ContentType: items[0].ContentType, Body: items[0].Body})
	if err != nil || len(meaning.Postings) != 1 {
		t.Fatalf("got %+v and error %v, want one posting", meaning, err)
	}
	if p := meaning.Postings[0]; p.Account != e.fact.Account || p.Amount != e.fact.Amount || p.Currency != e.fact.Currency {
		t.Errorf("got %+v, want %+v", p, e.fact)
	}
}

// What cannot be sent is refused with what to do next, before anything is posted.
func TestSend_SaysWhyItCannot(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(empty, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		provider string
		config   func(*provider.Config)
		wants    []string
	}{
		{"robokassa", nil, []string{"EUR", "--currencies", "sources events played"}},
		{"gocardless", nil, []string{"sources events played"}},
		{"paypal", func(c *provider.Config) { c.Secrets, c.Signature.WebhookID = nil, "w" }, []string{"sources check --source played"}},
		{"stripe", func(c *provider.Config) { c.Secrets = []provider.SecretConfig{{Env: "HOOKLEDGER_TEST_IS_NOT_SET"}} },
			[]string{"HOOKLEDGER_TEST_IS_NOT_SET", "set it"}},
		{"stripe", func(c *provider.Config) { c.Secrets = []provider.SecretConfig{{File: empty}} }, []string{empty, "is empty"}},
	} {
		config := provider.Config{Name: "played", Provider: c.provider, Account: []string{"account"}, Secrets: []provider.SecretConfig{{ID: "a", Value: secret}}}
		if c.config != nil {
			c.config(&config)
		}
		s, err := provider.New(config)
		if err != nil {
			t.Fatal(err)
		}
		var posted atomic.Int64
		r := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { posted.Add(1) }))
		t.Cleanup(r.Close)
		o := options(r.URL)
		o.Currencies = []string{"EUR"}
		_, err = Send(t.Context(), s, o, "")
		if posted.Load() != 0 || err == nil {
			t.Errorf("%s: %d deliveries were posted, %v", c.provider, posted.Load(), err)
			continue
		}
		for _, want := range c.wants {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: want %q in: %v", c.provider, want, err)
			}
		}
	}
}
