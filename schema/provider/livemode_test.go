package provider_test

import (
	"net/http"
	"strings"
	"testing"

	"hookledger/schema"
	"hookledger/schema/provider"
	"hookledger/schema/source"
)

// flagged is a delivery that moves money, with FLAG where it says live or test; flags are
// what is put there.
type flagged struct {
	query, form string
	header      string
	body        string
	live, test  string
	// missing is what it means without the flag where livemode is live.
	missing string
}

var flaggedDeliveries = map[string]flagged{
	"stripe": {body: `{"id":"evt_1",FLAG"type":"payment_intent.succeeded","data":{"object":{"id":"pi_1","amount_received":1,"currency":"usd","metadata":{"account_id":"a"}}}}`,
		live: `"livemode":true,`, test: `"livemode":false,`, missing: "quarantine"},
	"adyen": {body: `{FLAG"notificationItems":[{"NotificationRequestItem":{"pspReference":"P1","merchantReference":"a","amount":{"value":1,"currency":"EUR"},"eventCode":"AUTHORISATION","success":"true"}}]}`,
		live: `"live":"true",`, test: `"live":"false",`, missing: "quarantine"},
	"adyen-manual-capture": {body: `{FLAG"notificationItems":[{"NotificationRequestItem":{"pspReference":"P1","merchantReference":"a","amount":{"value":1,"currency":"EUR"},"eventCode":"CAPTURE","success":"true"}}]}`,
		live: `"live":"true",`, test: `"live":"false",`, missing: "quarantine"},
	"adyen-platform": {body: `{FLAG"type":"balancePlatform.transfer.updated","data":{"id":"T1","sequenceNumber":1,"status":"booked","direction":"incoming","amount":{"value":1,"currency":"EUR"},"balanceAccount":{"id":"a"}}}`,
		live: `"environment":"live",`, test: `"environment":"test",`, missing: "quarantine"},
	"cloudpayments": {query: "type=pay", form: "TransactionId=1&Amount=1.00&Currency=RUB&AccountId=a&Status=Completed&AuthCode=1FLAG",
		live: "&TestMode=0", test: "&TestMode=1", missing: "quarantine"},
	"lemonsqueezy": {body: `{"meta":{FLAG"event_name":"order_created","custom_data":{"account_id":"a"}},"data":{"id":"1","attributes":{"status":"paid","total":1,"currency":"USD"}}}`,
		live: `"test_mode":false,`, test: `"test_mode":true,`, missing: "quarantine"},
	"mollie": {body: `{"id":"event_1","type":"payment.paid","entityId":"tr_1","_embedded":{"entity":{FLAG"id":"tr_1","amount":{"value":"1.00","currency":"EUR"},"metadata":{"account_id":"a"}}}}`,
		live: `"mode":"live",`, test: `"mode":"test",`, missing: "quarantine"},
	"paystack": {body: `{"event":"charge.success","data":{FLAG"id":1,"reference":"r","amount":1,"currency":"NGN","metadata":{"account_id":"a"}}}`,
		live: `"domain":"live",`, test: `"domain":"test",`, missing: "quarantine"},
	"prodamus": {form: "order_id=5&sum=1.00&currency=rub&payment_status=success&customer_extra=aFLAG",
		live: "&demo_mode=0", test: "&demo_mode=1", missing: "counts"},
	"robokassa": {form: "OutSum=1.00&InvId=5&Shp_account=aFLAG", live: "&IsTest=0", test: "&IsTest=1", missing: "counts"},
	"shopify": {header: "X-Shopify-Topic: orders/paid", body: `{FLAG"id":1,"financial_status":"paid","total_price":"1.00","currency":"USD","customer":{"id":7}}`,
		live: `"test":false,`, test: `"test":true,`, missing: "quarantine"},
	"tbank": {body: `{FLAG"PaymentId":1,"OrderId":"a","Status":"CONFIRMED","Success":true,"Amount":100}`,
		live: `"TerminalKey":"1510572937960",`, test: `"TerminalKey":"1510572937960DEMO",`, missing: "quarantine"},
	"wise": {header: "FLAG", body: `{"event_type":"balances#credit","data":{"resource":{"id":5},"occurred_at":"2025-11-29T12:00:00Z","amount":1,"currency":"EUR","post_transaction_balance_amount":2}}`,
		live: "X-Test-Notification: false", test: "X-Test-Notification: true", missing: "counts"},
	"yookassa": {body: `{"event":"payment.succeeded","object":{FLAG"id":"1","amount":{"value":"1.00","currency":"RUB"},"metadata":{"account_id":"a"}}}`,
		live: `"test":false,`, test: `"test":true,`, missing: "quarantine"},
	// Whatever these say, nothing of them moves money.
	"mercadopago": {body: `{"id":1,FLAG"action":"payment.updated"}`, live: `"live_mode":true,`, test: `"live_mode":false,`, missing: "ignored"},
	"plaid":       {body: `{FLAG"webhook_type":"TRANSFER","webhook_code":"TRANSFER_EVENTS_UPDATE"}`, live: `"environment":"production",`, test: `"environment":"sandbox",`, missing: "ignored"},
}

// meaning returns counts, ignored or quarantine, or what went wrong.
func (f *flagged) meaning(t *testing.T, s *provider.Source, flag string) string {
	t.Helper()
	d := provider.Delivery{ID: "dlv_1", Header: http.Header{"X-Shopify-Webhook-Id": {"w"}}, Query: f.query, Body: []byte(strings.ReplaceAll(f.body, "FLAG", flag))}
	d.Header.Set("Content-Type", "application/json")
	if f.form != "" {
		d.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		d.Body = []byte(strings.ReplaceAll(f.form, "FLAG", flag))
	}
	if name, value, ok := strings.Cut(strings.ReplaceAll(f.header, "FLAG", flag), ": "); ok {
		d.Header.Set(name, value)
	}
	items, err := s.Identify(d)
	if err != nil || len(items) != 1 {
		t.Fatalf("%d items, %v", len(items), err)
	}
	// What the worker reads is what the receiver wrote.
	ev := schema.Event{Source: s.Key(), ID: items[0].ID, Type: items[0].Type, ContentType: items[0].ContentType, Body: items[0].Body, Livemode: items[0].Livemode}
	m, err := s.Map(&ev)
	switch reason := reasonOf(err); {
	case reason == schema.ReasonBodyUnreadable:
		return "quarantine"
	case reason != "":
		return reason
	case len(m.Postings) > 0:
		return "counts"
	case m.Status != nil:
		return "status"
	}
	return "ignored"
}

func TestLivemode_EveryProviderThatTellsCanBeToldApart(t *testing.T) {
	t.Parallel()
	for _, name := range provider.Names() {
		d, err := provider.Definition(name)
		if err != nil {
			t.Fatal(err)
		}
		if d.Live.IsZero() {
			continue
		}
		f, ok := flaggedDeliveries[name]
		if !ok {
			t.Errorf("%s tells live from test and has no delivery here", name)
			continue
		}
		for _, tc := range []struct{ mode, flag, want string }{
			{"", f.test, "counts"}, {"any", f.live, "counts"}, {"any", "", "counts"},
			{"live", f.live, "counts"}, {"live", f.test, "ignored"}, {"live", "", f.missing},
			{"test", f.live, "ignored"}, {"test", f.test, "counts"},
		} {
			if f.missing == "ignored" {
				tc.want = "ignored"
			}
			trust := ""
			if !d.Signature.BodyAuthenticated && d.Postings != nil {
				trust = source.TrustBody
			}
			s := mustSource(t, configOf(t, name, trust, tc.mode))
			if got := f.meaning(t, s, tc.flag); got != tc.want {
				t.Errorf("%s, livemode %q, event with %q: got %s, want %s", name, tc.mode, tc.flag, got, tc.want)
			}
		}
	}
}

func TestLivemode_IsRefusedWhereEventsDoNotTell(t *testing.T) {
	t.Parallel()
	for _, name := range provider.Names() {
		d, err := provider.Definition(name)
		if err != nil {
			t.Fatal(err)
		}
		if !d.Live.IsZero() {
			continue
		}
		for mode, good := range map[string]bool{"": true, "any": true, "live": false, "test": false} {
			c := configOf(t, name, "", mode)
			switch _, err := provider.New(c); {
			case good && err != nil && strings.Contains(err.Error(), "livemode"):
				t.Errorf("%s, livemode %q: %v", name, mode, err)
			case !good && (err == nil || !strings.Contains(err.Error(), "livemode: events of provider "+name+" do not tell live from test")):
				t.Errorf("%s, livemode %q: got %v", name, mode, err)
			}
		}
	}
	c := configOf(t, "stripe", "", "production")
	if _, err := provider.New(c); err == nil || !strings.Contains(err.Error(), "any, live, test") {
		t.Errorf("got %v", err)
	}
}

// A status alone needs no flag: no money can be wrong by it. What the delivery says is kept
// for every item, and an event whose flag is not one of its words counts for nobody.
func TestLivemode_OfStatusesBatchesAndNonsense(t *testing.T) {
	t.Parallel()
	s := mustSource(t, configOf(t, "stripe", "", "live"))
	f := flagged{body: `{"id":"evt_1","type":"payment_intent.canceled",FLAG"data":{"object":{"id":"pi_1","status":"canceled"}}}`}
	for flag, want := range map[string]string{"": "status", `"livemode":true,`: "status", `"livemode":false,`: "ignored"} {
		if got := f.meaning(t, s, flag); got != want {
			t.Errorf("%s: got %s, want %s", flag, got, want)
		}
	}
	s = mustSource(t, configOf(t, "adyen", "", "live"))
	items, err := s.Identify(provider.Delivery{Body: []byte(`{"live":"false","notificationItems":[{"NotificationRequestItem":{"pspReference":"1","eventCode":"REFUND","success":"true"}},{"NotificationRequestItem":{"pspReference":"2","eventCode":"REFUND","success":"true"}}]}`)})
	if err != nil || len(items) != 2 || items[0].Livemode != "test" || items[1].Livemode != "test" {
		t.Errorf("got %+v, %v", items, err)
	}
	adyen := flaggedDeliveries["adyen"]
	for _, flag := range []string{`"live":"yes",`, `"live":null,`, `"live":{},`, `"live":"TRUE",`} {
		if got := adyen.meaning(t, s, flag); got != "quarantine" {
			t.Errorf("%s: got %s", flag, got)
		}
	}
}
