package provider_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"hookledger/schema"
	"hookledger/schema/provider"
)

func mustSource(t testing.TB, c provider.Config) *provider.Source {
	t.Helper()
	s, err := provider.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func stripeConfig() provider.Config {
	return provider.Config{Name: "stripe", Provider: "stripe", Account: []string{"data.object.metadata.account_id", "data.object.customer"}}
}

// acmeConfig is the source of the documentation: any provider, no code.
func acmeConfig() provider.Config {
	return provider.Config{
		Name: "acme", Provider: "generic",
		Signature: provider.SignatureConfig{Header: "X-Signature"},
		Event:     provider.EventConfig{ID: provider.Locator{Path: "id"}, Type: provider.Locator{Path: "type"}, Time: provider.Locator{Path: "created_at"}},
		Postings: []provider.PostingConfig{{
			Type: []string{"payment.succeeded"}, Account: []string{"user_id", "user.id"}, Amount: "amount", Unit: "minor",
			Currency: provider.Locator{Path: "currency"}, Direction: provider.Direction{Always: "credit"}, Movement: "payment_id",
		}},
	}
}

// meaningOf reads a body as receiver and worker do.
func meaningOf(t testing.TB, s *provider.Source, body string) (schema.Meaning, error) {
	t.Helper()
	items, err := s.Identify(provider.Delivery{Header: http.Header{"Webhook-Id": {"msg_1"}}, Body: []byte(body)})
	if err != nil {
		return schema.Meaning{}, err
	}
	ev := schema.Event{Source: s.Key(), ID: items[0].ID, Type: items[0].Type, OccurredAt: items[0].OccurredAt, ContentType: items[0].ContentType, Body: items[0].Body}
	return s.Map(&ev)
}

func reasonOf(err error) string {
	var m *schema.MappingError
	if errors.As(err, &m) {
		return m.Reason
	}
	if err != nil {
		return "not a MappingError: " + err.Error()
	}
	return ""
}

func TestStripe_PaymentIntentSucceededCreditsWhatWasReceived(t *testing.T) {
	t.Parallel()
	intent := func(object string) string {
		return `{"id":"evt_1","object":"event","created":1764417590,"livemode":false,"type":"payment_intent.succeeded","data":{"object":` + object + `}}`
	}
	s := mustSource(t, stripeConfig())
	m, err := meaningOf(t, s, intent(`{"id":"pi_1","amount":2500,"amount_received":2000,"currency":"usd","metadata":{"account_id":"u1"}}`))
	want := schema.Posting{Account: "u1", Contra: "external:stripe", Amount: 2000, Currency: "USD", Rule: "payment_intent.succeeded", Movement: "pi_1"}
	if err != nil || len(m.Postings) != 1 || m.Postings[0] != want || m.Status != nil {
		t.Errorf("got %+v, %v, want %+v", m, err, want)
	}
	for body, reason := range map[string]string{
		intent(`{"id":"pi_1","amount_received":2000,"currency":"jpy","metadata":{},"customer":"cus_1"}`):                             "",
		intent(`{"id":"pi_1","amount_received":0,"currency":"usd","metadata":{"account_id":"u1"}}`):                                  "",
		intent(`{"id":"pi_1","amount_received":2000,"currency":"usd","metadata":{}}`):                                                schema.ReasonMissingAccount,
		intent(`{"id":"pi_1","amount_received":2000,"currency":"usd","metadata":{"account_id":null}}`):                               schema.ReasonMissingAccount,
		intent(`{"id":"pi_1","amount_received":2000,"currency":"usd","metadata":{"account_id":{}}}`):                                 schema.ReasonBadAccount,
		intent(`{"id":"pi_1","amount_received":2000,"currency":"usd","metadata":{"account_id":1.5}}`):                                schema.ReasonBadAccount,
		intent(`{"id":"pi_1","amount_received":2000,"currency":"usd","metadata":{"account_id":"` + strings.Repeat("x", 256) + `"}}`): schema.ReasonBadAccount,
		intent(`{"id":"pi_1","currency":"usd","metadata":{"account_id":"u1"}}`):                                                      schema.ReasonBadAmount,
		intent(`{"id":"pi_1","amount_received":null,"currency":"usd","metadata":{"account_id":"u1"}}`):                               schema.ReasonBadAmount,
		intent(`{"id":"pi_1","amount_received":true,"currency":"usd","metadata":{"account_id":"u1"}}`):                               schema.ReasonBadAmount,
		intent(`{"id":"pi_1","amount_received":20.5,"currency":"usd","metadata":{"account_id":"u1"}}`):                               schema.ReasonBadAmount,
		intent(`{"id":"pi_1","amount_received":-1,"currency":"usd","metadata":{"account_id":"u1"}}`):                                 schema.ReasonBadAmount,
		intent(`{"id":"pi_1","amount_received":9223372036854775808,"currency":"usd","metadata":{"account_id":"u1"}}`):                schema.ReasonAmountRange,
		intent(`{"id":"pi_1","amount_received":1,"currency":"us","metadata":{"account_id":"u1"}}`):                                   schema.ReasonBadCurrency,
		intent(`{"id":"pi_1","amount_received":1,"metadata":{"account_id":"u1"}}`):                                                   schema.ReasonBadCurrency,
		intent(`{"id":7.5,"amount_received":1,"currency":"usd","metadata":{"account_id":"u1"}}`):                                     schema.ReasonBadMovement,
		intent(`{"amount_received":1,"currency":"usd","metadata":{"account_id":"u1"}}`):                                              schema.ReasonBadMovement,
		`{"id":"evt_2","type":"charge.updated","data":{"object":{"amount_refunded":5}}}`:                                             "",
		`{"id":"evt_3","object":"v2.core.event","type":"v1.billing.meter.error_report_triggered","created":"2025-11-29T12:00:00Z"}`:  "",
	} {
		if _, err := meaningOf(t, s, body); reasonOf(err) != reason {
			t.Errorf("%s:\ngot %v, want %q", body, err, reason)
		}
	}
}

func TestStripe_LivemodeDecidesWhatCounts(t *testing.T) {
	t.Parallel()
	body := func(live string) string {
		return `{"id":"evt_1","livemode":` + live + `,"type":"payment_intent.succeeded","data":{"object":{"id":"pi_1","amount_received":1,"currency":"usd","customer":"c"}}}`
	}
	for mode, want := range map[string][2]int{"": {1, 1}, "any": {1, 1}, "live": {1, 0}, "test": {0, 1}} {
		c := stripeConfig()
		c.Livemode = mode
		s := mustSource(t, c)
		for i, live := range []string{"true", "false"} {
			m, err := meaningOf(t, s, body(live))
			if err != nil || len(m.Postings) != want[i] {
				t.Errorf("livemode %q, event %s: got %d postings, %v, want %d", mode, live, len(m.Postings), err, want[i])
			}
		}
		if _, err := meaningOf(t, s, body(`"yes"`)); (err != nil) != (mode == "live" || mode == "test") {
			t.Errorf("livemode %q, event that does not say: got %v", mode, err)
		}
	}
}

func TestGeneric_AmountsAreExact(t *testing.T) {
	t.Parallel()
	minor, major := acmeConfig(), acmeConfig()
	major.Postings[0].Unit = "major"
	for _, tc := range []struct {
		config   provider.Config
		amount   string
		currency string
		want     int64
		reason   string
	}{
		{minor, `100`, "EUR", 100, ""}, {minor, `"100"`, "EUR", 100, ""}, {minor, `1e2`, "EUR", 100, ""}, {minor, `100.0`, "EUR", 100, ""},
		{minor, `9007199254740993`, "EUR", 0, schema.ReasonAmountRange}, {minor, `999999999999999`, "EUR", 999999999999999, ""},
		{minor, `0.1`, "EUR", 0, schema.ReasonBadAmount}, {minor, `"1,000"`, "EUR", 0, schema.ReasonBadAmount}, {minor, `" 1"`, "EUR", 0, schema.ReasonBadAmount},
		{minor, `"+1"`, "EUR", 0, schema.ReasonBadAmount}, {minor, `""`, "EUR", 0, schema.ReasonBadAmount}, {minor, `[1]`, "EUR", 0, schema.ReasonBadAmount},
		{minor, `"NaN"`, "EUR", 0, schema.ReasonBadAmount}, {minor, `"1"`, "usdt", 1, ""},
		{major, `10.10`, "EUR", 1010, ""}, {major, `"10.1"`, "eur", 1010, ""}, {major, `0.29`, "EUR", 29, ""}, {major, `1500`, "JPY", 1500, ""},
		{major, `1500.5`, "JPY", 0, schema.ReasonBadAmount}, {major, `1.234`, "KWD", 1234, ""}, {major, `1.2345`, "KWD", 0, schema.ReasonBadAmount},
		{major, `1.005`, "EUR", 0, schema.ReasonBadAmount}, {major, `1`, "USDT", 0, schema.ReasonBadCurrency}, {major, `-0.00`, "EUR", 0, ""},
		{major, `-1`, "EUR", 0, schema.ReasonBadAmount},
	} {
		body := fmt.Sprintf(`{"id":"e","type":"payment.succeeded","payment_id":"p","user_id":"u","amount":%s,"currency":%q}`, tc.amount, tc.currency)
		m, err := meaningOf(t, mustSource(t, tc.config), body)
		got := int64(0)
		if len(m.Postings) == 1 {
			got = m.Postings[0].Amount
		}
		if reasonOf(err) != tc.reason || got != tc.want {
			t.Errorf("%s %s (%s): got %d, %v, want %d, %q", tc.amount, tc.currency, tc.config.Postings[0].Unit, got, err, tc.want, tc.reason)
		}
	}
}

func TestGeneric_DirectionsAccountsAndMovements(t *testing.T) {
	t.Parallel()
	with := func(change func(*provider.PostingConfig)) provider.Config {
		c := acmeConfig()
		c.Postings[0].Account = []string{"user_id", "user.id"}
		change(&c.Postings[0])
		return c
	}
	plain := with(func(*provider.PostingConfig) {})
	debit := with(func(p *provider.PostingConfig) { p.Direction.Always = "debit" })
	signed := with(func(p *provider.PostingConfig) { p.Direction.Always = "signed" })
	field := with(func(p *provider.PostingConfig) {
		p.Direction = provider.Direction{Path: "kind", Credit: []string{"in", "1"}, Debit: []string{"out"}}
	})
	byID := with(func(p *provider.PostingConfig) {
		p.Movement, p.Key, p.Contra = "", "pay", "house:fees"
		p.Currency = provider.Locator{Const: "eur"}
	})
	when := with(func(p *provider.PostingConfig) {
		p.When = []provider.ConditionConfig{{Path: "paid", Is: []string{"true"}}}
	})
	body := func(more string) string {
		return `{"id":"e1","type":"payment.succeeded","currency":"EUR",` + more + `}`
	}
	for _, tc := range []struct {
		config provider.Config
		body   string
		want   string
	}{
		{plain, body(`"amount":5,"user_id":"u1","payment_id":"p1"`), "u1 external:acme 5 EUR payment.succeeded p1"},
		{plain, body(`"amount":5,"user_id":17,"payment_id":90071992547409931`), "17 external:acme 5 EUR payment.succeeded 90071992547409931"},
		{plain, body(`"amount":5,"user_id":"","user":{"id":"u2"},"payment_id":"p1"`), "u2 external:acme 5 EUR payment.succeeded p1"},
		{plain, body(`"amount":5,"user_id":null,"user":{"id":"u2"},"payment_id":"p1"`), "u2 external:acme 5 EUR payment.succeeded p1"},
		{plain, body(`"amount":5,"user_id":[],"user":{"id":"u2"},"payment_id":"p1"`), schema.ReasonBadAccount},
		{plain, body(`"amount":5,"user_id":"a\u0000","payment_id":"p1"`), schema.ReasonBadAccount},
		{plain, body(`"amount":5,"user_id":1e3,"payment_id":"p1"`), schema.ReasonBadAccount},
		{plain, body(`"amount":5,"user_id":-3,"payment_id":"p1"`), schema.ReasonBadAccount},
		{plain, body(`"amount":5,"user_id":"u1"`), schema.ReasonBadMovement},
		{plain, body(`"amount":5,"user_id":"u1","payment_id":""`), schema.ReasonBadMovement},
		{plain, body(`"amount":0`), ""},
		{debit, body(`"amount":5,"user_id":"u1","payment_id":"p1"`), "u1 external:acme -5 EUR payment.succeeded p1"},
		{debit, body(`"amount":-5,"user_id":"u1","payment_id":"p1"`), schema.ReasonBadAmount},
		{signed, body(`"amount":-5,"user_id":"u1","payment_id":"p1"`), "u1 external:acme -5 EUR payment.succeeded p1"},
		{field, body(`"amount":5,"kind":"in","user_id":"u1","payment_id":"p1"`), "u1 external:acme 5 EUR payment.succeeded p1"},
		{field, body(`"amount":5,"kind":1,"user_id":"u1","payment_id":"p1"`), "u1 external:acme 5 EUR payment.succeeded p1"},
		{field, body(`"amount":5,"kind":"out","user_id":"u1","payment_id":"p1"`), "u1 external:acme -5 EUR payment.succeeded p1"},
		{field, body(`"amount":5,"kind":"In","user_id":"u1","payment_id":"p1"`), schema.ReasonBadDirection},
		{field, body(`"amount":5,"user_id":"u1","payment_id":"p1"`), schema.ReasonBadDirection},
		{field, body(`"amount":-5,"kind":"out","user_id":"u1","payment_id":"p1"`), schema.ReasonBadAmount},
		{byID, body(`"amount":5,"user_id":"u1"`), "u1 house:fees 5 EUR pay e1"},
		{when, body(`"amount":5,"paid":true,"user_id":"u1","payment_id":"p1"`), "u1 external:acme 5 EUR payment.succeeded p1"},
		{when, body(`"amount":5,"paid":false,"user_id":"u1","payment_id":"p1"`), ""},
		{when, body(`"amount":5,"user_id":"u1","payment_id":"p1"`), ""},
	} {
		m, err := meaningOf(t, mustSource(t, tc.config), tc.body)
		got := reasonOf(err)
		for _, p := range m.Postings {
			got = fmt.Sprintf("%s %s %d %s %s %s", p.Account, p.Contra, p.Amount, p.Currency, p.Rule, p.Movement)
		}
		if got != tc.want {
			t.Errorf("%s:\ngot  %s (%v)\nwant %s", tc.body, got, err, tc.want)
		}
	}
}

func TestGeneric_SeveralPostingsAndStatus(t *testing.T) {
	t.Parallel()
	c := acmeConfig()
	fee := c.Postings[0]
	fee.Key, fee.Amount, fee.Direction.Always = "fee", "fee", "debit"
	c.Postings = append(c.Postings, fee)
	c.Statuses = []provider.StatusConfig{{
		Type: []string{"payment.updated"}, Object: "payment_id", Status: provider.Locator{Path: "status"},
		Ranks: map[string]int{"pending": 1, "paid": 2}, LatestWins: true,
	}}
	s := mustSource(t, c)
	m, err := meaningOf(t, s, `{"id":"e1","type":"payment.succeeded","payment_id":"p","user_id":"u","amount":100,"fee":3,"currency":"EUR"}`)
	if err != nil || len(m.Postings) != 2 || m.Postings[0].Amount != 100 || m.Postings[1].Amount != -3 || m.Postings[1].Rule != "fee" {
		t.Errorf("got %+v, %v, want the payment and its fee", m, err)
	}
	m, err = meaningOf(t, s, `{"id":"e2","type":"payment.succeeded","payment_id":"p","user_id":"u","amount":100,"fee":0,"currency":"EUR"}`)
	if err != nil || len(m.Postings) != 1 {
		t.Errorf("got %+v, %v, want the payment alone", m, err)
	}
	m, err = meaningOf(t, s, `{"id":"e3","type":"payment.updated","payment_id":"p","status":"paid","created_at":"2026-11-29T12:00:00Z"}`)
	if err != nil || len(m.Postings) != 0 || !m.LatestWins || m.Status == nil || m.Status.Object != "p" || m.Status.Status != "paid" || m.Status.Rank != 2 ||
		!m.Status.OccurredAt.Equal(time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)) {
		t.Errorf("got %+v (%+v), %v", m, m.Status, err)
	}
	if _, err = meaningOf(t, s, `{"id":"e4","type":"payment.updated","payment_id":"p"}`); reasonOf(err) != schema.ReasonBadStatus {
		t.Errorf("got %v, want %s", err, schema.ReasonBadStatus)
	}
}

func TestIdentify_DerivesIDsWithoutAmbiguity(t *testing.T) {
	t.Parallel()
	c := acmeConfig()
	c.Event.ID = provider.Locator{Derive: []string{"a", "b"}}
	s := mustSource(t, c)
	id := func(body string) string {
		t.Helper()
		items, err := s.Identify(provider.Delivery{Body: []byte(body)})
		if err != nil {
			t.Fatal(err)
		}
		return items[0].ID
	}
	one := id(`{"a":"ab","b":"c","n":1}`)
	// Computed with: printf '\x00\x00\x00\x02ab\x00\x00\x00\x01c' | sha256sum
	if want := "f2939f903016e5bb29b1e4a61cdbd376220ca03a24180b39995f2d50f2e0a647"; one != want {
		t.Errorf("got %q, want %q: IDs of events are for ever", one, want)
	}
	if other := id(`{"a":"a","b":"bc"}`); other == one {
		t.Error(`("ab", "c") and ("a", "bc") are one event`)
	}
	if again := id(`{"b":"c","a":"ab"}`); again != one {
		t.Error("the order of keys changes the ID")
	}
	for _, body := range []string{`{"a":"x"}`, `{"a":"x","b":null}`, `{"a":"x","b":{}}`} {
		var e *provider.IdentifyError
		if _, err := s.Identify(provider.Delivery{Body: []byte(body)}); !errors.As(err, &e) || e.Reason != "event_id" {
			t.Errorf("%s: got %v, want an error of the ID", body, err)
		}
	}
}

func TestIdentify_ReadsTimesOrLeavesThem(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ format, time, want string }{
		{"", `"2026-11-29T13:00:00.5+01:00"`, "2026-11-29T12:00:00.5Z"},
		{"", `1764417590`, "2025-11-29T11:59:50Z"},
		{"", `1764417590.25`, "2025-11-29T11:59:50.25Z"},
		{"unix", `"1764417590"`, "2025-11-29T11:59:50Z"},
		{"unix_ms", `1764417590001`, "2025-11-29T11:59:50.001Z"},
		{"rfc3339", `1764417590`, ""},
		{"", `"yesterday"`, ""}, {"", `null`, ""}, {"", `true`, ""}, {"", `{}`, ""}, {"", `-5`, ""}, {"", `1e30`, ""},
	} {
		c := acmeConfig()
		c.Event.TimeFormat = tc.format
		items, err := mustSource(t, c).Identify(provider.Delivery{Body: []byte(`{"id":"e","created_at":` + tc.time + `}`)})
		if err != nil {
			t.Errorf("%s: %v", tc.time, err)
			continue
		}
		got := ""
		if !items[0].OccurredAt.IsZero() {
			got = items[0].OccurredAt.Format(time.RFC3339Nano)
		}
		if got != tc.want {
			t.Errorf("%q %s: got %q, want %q", tc.format, tc.time, got, tc.want)
		}
	}
}

func TestForm_IsReadAsStrictlyAsJSON(t *testing.T) {
	t.Parallel()
	c := acmeConfig()
	c.Event.Body = "form"
	c.Postings[0].Unit, c.Postings[0].Account = "major", []string{"user_id"}
	s := mustSource(t, c)
	m, err := meaningOf(t, s, "id=e1&type=payment.succeeded&payment_id=p+1&user_id=u%2B1&amount=10.50&currency=eur")
	if err != nil || len(m.Postings) != 1 || m.Postings[0].Account != "u+1" || m.Postings[0].Movement != "p 1" || m.Postings[0].Amount != 1050 {
		t.Errorf("got %+v, %v", m, err)
	}
	for _, body := range []string{"", "id=a&id=b", "id=a&ID=b", "id=%zz", "id=a;b=c", "id=a&n=%ff"} {
		if _, err := s.Identify(provider.Delivery{Body: []byte(body)}); err == nil {
			t.Errorf("%q: accepted", body)
		}
	}
	if s.Accepts("application/json") || !s.Accepts("application/x-www-form-urlencoded") {
		t.Error("a form source takes forms alone")
	}
}

func TestCompose_IsReadBackAsTheSameFact(t *testing.T) {
	t.Parallel()
	nested := acmeConfig()
	nested.Event = provider.EventConfig{Items: "data.events", ID: provider.Locator{Path: "meta.id"}, Type: provider.Locator{Path: "meta.type"}, Time: provider.Locator{Path: "at"}, TimeFormat: "unix_ms"}
	nested.Postings[0].Unit = "major"
	nested.Postings[0].Direction = provider.Direction{Path: "kind", Credit: []string{"in"}, Debit: []string{"out"}}
	form := acmeConfig()
	form.Event.Body = "form"
	form.Postings[0].Direction = provider.Direction{Always: "signed"}
	standard := acmeConfig()
	standard.Provider, standard.Signature, standard.Event = "standardwebhooks", provider.SignatureConfig{}, provider.EventConfig{}
	for name, tc := range map[string]struct {
		config  provider.Config
		amounts []int64
	}{
		"stripe": {stripeConfig(), []int64{1}}, "acme": {acmeConfig(), []int64{1, 999}}, "standard": {standard, []int64{5}},
		"nested": {nested, []int64{1, -1, 12345, -99}}, "form": {form, []int64{7, -7}},
	} {
		s := mustSource(t, tc.config)
		for _, amount := range tc.amounts {
			at := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
			d, err := s.Compose(provider.Fact{EventID: "evt_9", Account: "u9", Amount: amount, Currency: "EUR", OccurredAt: at})
			if err != nil {
				t.Errorf("%s, %d: %v", name, amount, err)
				continue
			}
			if !s.Accepts(d.Header.Get("Content-Type")) {
				t.Errorf("%s: does not accept %q", name, d.Header.Get("Content-Type"))
			}
			items, err := s.Identify(d)
			if err != nil || len(items) != 1 || items[0].ID != "evt_9" || !items[0].OccurredAt.Equal(at) {
				t.Errorf("%s, %d: got %+v, %v from %s", name, amount, items, err, d.Body)
				continue
			}
			m, err := s.Map(&schema.Event{Source: s.Key(), ID: "evt_9", Type: items[0].Type, ContentType: items[0].ContentType, Body: items[0].Body})
			if err != nil || len(m.Postings) != 1 || m.Postings[0].Account != "u9" || m.Postings[0].Amount != amount || m.Postings[0].Currency != "EUR" {
				t.Errorf("%s, %d: got %+v, %v from %s", name, amount, m, err, d.Body)
			}
		}
	}
	if _, err := mustSource(t, acmeConfig()).Compose(provider.Fact{EventID: "e", Account: "u", Amount: -1, Currency: "EUR"}); err == nil {
		t.Error("composed a debit of a source that credits")
	}
}

// Renaming a source keeps its key, so the meaning of its events stays, and nobody is
// paid twice.
func TestSet_RenamingChangesNoMeaning(t *testing.T) {
	t.Parallel()
	before, after := acmeConfig(), acmeConfig()
	after.Name, after.Key = "acme-eu", "acme"
	body := `{"id":"e","type":"payment.succeeded","payment_id":"p","user_id":"u","amount":1,"currency":"EUR"}`
	one, err := meaningOf(t, mustSource(t, before), body)
	two, err2 := meaningOf(t, mustSource(t, after), body)
	if err != nil || err2 != nil || one.Hash() != two.Hash() {
		t.Errorf("got %+v and %+v, %v, %v", one, two, err, err2)
	}
	set, err := provider.NewSet([]provider.Config{after, stripeConfig()})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := set.ByName("acme"); ok {
		t.Error("found under its old name")
	}
	if _, ok := set.ByKey("acme"); !ok {
		t.Error("not found under its key")
	}
	if _, err := set.Map(&schema.Event{Source: "acme", Type: "payment.succeeded", ID: "e", Body: []byte(body)}); err != nil {
		t.Error(err)
	}
	if _, err := set.Map(&schema.Event{Source: "nobody"}); !errors.Is(err, schema.ErrUnknownSource) {
		t.Errorf("got %v, want ErrUnknownSource", err)
	}
}

func TestNewSet_NamesTheKeyAndWhatIsAllowed(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		change func(*provider.Config)
		want   string
	}{
		{func(c *provider.Config) { c.Name = "Acme" }, "sources[1].name: must match"},
		{func(c *provider.Config) { c.Name = "stripe" }, `sources[1].name: "stripe" is the name of sources[0] too`},
		{func(c *provider.Config) { c.Key = "stripe" }, `sources[1].key: "stripe" is the key of sources[0] too`},
		{func(c *provider.Config) { c.Provider = "strip" }, `sources[1].provider: is "strip"; it is one of`},
		{func(c *provider.Config) { c.Postings[0].Unit = "cents" }, `sources[1].postings[0].unit: is "cents"; it is one of minor, major`},
		{func(c *provider.Config) { c.Postings[0].Unit = "" }, "sources[1].postings[0].unit: is missing; it is one of minor, major"},
		{func(c *provider.Config) { c.Postings[0].Direction = provider.Direction{} }, "sources[1].postings[0].direction: is missing; it is one of credit, debit, signed"},
		{func(c *provider.Config) { c.Postings[0].Direction.Always = "Credit" }, "sources[1].postings[0].direction: "},
		{func(c *provider.Config) { c.Postings[0].Account = nil }, "sources[1].postings[0].account: is missing"},
		{func(c *provider.Config) { c.Postings[0].Amount = "a..b" }, "sources[1].postings[0].amount: "},
		{func(c *provider.Config) { c.Postings[0].Currency = provider.Locator{Const: "E"} }, "sources[1].postings[0].currency: "},
		{func(c *provider.Config) { c.Postings[0].Currency = provider.Locator{Header: "X"} }, "sources[1].postings[0].currency: "},
		{func(c *provider.Config) { c.Postings[0].Type = nil }, "sources[1].postings[0].key: is missing"},
		{func(c *provider.Config) { c.Postings = append(c.Postings, c.Postings[0]) }, "sources[1].postings[1].key: postings[0] is for the same event type"},
		{func(c *provider.Config) { c.Postings = nil }, "sources[1].postings: is missing"},
		{func(c *provider.Config) { c.Event.ID = provider.Locator{} }, "sources[1].event.id: is missing"},
		{func(c *provider.Config) { c.Event.Type = provider.Locator{} }, "sources[1].postings[0].type: needs event.type"},
		{func(c *provider.Config) { c.Event.TimeFormat = "iso" }, "sources[1].event.time_format: "},
		{func(c *provider.Config) { c.Livemode = "live" }, "sources[1].livemode: "},
		{func(c *provider.Config) { c.Signature.Header = "" }, "sources[1].signature.header: is missing"},
		{func(c *provider.Config) { c.Signature.Header = "traceparent" }, "sources[1].signature.header: "},
		{func(c *provider.Config) { c.Signature.Header = "ce_id" }, "sources[1].signature.header: "},
		{func(c *provider.Config) { c.Signature.Algorithm = "md5" }, `sources[1].signature.algorithm: is "hmac-md5"; it is one of hmac-sha256, hmac-sha512, hmac-sha1`},
		{func(c *provider.Config) { c.Signature.Encoding = "base32" }, "sources[1].signature.encoding: "},
		{func(c *provider.Config) { c.Signature.Template = "{ts}" }, "sources[1].signature.template: must hold {body} once"},
		{func(c *provider.Config) { c.Signature.Template = "{ts}.{body}" }, "sources[1].signature.timestamp_header: is missing"},
		{func(c *provider.Config) { c.Signature.Template, c.Signature.TimestampHeader = "{body}", "X-T" }, "sources[1].signature.template: must hold {ts}"},
		{func(c *provider.Config) { c.Signature.Template = "{body" }, "sources[1].signature.template: "},
		{func(c *provider.Config) { c.Signature.Tolerance = -1 }, "sources[1].signature.tolerance: "},
		{func(c *provider.Config) { c.Success.Status = 302 }, "sources[1].success.status: "},
		{func(c *provider.Config) { c.Secrets = []provider.SecretConfig{{}} }, "sources[1].secrets[0]: needs exactly one of env, file, value"},
	} {
		c := acmeConfig()
		tc.change(&c)
		_, err := provider.NewSet([]provider.Config{stripeConfig(), c})
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("got %v, want %q", err, tc.want)
		}
	}
	for _, change := range []func(*provider.Config){
		// The key of a rule that the provider has itself.
		func(c *provider.Config) {
			c.Postings = acmeConfig().Postings
			c.Postings[0].Type = []string{"payment_intent.succeeded"}
		},
		func(c *provider.Config) { c.Event.ID.Path = "id" },
		func(c *provider.Config) { c.Signature.Header = "X" },
		func(c *provider.Config) { c.Account = nil },
		func(c *provider.Config) { c.Livemode = "both" },
		func(c *provider.Config) { c.Success.Status = 204 },
	} {
		c := stripeConfig()
		change(&c)
		if _, err := provider.New(c); err == nil {
			t.Errorf("stripe: accepted %+v", c)
		}
	}
}
