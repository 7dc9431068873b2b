package provider_test

import (
	"testing"

	"hookledger/schema/provider"
)

func plaidSource(t testing.TB, trust string) *provider.Source {
	t.Helper()
	return sourceOf(t, "plaid", trust)
}

var plaidFixtures = []fixture{
	{file: "transactions.sync_updates_available.json", want: []string{"wz666MBjYWTp2PDzzggYhM6oWWmBb:SYNC_UPDATES_AVAILABLE:dlv_1 TRANSACTIONS:SYNC_UPDATES_AVAILABLE -: ignored"}},
	{file: "transfer.events_update.json", want: []string{"TRANSFER_EVENTS_UPDATE:dlv_1 TRANSFER:TRANSFER_EVENTS_UPDATE -: ignored"}},
}

func TestPlaid_Meaning(t *testing.T) {
	t.Parallel()
	checkFixtures(t, plaidSource(t, ""), "plaid", plaidFixtures)
}
