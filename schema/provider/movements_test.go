package provider_test

import (
	"slices"
	"strings"
	"testing"
)

// Of what is told of one order, customer, charge or subscription every movement stands for
// itself: partial captures, refunds of one amount, instalments, a fee beside a dispute. What
// is told again is no other one. Each provider that has them is here; the stories beside its
// payloads have the rest.
func TestMovements_OfOneObjectStaySeparate(t *testing.T) {
	t.Parallel()
	shopify := func(topic string) map[string]string {
		return map[string]string{"X-Shopify-Topic": topic, "X-Shopify-Webhook-Id": "w"}
	}
	razorpay := map[string]string{"X-Razorpay-Event-Id": "e"}
	xendit := map[string]string{"Webhook-Id": "e"}
	for name, tc := range map[string]struct {
		provider string
		account  []string
		trust    string
		told     []fixture
		want     string
	}{
		"stripe, two payments of one order and two refunds of one amount": {"stripe", nil, "", []fixture{
			{file: "payment_intent.succeeded.json"}, {file: "payment_intent.succeeded.json"},
			{file: "payment_intent.succeeded.json", replace: []string{"evt_3Pq7pi", "evt_x", "pi_3Pq7", "pi_other"}},
			{file: "charge.refunded_first.json"}, {file: "charge.refunded_second.json"},
			{file: "charge.refunded_first.json", replace: []string{"evt_3Pq7r1", "evt_y", "ch_3Pq7", "ch_other"}},
		}, "5500 USD acct_7"},
		"adyen, two payments of one order, and refunds of each": {"adyen", nil, "", []fixture{
			{file: "authorisation.json"}, {file: "authorisation.json"},
			{file: "authorisation.json", replace: []string{"NC6HT9CRT65ZGN82", "OTHER"}},
			{file: "batch_refunds.json"}, {file: "batch_refunds.json", replace: []string{`"REF1"`, `"REF8"`, `"REF2"`, `"REF9"`}},
			{file: "chargebacks.json"}, {file: "chargebacks.json", replace: []string{"DSP1", "DSP2"}},
		}, "25000 EUR acct_7"},
		"adyen by hand, captures of one authorisation": {"adyen-manual-capture", nil, "", []fixture{
			{file: "authorisation.json"}, {file: "batch_captures.json"}, {file: "batch_captures.json"},
			{file: "batch_captures.json", replace: []string{`"CAP1"`, `"CAP3"`, `"CAP2"`, `"CAP4"`}},
		}, "65000 EUR acct_7"},
		"adyen platform, two transfers": {"adyen-platform", nil, "", []fixture{
			{file: "transfer.updated_incoming.json"}, {file: "transfer.updated_incoming.json", replace: []string{"TRF2", "TRF9"}},
			{file: "transfer.updated_booked.json"}, {file: "transfer.updated_returned.json"},
		}, "40000 EUR BA00000001"},
		"paypal, two captures of one order": {"paypal", nil, "", []fixture{
			{file: "capture.completed.json"}, {file: "capture.completed.json", replace: []string{"WH-1", "WH-1b"}},
			{file: "capture.completed.json", replace: []string{"WH-1", "WH-2", "3C679366HH908993F", "OTHER"}},
			{file: "capture.refunded.json"}, {file: "capture.refunded_second.json"},
		}, "14000 USD acct_7"},
		"paddle, two transactions of one customer": {"paddle", []string{"data.customer_id"}, "", []fixture{
			{file: "transaction.paid.json"}, {file: "transaction.completed.json"},
			{file: "transaction.completed.json", replace: []string{"evt_01k0tc", "evt_x", "txn_01k0a", "txn_other"}},
			{file: "adjustment.updated_approved.json"}, {file: "adjustment.created_second.json"},
		}, "4950 USD ctm_01k0"},
		"square, two payments of one order": {"square", nil, "", []fixture{
			{file: "payment.updated.json"}, {file: "payment.updated_after_refund.json"},
			{file: "payment.updated.json", replace: []string{"e-pu", "e-pu2", "hYy9pRFVxp", "other"}},
		}, "4600 USD acct_7"},
		"razorpay, two instalments of one order, two refunds of one amount": {"razorpay", nil, "", []fixture{
			{file: "payment.captured.json", header: razorpay}, {file: "order.paid.json", header: razorpay}, {file: "payment.captured_second_of_order.json", header: razorpay},
			{file: "refund.processed.json", header: razorpay}, {file: "refund.processed_second.json", header: razorpay},
		}, "50000 INR acct_7"},
		"paystack, two payments of one customer": {"paystack", nil, "", []fixture{
			{file: "charge.success.json"}, {file: "charge.success.json"}, {file: "charge.success.json", replace: []string{"302961", "302969", "qTPrJoy9Bx", "other"}},
			{file: "transfer.success.json"}, {file: "transfer.success.json", replace: []string{"37272792", "37272799", "1jhbs3ozmen0k7y5efmw", "other"}},
		}, "14000 NGN acct_7"},
		"flutterwave v3, two payments of one order, a transfer with the number of a charge": {"flutterwave-v3", nil, "body", []fixture{
			{file: "charge.completed.json"}, {file: "charge.completed.json"}, {file: "charge.completed_failed.json"},
			{file: "charge.completed.json", replace: []string{"285959875", "33286"}},
			{file: "transfer.completed.json"}, {file: "transfer.completed.json"}, {file: "transfer.completed.json", replace: []string{"33286", "33287"}},
		}, "-5983900 NGN acct_7"},
		"flutterwave v4, a payment told of twice and another": {"flutterwave-v4", nil, "", []fixture{
			{file: "charge.completed.json"}, {file: "charge.completed.json", replace: []string{"wbk_qFVb1", "wbk_other"}}, {file: "charge.completed_failed.json"},
			{file: "charge.completed.json", replace: []string{"wbk_qFVb1", "wbk_2", "chg_0JHgF1", "chg_2"}}, {file: "refund.completed.json"},
		}, "300100 NGN acct_7"},
		"checkout.com, captures and refunds of one payment": {"checkoutcom", nil, "", []fixture{
			{file: "payment_captured.json"}, {file: "payment_captured.json"}, {file: "payment_captured_second.json"},
			{file: "payment_refunded.json"}, {file: "payment_refunded_second.json"},
		}, "4540 USD acct_7"},
		"shopify, two refunds of one order": {"shopify", []string{"customer.id", "order_id"}, "", []fixture{
			{file: "refunds_create.json", header: shopify("refunds/create")}, {file: "refunds_create.json", header: shopify("refunds/create")},
			{file: "refunds_create_second.json", header: shopify("refunds/create")},
		}, "-14095 USD 820982911946154508"},
		"coinbase commerce, two charges of one account": {"coinbasecommerce", nil, "", []fixture{
			{file: "charge_confirmed.json"}, {file: "charge_confirmed_again.json"},
			{file: "charge_confirmed.json", replace: []string{"24934862-d980", "other", "XA6G6ZFR", "OTHER"}},
		}, "2500 USD acct_7"},
		"braintree, two refunds of one amount, two charges of one subscription": {"braintree", nil, "", []fixture{
			{file: "transaction_settled.form"}, {file: "transaction_settled.form", replace: []string{"12:00:00Z", "12:30:00Z"}},
			{file: "transaction_settled_credit.form"}, {file: "transaction_settled_credit.form", replace: []string{"my_txn_2", "my_txn_3"}},
			{file: "subscription_charged_successfully.form"}, {file: "subscription_charged_successfully.form", replace: []string{"my_txn_5", "my_txn_6", "12:00:00Z", "13:00:00Z"}},
		}, "6998 EUR acct_7"},
		"mollie, captures, refunds and a chargeback of one payment": {"mollie", nil, "", []fixture{
			{file: "payment.paid_captured_in_parts.json"}, {file: "capture.succeeded.json"}, {file: "capture.succeeded_second.json"}, {file: "capture.succeeded.json"},
			{file: "refund.refunded.json"}, {file: "refund.refunded_second.json"}, {file: "chargeback.received.json"}, {file: "chargeback.received.json", replace: []string{`"chb_`, `"chb_x`, "event_GvJ8j", "event_x"}},
		}, "-4000 EUR acct_7"},
		"lemon squeezy, two renewals of one subscription": {"lemonsqueezy", nil, "", []fixture{
			{file: "subscription_payment_success.json"}, {file: "subscription_payment_success.json"},
			{file: "subscription_payment_success.json", replace: []string{`"id":"`, `"id":"9`}},
		}, "1998 USD acct_7"},
		"xendit, two refunds and two payouts of one amount": {"xendit", []string{"external_id", "data.reference_id"}, "body", []fixture{
			{file: "invoice.paid.json"}, {file: "invoice.settled.json"}, {file: "refund.succeeded.json", header: xendit}, {file: "refund.succeeded.json", header: xendit, replace: []string{"rfd-1", "rfd-2"}},
			{file: "payout.succeeded.json", header: xendit}, {file: "payout.succeeded.json", header: xendit, replace: []string{"disb-1", "disb-2"}},
		}, "-1000000 IDR acct_7"},
		"wise, two credits of one amount": {"wise", nil, "", []fixture{
			{file: "balances.credit.json"}, {file: "balances.credit.json", replace: []string{"2.34", "3.57", "12:00:00Z", "12:00:01Z"}}, {file: "balances.credit.json"},
		}, "246 EUR 2"},
		"yookassa, two payments of one order and two refunds of one amount": {"yookassa", nil, "body", []fixture{
			{file: "payment.succeeded.json"}, {file: "payment.succeeded.json"}, {file: "payment.succeeded.json", replace: []string{"22d6d597-000f", "22d6d597-000e"}},
			{file: "refund.succeeded.json"}, {file: "refund.succeeded_second.json"},
		}, "360000 RUB acct_7"},
		"cloudpayments, two payments of one invoice and two refunds of one amount": {"cloudpayments", nil, "", []fixture{
			{file: "pay.form", query: "type=pay"}, {file: "pay.form", query: "type=pay"}, {file: "pay.form", query: "type=pay", replace: []string{"TransactionId=505", "TransactionId=515"}},
			{file: "refund.json", query: "type=refund"}, {file: "refund.json", query: "type=refund", replace: []string{"507", "517"}},
		}, "20000 RUB acct_7"},
		"t-bank, two payments of one order": {"tbank", nil, "", []fixture{
			{file: "authorized.json"}, {file: "confirmed.json"}, {file: "confirmed.json"}, {file: "rejected.json"},
			{file: "confirmed.json", replace: []string{"5974256058", "5974256060"}},
		}, "39800 RUB acct_7"},
		"robokassa, two payments of one account": {"robokassa", nil, "", []fixture{
			{file: "payment.form"}, {file: "payment.form", replace: []string{"100.260000", "100.26"}}, {file: "payment.form", replace: []string{"450009", "450019"}},
		}, "20052 RUB acct_7"},
		"prodamus, two payments of one order, one of them refused at first": {"prodamus", nil, "", []fixture{
			{file: "order_denied.form", replace: []string{"10002", "10001"}}, {file: "success.form"}, {file: "success.form"}, {file: "success.form", replace: []string{"10001", "10003"}},
		}, "200000 RUB acct_7"},
		"sberbank, two payments and two refunds of one amount": {"sberbank", nil, "", []fixture{
			{file: "deposited.form"}, {file: "deposited.form"}, {file: "refunded.form"}, {file: "refunded_second.form"}, {file: "refunded.form"},
		}, "116544 RUB acct_7"},
	} {
		c := configOf(t, tc.provider, tc.trust, "")
		if tc.account != nil {
			c.Account = tc.account
		}
		folder := strings.TrimSuffix(tc.provider, "-manual-capture")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantTold(t, mustSource(t, c), folder, tc.want, slices.Clone(tc.told)...)
		})
	}
}

// Where two refunds cannot be told apart, each goes to quarantine: there an event that comes
// twice stands twice.
func TestMovements_WhatCannotBeToldApartWaitsForAPerson(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		provider string
		fixture  fixture
		want     string
	}{
		{"tbank", fixture{file: "partial_refunded.json"}, "5974256058:PARTIAL_REFUNDED:5000 PARTIAL_REFUNDED -: quarantine unclear_movement"},
		{"tbank", fixture{file: "partial_refunded.json", replace: []string{"5000", "2500"}}, "5974256058:PARTIAL_REFUNDED:2500 PARTIAL_REFUNDED -: quarantine unclear_movement"},
		{"tbank", fixture{file: "refunded.json"}, "5974256058:REFUNDED REFUNDED -: quarantine unclear_movement"},
		{"paystack", fixture{file: "refund.processed.json", replace: []string{`"132013318360"`, `null`}}, "refund.processed:qTPrJoy9Bx refund.processed -: quarantine unclear_movement"},
		{"robokassa", fixture{file: "payment.form", replace: []string{"450009", "0"}}, "0 payment -: quarantine unclear_movement"},
		{"sberbank", fixture{file: "refunded_undated.form"}, "quarantine unclear_movement"},
		{"sberbank", fixture{file: "refunded_undated_empty.form"}, "quarantine unclear_movement"},
	} {
		got := tc.fixture.describe(t, sourceOf(t, tc.provider, ""), tc.provider)
		if len(got) != 1 || !strings.HasSuffix(got[0], tc.want) {
			t.Errorf("%s %s: got %q, want %s", tc.provider, tc.fixture.file, got, tc.want)
		}
	}
}
