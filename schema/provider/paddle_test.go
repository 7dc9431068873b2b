package provider_test

import (
	"testing"

	"hookledger/schema/provider"
)

func paddleSource(t testing.TB) *provider.Source {
	t.Helper()
	return mustSource(t, provider.Config{
		Name: "x", Provider: "paddle",
		Account: []string{"data.customer_id"},
	})
}

var paddleFixtures = []fixture{
	{file: "adjustment.created_chargeback.json", want: []string{"evt_01k0a4 adjustment.created 2025-11-29T12:00:00Z: -1475 USD ctm_01k0 adjustment adj_01k0c; status adj_01k0c=approved"}},
	{file: "adjustment.created_chargeback_reverse.json", want: []string{"evt_01k0a5 adjustment.created 2025-11-29T12:00:00Z: +1475 USD ctm_01k0 adjustment adj_01k0d; status adj_01k0d=approved"}},
	{file: "adjustment.created_credit.json", want: []string{"evt_01k0a6 adjustment.created 2025-11-29T12:00:00Z: status adj_01k0e=approved"}},
	{file: "adjustment.created_pending.json", want: []string{"evt_01k0a1 adjustment.created 2025-11-29T12:00:00Z: status adj_01k0a=pending_approval"}},
	{file: "adjustment.created_second.json", want: []string{"evt_01k0a3 adjustment.created 2025-11-29T12:00:00Z: -1000 USD ctm_01k0 adjustment adj_01k0b; status adj_01k0b=approved"}},
	{file: "adjustment.updated_approved.json", want: []string{"evt_01k0a2 adjustment.updated 2025-11-29T12:00:00Z: -1000 USD ctm_01k0 adjustment adj_01k0a; status adj_01k0a=approved"}},
	{file: "adjustment.updated_rejected.json", want: []string{"evt_01k0a7 adjustment.updated 2025-11-29T12:00:00Z: status adj_01k0f=rejected"}},
	{file: "subscription.updated.json", want: []string{"evt_01k0su subscription.updated 2025-11-29T12:00:00Z: ignored"}},
	{file: "transaction.completed.json", want: []string{"evt_01k0tc transaction.completed 2025-11-29T12:00:00Z: +3475 USD ctm_01k0 transaction txn_01k0a"}},
	{file: "transaction.completed_jpy.json", want: []string{"evt_01k0tj transaction.completed 2025-11-29T12:00:00Z: +5000 JPY ctm_01k0 transaction txn_01k0j"}},
	{file: "transaction.paid.json", want: []string{"evt_01k0tp transaction.paid 2025-11-29T12:00:00Z: +3475 USD ctm_01k0 transaction txn_01k0a"}},
	{file: "transaction.payment_failed.json", want: []string{"evt_01k0tf transaction.payment_failed 2025-11-29T12:00:00Z: status txn_01k0f=past_due"}},
}

func TestPaddle_Meaning(t *testing.T) {
	t.Parallel()
	checkFixtures(t, paddleSource(t), "paddle", paddleFixtures)
}

func TestPaddle_EveryMovementIsMadeOnce(t *testing.T) {
	t.Parallel()
	s := paddleSource(t)
	// Both events of a transaction; a refund that waited for approval; a second one of the
	// same amount; a chargeback that was won.
	wantStory(t, s, "paddle", paddleFixtures, "1475 USD ctm_01k0",
		"transaction.paid.json", "transaction.completed.json", "adjustment.created_pending.json", "adjustment.updated_approved.json",
		"adjustment.created_second.json", "adjustment.created_chargeback.json", "adjustment.created_chargeback_reverse.json")
}
