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
