package provider_test

import (
	"strings"
	"testing"

	"hookledger/schema/provider"
)

func stripeSource(t testing.TB) *provider.Source {
	t.Helper()
	return mustSource(t, provider.Config{Name: "stripe", Provider: "stripe", Account: []string{"data.object.metadata.account_id"}})
}

var stripeFixtures = []fixture{
	{file: "payment_intent.succeeded.json", want: []string{"evt_3Pq7pi payment_intent.succeeded 2025-11-29T12:00:00Z: +5000 USD acct_7 payment_intent.succeeded pi_3Pq7"}},
	{file: "payment_intent.succeeded_partial_capture.json", want: []string{"evt_3Pq7pc payment_intent.succeeded 2025-11-29T12:00:00Z: +3200 USD acct_7 payment_intent.succeeded pi_3Pq8"}},
	{file: "payment_intent.succeeded_jpy.json", want: []string{"evt_3Pq7jp payment_intent.succeeded 2025-11-29T12:00:00Z: +1500 JPY acct_7 payment_intent.succeeded pi_3PqJ"}},
	{file: "payment_intent.succeeded_isk.json", want: []string{"evt_3Pq7is payment_intent.succeeded 2025-11-29T12:00:00Z: +1500 ISK acct_7 payment_intent.succeeded pi_3PqI"}},
	{file: "payment_intent.succeeded_mga.json", want: []string{"evt_3Pq7mg payment_intent.succeeded 2025-11-29T12:00:00Z: +150000 MGA acct_7 payment_intent.succeeded pi_3PqM"}},
	{file: "payment_intent.succeeded_kwd.json", want: []string{"evt_3Pq7kw payment_intent.succeeded 2025-11-29T12:00:00Z: +5120 KWD acct_7 payment_intent.succeeded pi_3PqK"}},
	{file: "payment_intent.succeeded_isk_odd.json", want: []string{"evt_3Pq7io payment_intent.succeeded 2025-11-29T12:00:00Z: quarantine bad_amount"}},
	{file: "payment_intent.succeeded_no_account.json", want: []string{"evt_3Pq7na payment_intent.succeeded 2025-11-29T12:00:00Z: quarantine missing_account"}},
	{file: "payment_intent.payment_failed.json", want: []string{"evt_3Pq7pf payment_intent.payment_failed 2025-11-29T12:00:00Z: status pi_3PqF=requires_payment_method"}},
	{file: "charge.succeeded.json", want: []string{"evt_3Pq7ch charge.succeeded 2025-11-29T12:00:00Z: ignored"}},
	{file: "charge.succeeded_legacy.json", want: []string{"evt_3Pq7cl charge.succeeded 2025-11-29T12:00:00Z: +5000 USD acct_7 charge ch_1OldA"}},
	{file: "charge.succeeded_legacy_uncaptured.json", want: []string{"evt_3Pq7cu charge.succeeded 2025-11-29T12:00:00Z: ignored"}},
	{file: "charge.captured_legacy.json", want: []string{"evt_3Pq7cc charge.captured 2025-11-29T12:00:00Z: +3000 USD acct_7 charge ch_1OldB"}},
	{file: "charge.refunded_first.json", want: []string{"evt_3Pq7r1 charge.refunded 2025-11-29T13:00:00Z: -1500 USD acct_7 charge.refunded ch_3Pq7:1500:req_R1"}},
	{file: "charge.refunded_second.json", want: []string{"evt_3Pq7r2 charge.refunded 2025-11-29T14:00:00Z: -1500 USD acct_7 charge.refunded ch_3Pq7:3000:req_R2"}},
	{file: "charge.refunded_rest.json", want: []string{"evt_3Pq7r3 charge.refunded 2025-11-29T14:30:00Z: -2000 USD acct_7 charge.refunded ch_3Pq7:5000:req_R3"}},
	{file: "charge.refunded_no_delta.json", want: []string{"evt_3Pq7rn charge.refunded 2025-11-29T14:00:00Z: quarantine bad_amount"}},
	{file: "charge.refunded_uncaptured.json", want: []string{"evt_3Pq7ru charge.refunded 2025-11-29T12:00:00Z: ignored"}},
	{file: "refund.created.json", want: []string{"evt_3Pq7rc refund.created 2025-11-29T13:00:00Z: status re_3Pq7=succeeded"}},
	{file: "refund.updated.json", want: []string{"evt_3Pq7rd refund.updated 2025-11-29T13:01:40Z: status re_3Pq7=succeeded"}},
	{file: "refund.failed.json", want: []string{"evt_3Pq7rf refund.failed 2025-11-30T13:00:00Z: quarantine missing_account"}},
	{file: "charge.refund.updated_failed.json", want: []string{"evt_3Pq7rg charge.refund.updated 2025-11-30T13:00:00Z: quarantine missing_account"}},
	{file: "charge.dispute.created.json", want: []string{"evt_3Pq7d1 charge.dispute.created 2025-11-30T12:00:00Z: status du_1Pq9=needs_response"}},
	{file: "charge.dispute.funds_withdrawn.json", want: []string{"evt_3Pq7d2 charge.dispute.funds_withdrawn 2025-11-30T12:00:01Z: quarantine missing_account"}},
	{file: "charge.dispute.funds_reinstated.json", want: []string{"evt_3Pq7d3 charge.dispute.funds_reinstated 2025-12-29T12:00:00Z: quarantine missing_account"}},
	{file: "charge.dispute.closed.json", want: []string{"evt_3Pq7d4 charge.dispute.closed 2025-12-29T12:00:00Z: status du_1Pq9=won"}},
	{file: "payout.created.json", want: []string{"evt_3Pq7o1 payout.created 2025-11-29T14:00:00Z: -2000 USD acct_7 payout po_1Pq7"}},
	{file: "payout.paid.json", want: []string{"evt_3Pq7o2 payout.paid 2025-12-01T12:00:00Z: -2000 USD acct_7 payout po_1Pq7"}},
	{file: "payout.failed.json", want: []string{"evt_3Pq7o3 payout.failed 2025-12-02T12:00:00Z: -2000 USD acct_7 payout po_1Pq7; +2000 USD acct_7 payout_returned po_1Pq7"}},
	{file: "payout.created_automatic.json", want: []string{"evt_3Pq7o4 payout.created 2025-11-29T14:00:00Z: ignored"}},
	{file: "checkout.session.completed.json", want: []string{"evt_3Pq7cs checkout.session.completed 2025-11-29T12:00:00Z: ignored"}},
	{file: "invoice.paid.json", want: []string{"evt_3Pq7in invoice.paid 2025-11-29T12:00:00Z: ignored"}},
	{file: "v2.core.event.json", want: []string{"evt_test_65R9 v1.billing.meter.error_report_triggered 2025-11-29T12:00:00Z: ignored"}},
	{file: "unknown_type.json", want: []string{"evt_3Pq7un treasury.outbound_payment.posted 2025-11-29T12:00:00Z: ignored"}},
}

func TestStripe_Meaning(t *testing.T) {
	t.Parallel()
	checkFixtures(t, stripeSource(t), "stripe", stripeFixtures)
}

// perPayment has an account for each payment: every event about it names the payment intent.
func perPayment(t testing.TB, postings ...provider.PostingConfig) *provider.Source {
	t.Helper()
	return mustSource(t, provider.Config{
		Name: "stripe", Provider: "stripe", Account: []string{"data.object.payment_intent", "data.object.id"}, Postings: postings,
	})
}

func TestStripe_EveryMovementIsMadeOnce(t *testing.T) {
	t.Parallel()
	s := perPayment(t)
	for want, files := range map[string][]string{
		// Three refunds of one charge, each told of twice, in another way.
		"0 USD pi_3Pq7": {"payment_intent.succeeded.json", "charge.succeeded.json", "checkout.session.completed.json", "invoice.paid.json",
			"charge.refunded_first.json", "refund.created.json", "refund.updated.json", "charge.refunded_second.json", "charge.refunded_rest.json"},
		// A refund that failed comes back once, whatever tells of it.
		"5000 USD pi_3Pq7": {"payment_intent.succeeded.json", "charge.refunded_first.json", "refund.failed.json", "charge.refund.updated_failed.json"},
		// A dispute that is lost, beside a refund of the same charge.
		"500 USD pi_3Pq7": {"payment_intent.succeeded.json", "charge.refunded_first.json", "charge.dispute.created.json", "charge.dispute.funds_withdrawn.json"},
		// A dispute that is won.
		"3500 USD pi_3Pq7": {"payment_intent.succeeded.json", "charge.refunded_first.json", "charge.dispute.funds_withdrawn.json", "charge.dispute.funds_reinstated.json",
			"charge.dispute.closed.json"},
	} {
		wantStory(t, s, "stripe", stripeFixtures, want, files...)
	}
	// Payouts have the metadata of who ordered them: one the bank sent back, and one it paid.
	s = stripeSource(t)
	wantStory(t, s, "stripe", stripeFixtures, "5000 USD acct_7", "payment_intent.succeeded.json", "payout.created.json", "payout.paid.json", "payout.failed.json")
	wantStory(t, s, "stripe", stripeFixtures, "3000 USD acct_7", "payment_intent.succeeded.json", "payout.created.json", "payout.paid.json")
}

// A refund fails, and one of the same amount is made again: the sum of refunds is what it
// was, and the request another one. Two Event objects of one refund have one request.
func TestStripe_RefundAgainAfterOneThatFailed(t *testing.T) {
	t.Parallel()
	first := fixture{file: "charge.refunded_first.json"}
	again := fixture{file: "charge.refunded_first.json", replace: []string{"evt_3Pq7r1", "evt_again", "req_R1", "req_again"}}
	other := fixture{file: "charge.refunded_first.json", replace: []string{"evt_3Pq7r1", "evt_other"}}
	wantTold(t, perPayment(t), "stripe", "3500 USD pi_3Pq7", fixture{file: "payment_intent.succeeded.json"}, first, fixture{file: "refund.failed.json"}, again)
	wantTold(t, perPayment(t), "stripe", "3500 USD pi_3Pq7", fixture{file: "payment_intent.succeeded.json"}, first, other)
	// The known limit: without the request, they are one.
	unnamed := []string{`"id": "req_R1"`, `"id": null`}
	first.replace = unnamed
	again.replace = append([]string{"evt_3Pq7r1", "evt_again"}, unnamed...)
	wantTold(t, perPayment(t), "stripe", "5000 USD pi_3Pq7", fixture{file: "payment_intent.succeeded.json"}, first, fixture{file: "refund.failed.json"}, again)
}

// Stripe copies the metadata of a payment intent to its charge, and to nothing else. Who gives
// a refund metadata of its own names the account; of a dispute nobody can in time.
func TestStripe_MetadataOfARefundNamesTheAccount(t *testing.T) {
	t.Parallel()
	f := fixture{file: "refund.failed.json", replace: []string{`"metadata":{}`, `"metadata":{"account_id":"acct_7"}`}}
	want := "evt_3Pq7rf refund.failed 2025-11-30T13:00:00Z: +1500 USD acct_7 refund_failed re_3Pq7"
	if got := strings.Join(f.describe(t, stripeSource(t), "stripe"), "\n"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Who lets accounts bear the fee of a dispute adds a rule; the fee is a movement beside
// the dispute's.
func TestStripe_FeeBesideADisputeIsItsOwnMovement(t *testing.T) {
	t.Parallel()
	s := perPayment(t, provider.PostingConfig{
		Key: "dispute_fee", Type: []string{"charge.dispute.funds_withdrawn", "charge.dispute.funds_reinstated"},
		Each: "data.object.balance_transactions", When: []provider.ConditionConfig{{Path: "item.reporting_category", Is: []string{"dispute"}}},
		Amount: "item.fee", Unit: "minor", Currency: provider.Locator{Path: "item.currency"},
		Direction: provider.Direction{Always: "debit"}, Movement: "item.id",
	})
	f := fixture{file: "charge.dispute.funds_withdrawn.json"}
	want := "evt_3Pq7d2 charge.dispute.funds_withdrawn 2025-11-30T12:00:01Z: -3000 USD pi_3Pq7 charge.dispute.funds_withdrawn du_1Pq9; -1500 USD pi_3Pq7 dispute_fee txn_1PqW"
	if got := strings.Join(f.describe(t, s, "stripe"), "\n"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	wantStory(t, s, "stripe", stripeFixtures, "3500 USD pi_3Pq7",
		"payment_intent.succeeded.json", "charge.dispute.funds_withdrawn.json", "charge.dispute.funds_reinstated.json")
}
