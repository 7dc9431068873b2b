package provider_test

import (
	"testing"

	"hookledger/schema/provider"
)

func payPalSource(t testing.TB, trust string) *provider.Source {
	t.Helper()
	return sourceOf(t, "paypal", trust)
}

var payPalFixtures = []fixture{
	{file: "capture.completed.json", want: []string{"WH-1 PAYMENT.CAPTURE.COMPLETED 2025-11-29T12:00:00Z: +10000 USD acct_7 payment 3C679366HH908993F"}},
	{file: "capture.completed_huf.json", want: []string{"WH-3 PAYMENT.CAPTURE.COMPLETED 2025-11-29T12:00:00Z: +500000 HUF acct_7 payment HUF1"}},
	{file: "capture.completed_jpy.json", want: []string{"WH-2 PAYMENT.CAPTURE.COMPLETED 2025-11-29T12:00:00Z: +5000 JPY acct_7 payment JPY1"}},
	{file: "capture.pending.json", want: []string{"WH-4 PAYMENT.CAPTURE.PENDING 2025-11-29T12:00:00Z: status 3C679366HH908993F=PENDING"}},
	{file: "capture.refunded.json", want: []string{"WH-5 PAYMENT.CAPTURE.REFUNDED 2025-11-29T12:00:00Z: -3000 USD acct_7 refund 1JU08902781691411"}},
	{file: "capture.refunded_second.json", want: []string{"WH-6 PAYMENT.CAPTURE.REFUNDED 2025-11-29T12:00:00Z: -3000 USD acct_7 refund 1JU08902781691412"}},
	{file: "capture.reversed.json", want: []string{"WH-7 PAYMENT.CAPTURE.REVERSED 2025-11-29T12:00:00Z: -4000 USD acct_7 reversal 09E71677NS257044M"}},
	{file: "dispute.created.json", want: []string{"WH-10 CUSTOMER.DISPUTE.CREATED 2025-11-29T12:00:00Z: status PP-000-003-648-191=OPEN"}},
	{file: "payouts-item.returned.json", want: []string{"WH-12 PAYMENT.PAYOUTS-ITEM.RETURNED 2025-11-29T12:00:00Z: -2000 USD acct_7 payout 8AELMXH8UB2P8; +2000 USD acct_7 payout_returned 8AELMXH8UB2P8"}},
	{file: "payouts-item.succeeded.json", want: []string{"WH-11 PAYMENT.PAYOUTS-ITEM.SUCCEEDED 2025-11-29T12:00:00Z: -2000 USD acct_7 payout 8AELMXH8UB2P8"}},
	{file: "sale.completed.json", want: []string{"WH-8 PAYMENT.SALE.COMPLETED 2025-11-29T12:00:00Z: +999 USD acct_7 payment 80021663DE681814L"}},
	{file: "sale.reversed_negative.json", want: []string{"WH-9 PAYMENT.SALE.REVERSED 2025-11-29T12:00:00Z: quarantine bad_amount"}},
	{file: "subscription.activated.json", want: []string{"WH-13 BILLING.SUBSCRIPTION.ACTIVATED 2025-11-29T12:00:00Z: status I-BW452GLLEP1G=ACTIVE"}},
}

func TestPayPal_Meaning(t *testing.T) {
	t.Parallel()
	checkFixtures(t, payPalSource(t, ""), "paypal", payPalFixtures)
}

func TestPayPal_EveryMovementIsMadeOnce(t *testing.T) {
	t.Parallel()
	s := payPalSource(t, "")
	// Two refunds of one amount, a reversal beside a dispute, a payout that came back.
	wantStory(t, s, "paypal", payPalFixtures, "999 USD acct_7",
		"capture.pending.json", "capture.completed.json", "capture.refunded.json", "capture.refunded_second.json", "dispute.created.json",
		"capture.reversed.json", "payouts-item.succeeded.json", "payouts-item.returned.json", "sale.completed.json")
}
