package provider

import "hookledger/schema/source"

// Checkout.com signs the body. Sources: checkout.com/docs (receive webhooks, event types,
// payment_captured, format the amount value), 2026-11.
//
// Captures and refunds move money, each an action with an ID of its own: two partial
// captures of a payment are two movements. An approval reserves money and moves none.
// The account is debited when evidence is required for a dispute and credited back when
// it is won or cancelled ("Event types"); later events make the debit too, once, so that
// order and gaps do not matter. dispute_resolved (refunded already) does not say whether
// the debit was given back: status alone. From memory, not verified: dispute_received as
// the newer name, and the payout events payment_paid and payment_returned, which are
// status alone.
var _ = register(source.Definition{
	Name: "checkoutcom",
	Signature: source.Signature{
		Scheme: source.SchemeHMAC, Header: "Cko-Signature",
		Algorithm: "hmac-sha256", Encoding: "hex", Template: "{body}",
		BodyAuthenticated: true,
	},
	Event:   source.EventConfig{ID: at("id"), Type: at("type"), Time: source.Locator{Path: "created_on", Or: []source.Locator{{Path: "timestamp"}}}, TimeFormat: source.FormatRFC3339},
	Live:    testsApart,
	Account: []string{"data.metadata.account_id"},
	Postings: []source.PostingConfig{{
		Type:   []string{"payment_captured"},
		Amount: "data.amount", Unit: source.UnitMinor, Currency: at("data.currency"), Direction: credits,
		Movement: "data.action_id",
	}, {
		Type:   []string{"payment_refunded"},
		Amount: "data.amount", Unit: source.UnitMinor, Currency: at("data.currency"), Direction: debits,
		Movement: "data.action_id",
	}, {
		Key: "dispute",
		Type: []string{
			"dispute_received", "dispute_evidence_required", "dispute_evidence_submitted", "dispute_expired", "dispute_accepted",
			"dispute_lost", "dispute_won", "dispute_canceled",
		},
		Amount: "data.amount", Unit: source.UnitMinor, Currency: at("data.currency"), Direction: debits,
		Movement: "data.id",
	}, {
		Key: "dispute_returned", Type: []string{"dispute_won", "dispute_canceled"},
		Amount: "data.amount", Unit: source.UnitMinor, Currency: at("data.currency"), Direction: credits,
		Movement: "data.id",
	}},
	// The type is the status: payloads have no field for it.
	Statuses: []source.StatusConfig{{
		Type: []string{
			"payment_approved", "payment_pending", "payment_declined", "payment_canceled", "payment_expired", "payment_voided", "payment_void_declined",
			"payment_capture_pending", "payment_capture_declined", "payment_refund_pending", "payment_refund_declined", "payment_paid", "payment_returned",
			"dispute_resolved",
		},
		Object: "data.id", Status: at("type"),
	}},
	// Source: "Format the amount value": not among the currencies of full amounts.
	Exponents: map[string]int{"CLP": 2},
})
