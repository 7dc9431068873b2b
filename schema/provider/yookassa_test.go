package provider_test

import (
	"testing"

	"hookledger/schema/provider"
)

func yooKassaSource(t testing.TB, trust string) *provider.Source {
	t.Helper()
	return sourceOf(t, "yookassa", trust)
}

var yooKassaFixtures = []fixture{
	{file: "payment.succeeded.json", want: []string{"payment.succeeded:22d6d597-000f-5000-9000-145f6df21d6f payment.succeeded 2025-11-29T12:00:00Z: +250000 RUB acct_7 payment.succeeded 22d6d597-000f-5000-9000-145f6df21d6f"}},
	{file: "payment.waiting_for_capture.json", want: []string{"payment.waiting_for_capture:22d6d597-000f-5000-9000-145f6df21d6f payment.waiting_for_capture 2025-11-29T12:00:00Z: status 22d6d597-000f-5000-9000-145f6df21d6f=waiting_for_capture"}},
	{file: "payout.succeeded.json", want: []string{"payout.succeeded:po-285c0ab7 payout.succeeded 2025-11-30T12:00:00Z: -32000 RUB acct_7 payout.succeeded po-285c0ab7"}},
	{file: "refund.succeeded.json", want: []string{"refund.succeeded:216749f7-0016-50be-b000-078d43a63ae4 refund.succeeded 2025-11-30T12:00:00Z: -70000 RUB acct_7 refund.succeeded 216749f7-0016-50be-b000-078d43a63ae4"}},
	{file: "refund.succeeded_second.json", want: []string{"refund.succeeded:216749f7-0016-50be-b000-078d43a63ae5 refund.succeeded 2025-11-30T12:00:00Z: -70000 RUB acct_7 refund.succeeded 216749f7-0016-50be-b000-078d43a63ae5"}},
}

func TestYooKassa_Meaning(t *testing.T) {
	t.Parallel()
	checkFixtures(t, yooKassaSource(t, "body"), "yookassa", yooKassaFixtures)
}

func TestYooKassa_EveryMovementIsMadeOnce(t *testing.T) {
	t.Parallel()
	s := yooKassaSource(t, "body")
	wantStory(t, s, "yookassa", yooKassaFixtures, "78000 RUB acct_7",
		"payment.waiting_for_capture.json", "payment.succeeded.json", "refund.succeeded.json", "refund.succeeded_second.json", "payout.succeeded.json")
}

// Nothing of the body is signed: without trust, no money is taken from it.
func TestYooKassa_MovesNoMoneyUnlessTrusted(t *testing.T) {
	t.Parallel()
	wantUnauthenticated(t, yooKassaSource(t, ""), "yookassa", yooKassaFixtures)
}
