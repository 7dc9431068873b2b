package provider_test

import (
	"testing"

	"hookledger/schema/provider"
)

func wiseSource(t testing.TB, trust string) *provider.Source {
	t.Helper()
	return sourceOf(t, "wise", trust)
}

var wiseFixtures = []fixture{
	{file: "balances.credit.json", header: map[string]string{"X-Delivery-Id": "dlv_w"}, want: []string{"dlv_w balances#credit 2025-11-29T12:00:00Z: +123 EUR 2 balances#credit dlv_w"}},
	{file: "balances.update_credit.json", header: map[string]string{"X-Delivery-Id": "dlv_w"}, want: []string{"dlv_w balances#update 2025-11-29T12:00:00Z: ignored"}},
	{file: "balances.update_debit.json", header: map[string]string{"X-Delivery-Id": "dlv_w"}, want: []string{"dlv_w balances#update 2025-11-29T12:10:00Z: -23 EUR 2 balances#debit 1234568"}},
	{file: "transfers.state-change.json", header: map[string]string{"X-Delivery-Id": "dlv_w"}, want: []string{"dlv_w transfers#state-change 2025-11-29T12:00:00Z: status 111=outgoing_payment_sent"}},
}

func TestWise_Meaning(t *testing.T) {
	t.Parallel()
	checkFixtures(t, wiseSource(t, ""), "wise", wiseFixtures)
}

func TestWise_EveryMovementIsMadeOnce(t *testing.T) {
	t.Parallel()
	s := wiseSource(t, "")
	wantStory(t, s, "wise", wiseFixtures, "100 EUR 2", "balances.credit.json", "balances.update_credit.json", "balances.update_debit.json")
}
