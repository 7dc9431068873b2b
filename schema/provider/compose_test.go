package provider_test

import (
	"testing"
	"time"

	"hookledger/schema"
	"hookledger/schema/provider"
)

// What is composed for `send` says the fact it was composed for, whatever the provider.
func TestCompose_SaysAFactOfEveryProvider(t *testing.T) {
	t.Parallel()
	for _, name := range provider.Names() {
		d, err := provider.Definition(name)
		if err != nil {
			t.Fatal(err)
		}
		if len(d.Postings) == 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := provider.Config{Name: "x", Provider: name, Account: d.Account[:min(1, len(d.Account))]}
			if len(c.Account) == 0 {
				c.Account = []string{"account_id"}
			}
			c.Signature.URL, c.Signature.WebhookID = d.Required["url"], d.Required["webhook_id"]
			c.Signature.PublicKey, c.Signature.ClientID = d.Required["public_key"], d.Required["client_id"]
			currency := "EUR"
			if d.NoCurrency {
				c.Currency = currency
			}
			if fixed := d.Postings[0].Currency.Const; fixed != "" {
				currency = fixed
			}
			if !d.Signature.BodyAuthenticated {
				c.Trust = "body"
			}
			s := mustSource(t, c)
			for _, amount := range []int64{1250, -1250} {
				wantComposed(t, s, amount, currency)
			}
		})
	}
}

// wantComposed composes a fact, reads it as receiver and worker do, and compares.
func wantComposed(t *testing.T, s *provider.Source, amount int64, currency string) {
	t.Helper()
	fact := provider.Fact{
		EventID: "evt_1", Movement: "12345", Account: "acct_7", Amount: amount, Currency: currency,
		OccurredAt: time.Date(2025, 11, 29, 12, 0, 0, 0, time.UTC), Live: true,
	}
	delivery, err := s.Compose(fact)
	if err != nil && amount < 0 {
		return // no rule of the provider debits
	}
	if err != nil {
		t.Fatal(err)
	}
	delivery.ID = "dlv_1"
	items, err := s.Identify(delivery)
	if err != nil || len(items) != 1 {
		t.Fatalf("%s: got %d events and error %v, want one", delivery.Body, len(items), err)
	}
	if !items[0].OccurredAt.IsZero() && !items[0].OccurredAt.Equal(fact.OccurredAt) {
		t.Errorf("occurred at %s, want %s", items[0].OccurredAt, fact.OccurredAt)
	}
	ev := schema.Event{Source: "x", ID: items[0].ID, Type: items[0].Type, ContentType: items[0].ContentType, Body: items[0].Body}
	m, err := s.Map(&ev)
	if err != nil || len(m.Postings) == 0 {
		t.Fatalf("%s: got %+v and error %v, want a posting", delivery.Body, m, err)
	}
	p := m.Postings[0]
	if len(m.Postings) != 1 || p.Account != "acct_7" || p.Amount != amount || p.Currency != currency || p.Movement == "" {
		t.Errorf("%s: got %+v", delivery.Body, m.Postings)
	}
}
