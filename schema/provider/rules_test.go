package provider_test

import (
	"strings"
	"testing"

	"hookledger/schema"
	"hookledger/schema/provider"
)

// ruled is the source of the documentation with other rules.
func ruled(t testing.TB, postings ...provider.PostingConfig) *provider.Source {
	t.Helper()
	c := acmeConfig()
	c.Account = []string{"user"}
	for i := range postings {
		if len(postings[i].Type) == 0 {
			postings[i].Type = []string{"paid"}
		}
		if postings[i].Unit == "" {
			postings[i].Unit = "minor"
		}
		if postings[i].Currency.IsZero() {
			postings[i].Currency = provider.Locator{Const: "EUR"}
		}
		if postings[i].Direction.Always == "" {
			postings[i].Direction.Always = "credit"
		}
	}
	c.Postings = postings
	return mustSource(t, c)
}

func TestRules_Money(t *testing.T) {
	t.Parallel()
	total := ruled(t, provider.PostingConfig{Amount: "sum", Less: "before.sum", Movement: "charge", MovementAnd: []string{"sum"}})
	list := ruled(t, provider.PostingConfig{
		Each: "parts", When: []provider.ConditionConfig{{Path: "item.state", Is: []string{"ok"}}, {Path: "test", Not: []string{"true"}}},
		Amount: "item.amount", AmountElse: "item.sum", Currency: provider.Locator{Path: "item.currency"}, Movement: "item.id",
	})
	there := ruled(t,
		provider.PostingConfig{Key: "a", When: []provider.ConditionConfig{{Path: "x", Present: true}}, Amount: "sum"},
		provider.PostingConfig{Key: "b", When: []provider.ConditionConfig{{Path: "x", Absent: true}}, Amount: "sum", Direction: provider.Direction{Always: "debit"}},
	)
	for _, c := range []struct {
		source *provider.Source
		fields string
		want   string
	}{
		{total, `"sum":30,"before":{"sum":10},"charge":"ch_1"`, "+20 EUR u paid ch_1:30"},
		{total, `"sum":30,"before":{"sum":0},"charge":"ch:1\\"`, `+30 EUR u paid ch\:1\\:30`},
		{total, `"sum":30,"before":{"sum":30},"charge":"ch_1"`, "ignored"},
		{total, `"sum":30,"before":{"sum":40},"charge":"ch_1"`, "quarantine bad_amount"},
		{total, `"sum":30,"before":{"sum":null},"charge":"ch_1"`, "quarantine bad_amount"},
		{total, `"sum":30,"charge":"ch_1"`, "quarantine bad_amount"},
		{total, `"sum":30,"before":{"sum":10}`, "quarantine bad_movement"},
		{total, `"sum":"1000000000000001","before":{"sum":0},"charge":"ch_1"`, "quarantine amount_out_of_range"},
		{list, `"parts":[{"id":1,"state":"ok","amount":5,"currency":"eur"},{"id":2,"state":"no","amount":6,"currency":"eur"},{"id":3,"state":"ok","sum":7,"currency":"jpy"}]`, "+5 EUR u paid 1; +7 JPY u paid 3"},
		{list, `"parts":[],"item":{"id":1,"state":"ok","amount":5,"currency":"eur"}`, "ignored"},
		{list, `"parts":{"id":1}`, "ignored"},
		{list, `"other":1`, "ignored"},
		{list, `"test":true,"parts":[{"id":1,"state":"ok","amount":5,"currency":"eur"}]`, "ignored"},
		{list, `"parts":[{"id":1,"state":"ok","amount":5,"currency":"eur"},{"id":2,"state":"ok","currency":"eur"}]`, "quarantine bad_amount"},
		{list, `"parts":[1,"a",null]`, "ignored"},
		{there, `"sum":3,"x":{}`, "+3 EUR u a evt_1"},
		{there, `"sum":3,"x":null`, "-3 EUR u b evt_1"},
		{there, `"sum":3`, "-3 EUR u b evt_1"},
	} {
		m, err := meaningOf(t, c.source, `{"id":"evt_1","type":"paid","user":"u",`+c.fields+`}`)
		if got := describe(m, err); got != c.want {
			t.Errorf("%s: got %s, want %s", c.fields, got, c.want)
		}
	}
}

func TestRules_CurrencyOfTheSource(t *testing.T) {
	t.Parallel()
	c := acmeConfig()
	c.Currency = "chf"
	s := mustSource(t, c)
	for fields, want := range map[string]string{
		`"amount":3`:                    "+3 CHF u payment.succeeded pay_1",
		`"amount":3,"currency":null`:    "+3 CHF u payment.succeeded pay_1",
		`"amount":3,"currency":"EUR"`:   "+3 EUR u payment.succeeded pay_1",
		`"amount":3,"currency":"euros"`: "+3 EUROS u payment.succeeded pay_1",
		`"amount":3,"currency":7`:       "quarantine bad_currency",
	} {
		m, err := meaningOf(t, s, `{"id":"evt_1","type":"payment.succeeded","user_id":"u","payment_id":"pay_1",`+fields+`}`)
		if got := describe(m, err); got != want {
			t.Errorf("%s: got %s, want %s", fields, got, want)
		}
	}
	c.Currency = "€"
	if _, err := provider.New(c); err == nil || !strings.Contains(err.Error(), "currency") {
		t.Errorf("got %v, want a problem with currency", err)
	}
}

func TestRules_OneKeyNeedsConditionsThatExclude(t *testing.T) {
	t.Parallel()
	posting := func(when ...provider.ConditionConfig) provider.PostingConfig {
		return provider.PostingConfig{
			Key: "k", Type: []string{"paid"}, When: when, Account: []string{"user"}, Amount: "sum", Unit: "minor",
			Currency: provider.Locator{Const: "EUR"}, Direction: provider.Direction{Always: "credit"},
		}
	}
	is := func(values ...string) provider.ConditionConfig {
		return provider.ConditionConfig{Path: "x", Is: values}
	}
	for _, tc := range []struct {
		a, b provider.ConditionConfig
		good bool
	}{
		{is("1"), is("2", "3"), true},
		{is("1"), is("2", "1"), false},
		{is("1"), provider.ConditionConfig{Path: "x", Absent: true}, true},
		{provider.ConditionConfig{Path: "x", Present: true}, provider.ConditionConfig{Path: "x", Absent: true}, true},
		{is("1"), provider.ConditionConfig{Path: "y", Is: []string{"2"}}, false},
		{is("1"), provider.ConditionConfig{Path: "x", Not: []string{"2"}}, false},
	} {
		c := acmeConfig()
		c.Postings = []provider.PostingConfig{posting(tc.a), posting(tc.b)}
		if _, err := provider.New(c); (err == nil) != tc.good {
			t.Errorf("%+v and %+v: got %v, want good %v", tc.a, tc.b, err, tc.good)
		}
	}
	c := acmeConfig()
	c.Postings = []provider.PostingConfig{posting(provider.ConditionConfig{Path: "x", Is: []string{"1"}, Present: true})}
	if _, err := provider.New(c); err == nil {
		t.Error("a condition that says two things is accepted")
	}
}

// A second refund or a changed order, whose amount alone the event does not tell, is
// another effect of a movement on record: the ledger puts it into quarantine.
func TestMeaning_TotalsThatGrowNeverPayTwice(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		source        *provider.Source
		header        map[string]string
		first, second string
	}{
		"lemonsqueezy": {
			lemonSqueezySource(t), nil,
			`{"meta":{"event_name":"order_refunded","custom_data":{"account_id":"a"}},"data":{"id":"5","attributes":{"status":"partial_refund","currency":"USD","total":999,"refunded_amount":300}}}`,
			`{"meta":{"event_name":"order_refunded","custom_data":{"account_id":"a"}},"data":{"id":"5","attributes":{"status":"refunded","currency":"USD","total":999,"refunded_amount":999}}}`,
		},
		"shopify": {
			shopifySource(t), map[string]string{"X-Shopify-Topic": "orders/paid", "X-Shopify-Webhook-Id": "w"},
			`{"id":820982911946154508,"financial_status":"paid","total_price":"10.00","currency":"USD","order_id":"a"}`,
			`{"id":820982911946154508,"financial_status":"paid","total_price":"15.00","currency":"USD","order_id":"a"}`,
		},
	} {
		var postings []schema.Posting
		var keys []schema.EffectKey
		for _, body := range []string{c.first, c.second} {
			d := provider.Delivery{Body: []byte(body), Header: map[string][]string{}}
			for k, v := range c.header {
				d.Header.Set(k, v)
			}
			items, err := c.source.Identify(d)
			if err != nil {
				t.Fatal(err)
			}
			m, err := c.source.Map(&schema.Event{Source: "x", ID: items[0].ID, Type: items[0].Type, Body: items[0].Body})
			if err != nil || len(m.Postings) != 1 {
				t.Fatalf("%s: %+v, %v", name, m, err)
			}
			postings = append(postings, m.Postings[0])
			keys = append(keys, m.EffectKeys("x")[0])
		}
		if keys[0] != keys[1] || postings[0].Amount == postings[1].Amount {
			t.Errorf("%s: got %+v, want one movement with two amounts", name, postings)
		}
	}
}
