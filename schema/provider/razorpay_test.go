package provider_test

import (
	"testing"

	"hookledger/schema/provider"
)

func razorpaySource(t testing.TB) *provider.Source {
	t.Helper()
	return mustSource(t, provider.Config{
		Name: "x", Provider: "razorpay",
		Account: []string{"payload.payout.entity.notes.account_id", "payload.payment.entity.notes.account_id"},
	})
}

var razorpayFixtures = []fixture{
	{file: "order.paid.json", header: map[string]string{"X-Razorpay-Event-Id": "evt_Nabc"}, want: []string{"evt_Nabc order.paid 2025-11-29T12:00:00Z: +50000 INR acct_7 payment pay_DESl1"}},
	{file: "payment.captured.json", header: map[string]string{"X-Razorpay-Event-Id": "evt_Nabc"}, want: []string{"evt_Nabc payment.captured 2025-11-29T12:00:00Z: +50000 INR acct_7 payment pay_DESl1"}},
	{file: "payment.captured_kwd.json", header: map[string]string{"X-Razorpay-Event-Id": "evt_Nabc"}, want: []string{"evt_Nabc payment.captured 2025-11-29T12:00:00Z: +295990 KWD acct_7 payment pay_DESlK"}},
	{file: "payment.captured_second_of_order.json", header: map[string]string{"X-Razorpay-Event-Id": "evt_Nabc"}, want: []string{"evt_Nabc payment.captured 2025-11-29T12:01:00Z: +20000 INR acct_7 payment pay_DESl2"}},
	{file: "payment.dispute.created.json", header: map[string]string{"X-Razorpay-Event-Id": "evt_Nabc"}, want: []string{"evt_Nabc payment.dispute.created 2025-11-30T12:00:00Z: status disp_Esz7=open"}},
	{file: "payment.dispute.lost.json", header: map[string]string{"X-Razorpay-Event-Id": "evt_Nabc"}, want: []string{"evt_Nabc payment.dispute.lost 2025-12-19T12:00:00Z: -30000 INR acct_7 payment.dispute.lost disp_Esz7"}},
	{file: "payment.dispute.won.json", header: map[string]string{"X-Razorpay-Event-Id": "evt_Nabc"}, want: []string{"evt_Nabc payment.dispute.won 2025-12-19T12:00:00Z: status disp_Esz7=won"}},
	{file: "payment.failed.json", header: map[string]string{"X-Razorpay-Event-Id": "evt_Nabc"}, want: []string{"evt_Nabc payment.failed 2025-11-29T12:00:00Z: status pay_DESlF=failed"}},
	{file: "payout.processed.json", header: map[string]string{"X-Razorpay-Event-Id": "evt_Nabc"}, want: []string{"evt_Nabc payout.processed 2025-11-29T14:01:40Z: -15000 INR acct_7 payout pout_1Aa0"}},
	{file: "payout.reversed.json", header: map[string]string{"X-Razorpay-Event-Id": "evt_Nabc"}, want: []string{"evt_Nabc payout.reversed 2025-11-29T14:30:00Z: -15000 INR acct_7 payout pout_1Aa0; +15000 INR acct_7 payout.reversed pout_1Aa0"}},
	{file: "refund.created.json", header: map[string]string{"X-Razorpay-Event-Id": "evt_Nabc"}, want: []string{"evt_Nabc refund.created 2025-11-29T13:00:00Z: status rfnd_FS8T1=pending"}},
	{file: "refund.failed.json", header: map[string]string{"X-Razorpay-Event-Id": "evt_Nabc"}, want: []string{"evt_Nabc refund.failed 2025-11-29T13:23:20Z: status rfnd_FS8T3=failed"}},
	{file: "refund.processed.json", header: map[string]string{"X-Razorpay-Event-Id": "evt_Nabc"}, want: []string{"evt_Nabc refund.processed 2025-11-29T13:01:40Z: -10000 INR acct_7 refund.processed rfnd_FS8T1"}},
	{file: "refund.processed_auto.json", header: map[string]string{"X-Razorpay-Event-Id": "evt_Nabc"}, want: []string{"evt_Nabc refund.processed 2025-12-04T12:00:00Z: ignored"}},
	{file: "refund.processed_second.json", header: map[string]string{"X-Razorpay-Event-Id": "evt_Nabc"}, want: []string{"evt_Nabc refund.processed 2025-11-29T13:06:40Z: -10000 INR acct_7 refund.processed rfnd_FS8T2"}},
	{file: "subscription.charged.json", header: map[string]string{"X-Razorpay-Event-Id": "evt_Nabc"}, want: []string{"evt_Nabc subscription.charged 2025-11-29T12:00:00Z: ignored"}},
}

func TestRazorpay_Meaning(t *testing.T) {
	t.Parallel()
	checkFixtures(t, razorpaySource(t), "razorpay", razorpayFixtures)
}

func TestRazorpay_EveryMovementIsMadeOnce(t *testing.T) {
	t.Parallel()
	s := razorpaySource(t)
	// Two instalments of one order, two refunds of one payment, a dispute that is lost, and
	// a payout that came back.
	wantStory(t, s, "razorpay", razorpayFixtures, "20000 INR acct_7",
		"payment.captured.json", "payment.captured_second_of_order.json", "order.paid.json", "subscription.charged.json",
		"refund.created.json", "refund.processed.json", "refund.processed_second.json", "refund.processed_auto.json", "refund.failed.json",
		"payment.dispute.created.json", "payment.dispute.lost.json", "payout.processed.json", "payout.reversed.json")
}
