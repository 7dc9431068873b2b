package provider_test

import (
	"testing"

	"hookledger/schema/provider"
)

func coinbaseCommerceSource(t testing.TB) *provider.Source {
	t.Helper()
	return mustSource(t, provider.Config{
		Name: "x", Provider: "coinbasecommerce",
		Account: []string{"event.data.metadata.account_id"},
	})
}

var coinbaseCommerceFixtures = []fixture{
	{file: "charge_confirmed.json", want: []string{"24934862-d980 charge:confirmed 2025-11-29T12:00:00Z: +1250 USD acct_7 charge:confirmed XA6G6ZFR"}},
	{file: "charge_confirmed_again.json", want: []string{"24934862-d980 charge:confirmed 2025-11-29T12:00:00Z: +1250 USD acct_7 charge:confirmed XA6G6ZFR"}},
	{file: "charge_confirmed_no_price.json", want: []string{"24934862-d983 charge:confirmed 2025-11-29T12:00:00Z: quarantine bad_currency"}},
	{file: "charge_confirmed_usdc.json", want: []string{"24934862-d984 charge:confirmed 2025-11-29T12:00:00Z: quarantine bad_currency"}},
	{file: "charge_created.json", want: []string{"24934862-d982 charge:created 2025-11-29T12:00:00Z: status XA6G6ZFR=charge:created"}},
	{file: "charge_pending.json", want: []string{"24934862-d981 charge:pending 2025-11-29T12:00:00Z: status XA6G6ZFR=charge:pending"}},
	{file: "charge_resolved.json", want: []string{"24934862-d985 charge:resolved 2025-11-29T12:00:00Z: status LATE0001=charge:resolved"}},
}

func TestCoinbaseCommerce_Meaning(t *testing.T) {
	t.Parallel()
	checkFixtures(t, coinbaseCommerceSource(t), "coinbasecommerce", coinbaseCommerceFixtures)
}

func TestCoinbaseCommerce_EveryMovementIsMadeOnce(t *testing.T) {
	t.Parallel()
	s := coinbaseCommerceSource(t)
	wantStory(t, s, "coinbasecommerce", coinbaseCommerceFixtures, "1250 USD acct_7",
		"charge_created.json", "charge_pending.json", "charge_confirmed.json", "charge_confirmed_again.json")
}
