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
	{file: "balances.credit.json", header: map[string]string{"X-Delivery-Id": "dlv_w"}, want: []string{"balances#credit:11e28bac557b4b20070bb63d668743cb20ce52f2098e7feff685d2e76e753ced balances#credit 2025-11-29T12:00:00Z: +123 EUR 2 balances#credit balances#credit:11e28bac557b4b20070bb63d668743cb20ce52f2098e7feff685d2e76e753ced"}},
	{file: "balances.credit_no_balance.json", header: map[string]string{"X-Delivery-Id": "dlv_w"}, want: []string{"dlv_w balances#credit 2025-11-29T12:00:00Z: quarantine unclear_movement"}},
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

// A delivery's ID is not signed: the same credit under another one is the same movement.
func TestWise_AnotherHeaderIsNoSecondCredit(t *testing.T) {
	t.Parallel()
	s := wiseSource(t, "")
	credit := wiseFixtures[0]
	again := credit
	again.header = map[string]string{"X-Delivery-Id": "dlv_other"}
	if a, b := credit.describe(t, s, "wise"), again.describe(t, s, "wise"); a[0] != b[0] {
		t.Errorf("got %s and %s, want one event and movement", a[0], b[0])
	}
}
