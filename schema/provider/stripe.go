package provider

import (
	"time"

	"hookledger/schema/source"
)

// Stripe signs "t.body" with the whole whsec_ text as key. Sources: stripe-go v84.4.1
// webhook/client.go, docs.stripe.com/webhooks, 2026-11.
//
// One payment is told of by many events (payment intent, charge, checkout session,
// invoice); the payment intent moves the money and the others do not. Only a charge
// without a payment intent, of the older Charges API, moves money itself.
//
// A refund is told of by charge.refunded and by refund.created. The former moves money:
// a charge inherits the metadata of its payment intent, so the account is found, and a
// refund has none of its own. charge.refunded holds the sum of all refunds so far; the
// sum before stands in data.previous_attributes, and without it the event goes to
// quarantine. The movement is charge and sum, and the request that made it: when a refund
// fails and one of the same amount is made again, the sum is as it was before, and two Event
// objects of one refund have one request. Known limit: where Stripe names no request
// (request.id is null), the second of such refunds is taken for the first, with the outcome
// same_effect, which `events list` shows.
//
// Stripe copies the metadata of a payment intent to its charge alone. Refunds that fail and
// disputes have none, and go to quarantine with missing_account, unless the refund was made
// with metadata.account_id, or the source has an account for each payment, which all of
// them name: account: [data.object.payment_intent, data.object.id]. Never add a fallback that is
// another account for the same payment.
//
// A dispute moves money when funds are withdrawn and reinstated, not when it is opened
// or closed. Stripe's fees, that for a dispute among them, are between the merchant and
// Stripe: a source whose accounts bear them adds a rule, for example with each over
// data.object.balance_transactions.
//
// A payout that somebody ordered (automatic is false) debits its account, and comes back
// if it fails or is cancelled. The scheduled payouts of the whole balance are nobody's.
//
// What follows is from memory and not verified here: the shape of refund, dispute and
// payout objects; that a charge without a payment intent has captured.
var _ = register(source.Definition{
	Name: "stripe",
	Signature: source.Signature{
		Scheme:            source.SchemeStripe,
		Header:            "Stripe-Signature",
		TimestampFormat:   source.FormatUnix,
		SecretPrefixes:    []string{"whsec_"},
		BodyAuthenticated: true,
	},
	Knobs:    []string{"tolerance"},
	Deadline: 20 * time.Second, // Between 20 and 30 s, told differently.
	Event: source.EventConfig{
		ID:   at("id"),
		Type: at("type"),
		// Seconds in v1 events, RFC 3339 in v2 ("thin") ones.
		Time: at("created"),
	},
	Live: source.LiveFlag{Paths: []string{"livemode"}, Live: []string{"true"}, Test: []string{"false"}},
	AccountNote: []string{
		"Refunds that fail and disputes carry no metadata of the payment: quarantine. Give refunds",
		"metadata.account_id of their own, or keep one account for each payment, which all name:",
		"account: [data.object.payment_intent, data.object.id]",
	},
	Account: []string{"data.object.metadata.account_id"},
	Postings: []source.PostingConfig{{
		Type: []string{"payment_intent.succeeded"},
		// What was received, not what was asked for: they differ for partial captures.
		Amount: "data.object.amount_received", Unit: source.UnitMinor, Currency: at("data.object.currency"), Direction: credits,
		// A payment intent succeeds once, so it is one movement.
		Movement: "data.object.id",
	}, {
		Key: "charge", Type: []string{"charge.succeeded", "charge.captured"},
		When:   []source.ConditionConfig{absent("data.object.payment_intent"), is("data.object.captured", "true")},
		Amount: "data.object.amount_captured", AmountElse: "data.object.amount",
		Unit: source.UnitMinor, Currency: at("data.object.currency"), Direction: credits,
		Movement: "data.object.id",
	}, {
		Type: []string{"charge.refunded"},
		// The release of an authorization that was never captured looks like a refund.
		When:   []source.ConditionConfig{not("data.object.captured", "false")},
		Amount: "data.object.amount_refunded", Less: "data.previous_attributes.amount_refunded",
		Unit: source.UnitMinor, Currency: at("data.object.currency"), Direction: debits,
		Movement: "data.object.id", MovementAnd: []string{"data.object.amount_refunded"}, MovementIf: "request.id",
	}, {
		Key: "refund_failed", Type: []string{"refund.failed", "refund.updated", "charge.refund.updated"},
		When:   []source.ConditionConfig{is("data.object.status", "failed", "canceled")},
		Amount: "data.object.amount", Unit: source.UnitMinor, Currency: at("data.object.currency"), Direction: credits,
		Movement: "data.object.id",
	}, {
		Type:   []string{"charge.dispute.funds_withdrawn"},
		Amount: "data.object.amount", Unit: source.UnitMinor, Currency: at("data.object.currency"), Direction: debits,
		Movement: "data.object.id",
	}, {
		Type:   []string{"charge.dispute.funds_reinstated"},
		Amount: "data.object.amount", Unit: source.UnitMinor, Currency: at("data.object.currency"), Direction: credits,
		Movement: "data.object.id",
	}, {
		// Events that tell of the end make the debit too, so that their order does not
		// matter: it is one movement, made once.
		Key: "payout", Type: []string{"payout.created", "payout.paid", "payout.failed", "payout.canceled"},
		When:   []source.ConditionConfig{is("data.object.automatic", "false")},
		Amount: "data.object.amount", Unit: source.UnitMinor, Currency: at("data.object.currency"), Direction: debits,
		Movement: "data.object.id",
	}, {
		Key: "payout_returned", Type: []string{"payout.failed", "payout.canceled"},
		When:   []source.ConditionConfig{is("data.object.automatic", "false")},
		Amount: "data.object.amount", Unit: source.UnitMinor, Currency: at("data.object.currency"), Direction: credits,
		Movement: "data.object.id",
	}},
	Statuses: []source.StatusConfig{{
		Type: []string{
			"payment_intent.created", "payment_intent.processing", "payment_intent.requires_action", "payment_intent.payment_failed",
			"payment_intent.canceled", "payment_intent.amount_capturable_updated", "payment_intent.partially_funded",
			"charge.failed", "charge.pending", "charge.expired",
			"refund.created", "refund.updated", "charge.refund.updated",
			"charge.dispute.created", "charge.dispute.updated", "charge.dispute.closed",
			"payout.updated", "payout.reconciliation_completed",
		},
		Object: "data.object.id", Status: at("data.object.status"),
	}},
	Ignored: []source.Note{
		{Types: []string{"checkout.session.completed", "checkout.session.async_payment_succeeded", "invoice.paid", "invoice.payment_succeeded"}, Why: "payment_intent.succeeded tells of the same money"},
		{Types: []string{"charge.updated", "balance.available"}, Why: "no money moves"},
		{Types: []string{"transfer.created", "transfer.reversed", "application_fee.created"}, Why: "moves between Stripe accounts; add a rule where they are accounts of yours"},
		{Types: []string{"v2.core.event"}, Why: "carries an ID to fetch"},
	},
	// Written with two decimals although the standard has none, and the reverse.
	// Source: docs.stripe.com/currencies, zero-decimal and special cases.
	Exponents: map[string]int{"ISK": 2, "UGX": 2, "MGA": 0},
})
