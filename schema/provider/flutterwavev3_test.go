package provider_test

import (
	"testing"

	"hookledger/schema/provider"
)

func flutterwaveV3Source(t testing.TB, trust string) *provider.Source {
	t.Helper()
	return sourceOf(t, "flutterwave-v3", trust)
}

var flutterwaveV3Fixtures = []fixture{
	{file: "charge.completed.json", want: []string{"285959875 charge.completed 2025-11-29T12:00:00Z: +10050 NGN acct_7 charge.completed 285959875; status 285959875=successful"}},
	{file: "charge.completed_failed.json", want: []string{"285959876 charge.completed 2025-11-29T12:00:00Z: status 285959876=failed"}},
	{file: "transfer.completed.json", want: []string{"transfer.completed:33286 transfer.completed 2025-11-30T12:00:00Z: -3002000 NGN acct_7 transfer.completed 33286; status 33286=SUCCESSFUL"}},
}

func TestFlutterwaveV3_Meaning(t *testing.T) {
	t.Parallel()
	checkFixtures(t, flutterwaveV3Source(t, "body"), "flutterwave-v3", flutterwaveV3Fixtures)
}

// Nothing of the body is signed: without trust, no money is taken from it.
func TestFlutterwaveV3_MovesNoMoneyUnlessTrusted(t *testing.T) {
	t.Parallel()
	wantUnauthenticated(t, flutterwaveV3Source(t, ""), "flutterwave-v3", flutterwaveV3Fixtures)
}
