package provider_test

import (
	"testing"

	"hookledger/schema/provider"
)

func mollieSource(t testing.TB) *provider.Source {
	t.Helper()
	return mustSource(t, provider.Config{
		Name: "x", Provider: "mollie",
		Account: []string{"_embedded.entity.metadata.account_id"},
	})
}

var mollieFixtures = []fixture{
	{file: "capture.succeeded.json", want: []string{"event_GvJ8e capture.succeeded 2025-11-29T12:00:00Z: +3595 EUR acct_7 capture.succeeded cpt_1"}},
	{file: "capture.succeeded_second.json", want: []string{"event_GvJ8f capture.succeeded 2025-11-29T12:00:00Z: +2405 EUR acct_7 capture.succeeded cpt_2"}},
	{file: "chargeback.received.json", want: []string{"event_GvJ8j chargeback.received 2025-11-29T12:00:00Z: -2500 EUR acct_7 chargeback chb_n9z0tp"}},
	{file: "chargeback.reversed.json", want: []string{"event_GvJ8k chargeback.reversed 2025-11-29T12:00:00Z: -2500 EUR acct_7 chargeback chb_n9z0tp; +2500 EUR acct_7 chargeback.reversed chb_n9z0tp"}},
	{file: "payment-link.paid.json", want: []string{"event_GvJ8WHrp payment-link.paid 2025-11-29T12:00:00Z: ignored"}},
	{file: "payment.paid.json", want: []string{"event_GvJ8a payment.paid 2025-11-29T12:00:00Z: +7500 EUR acct_7 payment.paid tr_5B8cwPMG"}},
	{file: "payment.paid_captured_in_parts.json", want: []string{"event_GvJ8d payment.paid 2025-11-29T12:00:00Z: ignored"}},
	{file: "payment.paid_jpy.json", want: []string{"event_GvJ8c payment.paid 2025-11-29T12:00:00Z: +5000 JPY acct_7 payment.paid tr_jpy"}},
	{file: "payment.paid_simple.json", want: []string{"event_GvJ8b payment.paid 2025-11-29T12:00:00Z: ignored"}},
	{file: "refund.pending.json", want: []string{"event_GvJ8i refund.pending 2025-11-29T12:00:00Z: status re_4qqhO89gsT=refund.pending"}},
	{file: "refund.refunded.json", want: []string{"event_GvJ8g refund.refunded 2025-11-29T12:00:00Z: -2500 EUR acct_7 refund.refunded re_4qqhO89gsT"}},
	{file: "refund.refunded_second.json", want: []string{"event_GvJ8h refund.refunded 2025-11-29T12:00:00Z: -2500 EUR acct_7 refund.refunded re_4qqhO89gsU"}},
}

func TestMollie_Meaning(t *testing.T) {
	t.Parallel()
	checkFixtures(t, mollieSource(t), "mollie", mollieFixtures)
}

func TestMollie_EveryMovementIsMadeOnce(t *testing.T) {
	t.Parallel()
	s := mollieSource(t)
	// Captures of one payment in parts, two refunds of one amount, a chargeback reversed.
	wantStory(t, s, "mollie", mollieFixtures, "8500 EUR acct_7",
		"payment.paid.json", "payment.paid_simple.json", "payment.paid_captured_in_parts.json", "capture.succeeded.json", "capture.succeeded_second.json",
		"refund.pending.json", "refund.refunded.json", "refund.refunded_second.json", "chargeback.received.json", "chargeback.reversed.json", "payment-link.paid.json")
}
