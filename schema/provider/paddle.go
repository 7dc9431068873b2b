package provider

import (
	"time"

	"hookledger/schema/source"
)

// Paddle Billing signs "ts:body" and sends ts=…;h1=…, with one h1 for each secret that is
// live. Sources: @paddle/paddle-node-sdk 3.10.0 webhooks-validator, paddle-go-sdk v4.1.0,
// developer.paddle.com (signature verification, adjustment.created, adjustment.updated), 2026-11.
//
// transaction.paid and transaction.completed tell of one movement, in this order; either
// alone is enough. Refunds and chargebacks are adjustments, each with an ID of its own; a
// refund moves money when it is approved, at once or by adjustment.updated. Credits
// reduce what a customer will owe and move nothing. A chargeback warning moves nothing
// here: whether Paddle refunds because of it is not documented. What Paddle keeps (fee,
// chargeback_fee) is between it and the seller.
//
// Amounts are strings in minor units. Adjustments carry no custom_data, so they go to
// quarantine where it names the account; data.customer_id, alone in the account's list, is
// in both. From memory, not verified: the names of the actions that reverse others.
var _ = register(source.Definition{
	Name: "paddle",
	Signature: source.Signature{
		Scheme: source.SchemeHMAC, Header: "Paddle-Signature",
		Algorithm: "hmac-sha256", Encoding: "hex", Template: "{ts}:{body}",
		Pairs:             source.PairsConfig{Separator: ";", Time: "ts", Signature: "h1"},
		TimestampFormat:   source.FormatUnix,
		SecretPrefixes:    []string{"pdl_ntfset_"},
		BodyAuthenticated: true,
	},
	Knobs:    []string{"tolerance"},
	Deadline: 5 * time.Second,
	Event:    source.EventConfig{ID: at("event_id"), Type: at("event_type"), Time: at("occurred_at"), TimeFormat: source.FormatRFC3339},
	Live:     testsApart,
	AccountNote: []string{
		"Refunds and chargebacks carry no custom_data: quarantine. The customer is in all events:",
		"account: [data.customer_id]",
	},
	Account: []string{"data.custom_data.account_id"},
	Postings: []source.PostingConfig{{
		Key: "transaction", Type: []string{"transaction.completed", "transaction.paid"},
		Amount: "data.details.totals.grand_total", Unit: source.UnitMinor, Currency: at("data.currency_code"), Direction: credits,
		Movement: "data.id",
	}, {
		Key: "adjustment", Type: []string{"adjustment.created", "adjustment.updated"},
		When:   []source.ConditionConfig{is("data.status", "approved"), is("data.action", "refund", "chargeback", "chargeback_reverse")},
		Amount: "data.totals.total", Unit: source.UnitMinor, Currency: at("data.currency_code"),
		Direction: source.Direction{Path: "data.action", Credit: []string{"chargeback_reverse"}, Debit: []string{"refund", "chargeback"}},
		Movement:  "data.id",
	}},
	Statuses: []source.StatusConfig{{
		Type: []string{
			"adjustment.created", "adjustment.updated", "transaction.created", "transaction.ready", "transaction.billed",
			"transaction.updated", "transaction.past_due", "transaction.payment_failed", "transaction.canceled", "transaction.revised",
		},
		Object: "data.id", Status: at("data.status"),
	}},
	Ignored: []source.Note{
		{Types: []string{"subscription.activated", "subscription.updated"}, Why: "each payment of a subscription is a transaction"},
		{Types: []string{"payout.created", "payout.paid"}, Why: "the seller's own payout, of no account"},
	},
	Success: source.SuccessConfig{Status: 200},
})
