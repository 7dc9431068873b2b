package provider_test

import (
	"testing"

	"hookledger/schema/provider"
)

func goCardlessSource(t testing.TB) *provider.Source {
	t.Helper()
	return mustSource(t, provider.Config{
		Name: "x", Provider: "gocardless",
	})
}

var goCardlessFixtures = []fixture{
	{file: "batch.json", want: []string{
		"EV0001 payments.confirmed 2025-11-29T12:00:00Z: status PM123=confirmed",
		"EV0002 payments.paid_out 2025-11-29T12:00:00Z: status PM123=paid_out",
		"EV0003 payments.charged_back 2025-11-29T12:00:00Z: status PM124=charged_back",
		"EV0004 refunds.paid 2025-11-29T12:00:00Z: status RF123=paid",
		"EV0005 payouts.paid 2025-11-29T12:00:00Z: status PO123=paid",
		"EV0006 mandates.active 2025-11-29T12:00:00Z: status MD000A=active",
		"EV0007 subscriptions.created 2025-11-29T12:00:00Z: status SB0003=created",
		"EV0008 billing_requests.fulfilled 2025-11-29T12:00:00Z: ignored",
	}},
	{file: "empty.json"},
}

func TestGoCardless_Meaning(t *testing.T) {
	t.Parallel()
	checkFixtures(t, goCardlessSource(t), "gocardless", goCardlessFixtures)
}
