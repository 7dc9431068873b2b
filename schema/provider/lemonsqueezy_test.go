package provider_test

import (
	"testing"

	"hookledger/schema/provider"
)

func lemonSqueezySource(t testing.TB) *provider.Source {
	t.Helper()
	return mustSource(t, provider.Config{
		Name: "x", Provider: "lemonsqueezy",
		Account: []string{"meta.custom_data.account_id"},
	})
}

var lemonSqueezyFixtures = []fixture{
	{file: "license_key_created.json", want: []string{"license_key_created:1 license_key_created 2025-11-29T12:00:00Z: ignored"}},
	{file: "order_created.json", want: []string{"order_created:1 order_created 2025-11-29T12:00:00Z: +999 USD acct_7 order_created 1"}},
	{file: "order_created_jpy.json", want: []string{"order_created:3 order_created 2025-11-29T12:00:00Z: quarantine bad_currency"}},
	{file: "order_created_pending.json", want: []string{"order_created:2 order_created 2025-11-29T12:00:00Z: ignored"}},
	{file: "order_refunded.json", want: []string{"order_refunded:1 order_refunded 2025-11-30T12:00:00Z: -999 USD acct_7 order_refunded 1"}},
	{file: "order_refunded_older.json", want: []string{"order_refunded:4 order_refunded 2025-11-30T12:00:00Z: -999 USD acct_7 order_refunded 4"}},
	{file: "order_refunded_partial.json", want: []string{"order_refunded:5 order_refunded 2025-11-30T12:00:00Z: -300 USD acct_7 order_refunded 5"}},
	{file: "order_refunded_partial_older.json", want: []string{"order_refunded:6 order_refunded 2025-11-30T12:00:00Z: quarantine bad_amount"}},
	{file: "subscription_payment_failed.json", want: []string{"subscription_payment_failed:72 subscription_payment_failed 2025-12-29T12:00:05Z: status 72=pending"}},
	{file: "subscription_payment_refunded.json", want: []string{"subscription_payment_refunded:71 subscription_payment_refunded 2025-12-29T12:00:05Z: -999 USD acct_7 subscription_payment_refunded 71"}},
	{file: "subscription_payment_success.json", want: []string{"subscription_payment_success:71 subscription_payment_success 2025-12-29T12:00:05Z: +999 USD acct_7 subscription_payment_success 71"}},
	{file: "subscription_payment_success_initial.json", want: []string{"subscription_payment_success:70 subscription_payment_success 2025-12-29T12:00:05Z: ignored"}},
}

func TestLemonSqueezy_Meaning(t *testing.T) {
	t.Parallel()
	checkFixtures(t, lemonSqueezySource(t), "lemonsqueezy", lemonSqueezyFixtures)
}

func TestLemonSqueezy_EveryMovementIsMadeOnce(t *testing.T) {
	t.Parallel()
	s := lemonSqueezySource(t)
	// The first payment of a subscription is its order.
	wantStory(t, s, "lemonsqueezy", lemonSqueezyFixtures, "999 USD acct_7",
		"order_created.json", "subscription_payment_success_initial.json", "order_refunded.json", "subscription_payment_success.json")
}
