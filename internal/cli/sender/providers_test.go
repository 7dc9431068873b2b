package sender

import (
	"net/netip"
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
