package provider_test

import (
	"testing"

	"hookledger/schema/provider"
)

func checkoutComSource(t testing.TB) *provider.Source {
	t.Helper()
	return mustSource(t, provider.Config{
		Name: "x", Provider: "checkoutcom",
		Account: []string{"data.metadata.account_id"},
	})
}

var checkoutComFixtures = []fixture{
	{file: "card_verified.json", want: []string{"evt_az5n card_verified 2025-11-29T12:00:00Z: ignored"}},
	{file: "dispute_evidence_required.json", want: []string{"evt_az5i dispute_evidence_required 2025-12-01T12:00:01Z: -2000 USD acct_7 dispute dsp_bc94"}},
	{file: "dispute_lost.json", want: []string{"evt_az5k dispute_lost 2025-12-20T12:00:00Z: -2000 USD acct_7 dispute dsp_lost"}},
	{file: "dispute_received.json", want: []string{"evt_az5h dispute_received 2025-12-01T12:00:00Z: -2000 USD acct_7 dispute dsp_bc94"}},
	{file: "dispute_resolved.json", want: []string{"evt_az5m dispute_resolved 2025-12-20T12:00:00Z: status dsp_res=dispute_resolved"}},
	{file: "dispute_won.json", want: []string{"evt_az5j dispute_won 2025-12-20T12:00:00Z: -2000 USD acct_7 dispute dsp_bc94; +2000 USD acct_7 dispute_returned dsp_bc94"}},
	{file: "payment_approved.json", want: []string{"evt_az5a payment_approved 2025-11-29T12:00:00Z: status pay_vti5=payment_approved"}},
	{file: "payment_captured.json", want: []string{"evt_az5b payment_captured 2025-11-29T12:00:00Z: +4000 USD acct_7 payment_captured act_uql1"}},
	{file: "payment_captured_clp.json", want: []string{"evt_az5l payment_captured 2025-11-29T12:00:00Z: +1500 CLP acct_7 payment_captured act_clp"}},
	{file: "payment_captured_second.json", want: []string{"evt_az5c payment_captured 2025-11-29T12:00:00Z: +2540 USD acct_7 payment_captured act_uql2"}},
	{file: "payment_declined.json", want: []string{"evt_az5g payment_declined 2025-11-29T12:00:00Z: status pay_d=payment_declined"}},
	{file: "payment_refunded.json", want: []string{"evt_az5d payment_refunded 2025-11-29T12:00:00Z: -1000 USD acct_7 payment_refunded act_rf1"}},
	{file: "payment_refunded_second.json", want: []string{"evt_az5e payment_refunded 2025-11-29T12:00:00Z: -1000 USD acct_7 payment_refunded act_rf2"}},
	{file: "payment_voided.json", want: []string{"evt_az5f payment_voided 2025-11-29T12:00:00Z: status pay_v=payment_voided"}},
}

func TestCheckoutCom_Meaning(t *testing.T) {
	t.Parallel()
	checkFixtures(t, checkoutComSource(t), "checkoutcom", checkoutComFixtures)
}

func TestCheckoutCom_EveryMovementIsMadeOnce(t *testing.T) {
	t.Parallel()
	s := checkoutComSource(t)
	// Two partial captures, two refunds of one amount, a dispute that is won.
	wantStory(t, s, "checkoutcom", checkoutComFixtures, "4540 USD acct_7",
		"payment_approved.json", "payment_captured.json", "payment_captured_second.json", "payment_refunded.json", "payment_refunded_second.json",
		"dispute_received.json", "dispute_evidence_required.json", "dispute_won.json")
}
