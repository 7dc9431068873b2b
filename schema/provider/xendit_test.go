package provider_test

import (
	"testing"

	"hookledger/schema/provider"
)

func xenditSource(t testing.TB, trust string) *provider.Source {
	t.Helper()
	// Who keeps the account in the reference of refunds and payouts, too, says so.
	return mustSource(t, provider.Config{Name: "x", Provider: "xendit", Account: []string{"external_id", "data.reference_id"}, Trust: trust})
}

var xenditFixtures = []fixture{
	{file: "invoice.expired.json", header: map[string]string{"Webhook-Id": "wh_x"}, want: []string{"wh_x invoice.expired 2025-11-29T12:00:01Z: status 579c8d61f23fa4ca35e52da5=EXPIRED"}},
	{file: "invoice.paid.json", header: map[string]string{"Webhook-Id": "wh_x"}, want: []string{"wh_x invoice.paid 2025-11-29T12:00:00Z: +5000000 IDR acct_7 invoice 579c8d61f23fa4ca35e52da4"}},
	{file: "invoice.settled.json", header: map[string]string{"Webhook-Id": "wh_x"}, want: []string{"wh_x invoice.settled 2025-11-29T12:00:00Z: +5000000 IDR acct_7 invoice 579c8d61f23fa4ca35e52da4"}},
	{file: "payout.succeeded.json", header: map[string]string{"Webhook-Id": "wh_x"}, want: []string{"wh_x payout.succeeded 2025-11-30T12:00:00Z: -1000000 IDR acct_7 payout disb-1"}},
	{file: "refund.succeeded.json", header: map[string]string{"Webhook-Id": "wh_x"}, want: []string{"wh_x refund.succeeded 2025-11-30T12:00:00Z: -2000000 IDR acct_7 refund rfd-1"}},
}

func TestXendit_Meaning(t *testing.T) {
	t.Parallel()
	checkFixtures(t, xenditSource(t, "body"), "xendit", xenditFixtures)
}

func TestXendit_EveryMovementIsMadeOnce(t *testing.T) {
	t.Parallel()
	s := xenditSource(t, "body")
	wantStory(t, s, "xendit", xenditFixtures, "2000000 IDR acct_7", "invoice.paid.json", "invoice.settled.json", "refund.succeeded.json", "payout.succeeded.json")
}

// Nothing of the body is signed: without trust, no money is taken from it.
func TestXendit_MovesNoMoneyUnlessTrusted(t *testing.T) {
	t.Parallel()
	wantUnauthenticated(t, xenditSource(t, ""), "xendit", xenditFixtures)
}
