package provider

import "hookledger/schema/source"

// Square signs the registered URL, byte by byte, and the body. Sources: square npm 46.0.0
// wrapper/WebhooksHelper, developer.squareup.com (payments and refunds webhooks, Payment), 2026-11.
//
// A payment moves money when it is COMPLETED; later payment.updated events (a refund, a
// receipt) say the same again and are the same movement. total_money includes the tip,
// amount_money does not. A refund moves money when it is COMPLETED.
//
// From memory, not verified: a dispute holds the disputed amount back from the moment
// evidence is asked for, and gives it back when it is won; an inquiry holds back nothing.
// Fees of disputes are not in the events.
//
// Refunds and disputes name the payment alone, not whose it was: they go to quarantine,
// unless the payment's ID is the account of all three (data.object.payment.id,
// data.object.refund.payment_id, data.object.dispute.disputed_payment.payment_id).
var _ = register(source.Definition{
	Name: "square",
	Signature: source.Signature{
		Scheme: source.SchemeHMAC, Header: "X-Square-Hmacsha256-Signature",
		Algorithm: "hmac-sha256", Encoding: "base64", Template: "{url}{body}",
		BodyAuthenticated: true,
	},
	Knobs:    []string{"url"},
	Required: map[string]string{"url": "https://YOUR-HOST/webhooks/square"},
	Tune: func(sig *source.Signature, c source.SignatureConfig, p *source.Problems) {
		if sig.URL = c.URL; c.URL == "" {
			p.Add("signature.url", "is missing; it is the notification URL as registered with Square, byte by byte")
		}
	},
	Event: source.EventConfig{ID: at("event_id"), Type: at("type"), Time: at("created_at"), TimeFormat: source.FormatRFC3339},
	Live:  testsApart,
	AccountNote: []string{
		"Refunds and disputes name the payment alone: quarantine, unless each payment has an account:",
		"account: [data.object.payment.id, data.object.refund.payment_id, data.object.dispute.disputed_payment.payment_id]",
	},
	Account: []string{"data.object.payment.reference_id"},
	Postings: []source.PostingConfig{{
		Key: "payment", Type: []string{"payment.created", "payment.updated"},
		When:   []source.ConditionConfig{is("data.object.payment.status", "COMPLETED")},
		Amount: "data.object.payment.total_money.amount", AmountElse: "data.object.payment.amount_money.amount",
		Unit: source.UnitMinor, Currency: at("data.object.payment.amount_money.currency"), Direction: credits,
		Movement: "data.object.payment.id",
	}, {
		Key: "refund", Type: []string{"refund.created", "refund.updated"},
		When:   []source.ConditionConfig{is("data.object.refund.status", "COMPLETED")},
		Amount: "data.object.refund.amount_money.amount", Unit: source.UnitMinor, Currency: at("data.object.refund.amount_money.currency"), Direction: debits,
		Movement: "data.object.refund.id",
	}, {
		// Every later state makes the debit too, so that order and gaps do not matter.
		Key: "dispute", Type: squareDisputes,
		When:   []source.ConditionConfig{is("data.object.dispute.state", "EVIDENCE_REQUIRED", "PROCESSING", "WON", "LOST", "ACCEPTED")},
		Amount: "data.object.dispute.amount_money.amount", Unit: source.UnitMinor, Currency: at("data.object.dispute.amount_money.currency"), Direction: debits,
		Movement: "data.object.dispute.id",
	}, {
		Key: "dispute_won", Type: squareDisputes,
		When:   []source.ConditionConfig{is("data.object.dispute.state", "WON")},
		Amount: "data.object.dispute.amount_money.amount", Unit: source.UnitMinor, Currency: at("data.object.dispute.amount_money.currency"), Direction: credits,
		Movement: "data.object.dispute.id",
	}},
	Statuses: []source.StatusConfig{
		{Type: []string{"payment.created", "payment.updated"}, Object: "data.object.payment.id", Status: at("data.object.payment.status")},
		{Type: []string{"refund.created", "refund.updated"}, Object: "data.object.refund.id", Status: at("data.object.refund.status")},
		{Type: squareDisputes, Object: "data.object.dispute.id", Status: at("data.object.dispute.state")},
		{Type: []string{"payout.sent", "payout.paid", "payout.failed"}, Object: "data.object.payout.id", Status: at("data.object.payout.status")},
	},
	Ignored: []source.Note{
		{Types: []string{"order.created", "order.updated", "invoice.payment_made"}, Why: "payment events tell of the same money"},
	},
})

// The last is the name of older API versions.
var squareDisputes = []string{"dispute.created", "dispute.state.updated", "dispute.state.changed"}
