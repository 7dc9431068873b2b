package provider_test

import (
	"strings"
	"testing"

	"hookledger/schema/provider"
)

// The accounts that `sources new` proposes never credit one account and debit another for
// the same payment: a refund that does not name the account goes to quarantine.
func TestAccount_RefundsOfNobodyGoToQuarantine(t *testing.T) {
	t.Parallel()
	topic := func(name string) map[string]string {
		return map[string]string{"X-Shopify-Topic": name, "X-Shopify-Webhook-Id": "w"}
	}
	for _, c := range []struct {
		provider string
		fixture  fixture
	}{
		{"square", fixture{file: "refund.updated.json"}},
		{"square", fixture{file: "dispute.created.json"}},
		{"paddle", fixture{file: "adjustment.updated_approved.json"}},
		{"paddle", fixture{file: "adjustment.created_chargeback.json"}},
		{"shopify", fixture{file: "refunds_create.json", header: topic("refunds/create")}},
		{"shopify", fixture{file: "disputes_create.json", header: topic("disputes/create")}},
		{"braintree", fixture{file: "dispute_opened.form"}},
		{"paystack", fixture{file: "refund.processed_no_account.json"}},
		{"xendit", fixture{file: "refund.succeeded.json", header: map[string]string{"Webhook-Id": "w"}}},
	} {
		d, err := provider.Definition(c.provider)
		if err != nil {
			t.Fatal(err)
		}
		config := provider.Config{Name: "x", Provider: c.provider, Account: d.Account}
		config.Signature.URL, config.Signature.PublicKey = d.Required["url"], d.Required["public_key"]
		if !d.Signature.BodyAuthenticated {
			config.Trust = "body"
		}
		for _, got := range c.fixture.describe(t, mustSource(t, config), c.provider) {
			if !strings.HasSuffix(got, "quarantine missing_account") {
				t.Errorf("%s: got %s, want quarantine", c.provider, got)
			}
		}
	}
}

// What `sources new` proposes in its comment finds one account for a payment and all that
// comes of it.
func TestAccount_TheProposedListFindsOneAccount(t *testing.T) {
	t.Parallel()
	topic := func(name string) map[string]string {
		return map[string]string{"X-Shopify-Topic": name, "X-Shopify-Webhook-Id": "w"}
	}
	for name, fixtures := range map[string][]fixture{
		"stripe":  {{file: "payment_intent.succeeded.json"}, {file: "charge.refunded_first.json"}, {file: "refund.failed.json"}, {file: "charge.dispute.funds_withdrawn.json"}},
		"square":  {{file: "payment.updated.json"}, {file: "refund.updated.json"}, {file: "dispute.created.json"}},
		"paddle":  {{file: "transaction.completed.json"}, {file: "adjustment.updated_approved.json"}, {file: "adjustment.created_chargeback.json"}},
		"shopify": {{file: "orders_paid.json", header: topic("orders/paid")}, {file: "refunds_create.json", header: topic("refunds/create")}, {file: "disputes_create.json", header: topic("disputes/create")}},
		"braintree": {
			{file: "transaction_settled.form", replace: []string{`<order-id nil="true"/>`, `<order-id>acct_7</order-id>`}}, {file: "dispute_opened.form"},
		},
	} {
		c := configOf(t, name, "", "")
		d, err := provider.Definition(name)
		if err != nil {
			t.Fatal(err)
		}
		list, ok := strings.CutPrefix(d.AccountNote[len(d.AccountNote)-1], "account: [")
		if !ok {
			t.Fatalf("%s: the note ends in no list", name)
		}
		c.Account = strings.Split(strings.TrimSuffix(list, "]"), ", ")
		if got := story(t, mustSource(t, c), name, fixtures); got == "" || strings.Contains(got, ",") {
			t.Errorf("%s: got %q, want one account", name, got)
		}
	}
}
