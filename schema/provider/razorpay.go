package provider

import (
	"time"

	"hookledger/schema/source"
)

// Razorpay signs the body; the event's ID is a header that stays the same at every
// attempt and is not signed, so movements are named by what is in the body. Sources:
// razorpay npm 2.9.8, razorpay-go v1.3.3, razorpay.com/docs/webhooks (payments, refunds), 2026-11.
//
// payment.captured and order.paid tell of one payment; two payments of one order are two
// movements. A refund moves money when it is processed; refund.created may still fail.
// Razorpay refunds payments that were never captured by itself: those move nothing
// (payload.payment.entity.captured is false). Fees and taxes are the merchant's.
//
// A dispute moves money when it is lost, by amount_deducted. From memory, not verified:
// that field, the payout events of RazorpayX, and that a payout may be reversed without
// having been processed; a reversal makes the debit too, once.
var _ = register(source.Definition{
	Name: "razorpay",
	Signature: source.Signature{
		Scheme: source.SchemeHMAC, Header: "X-Razorpay-Signature",
		Algorithm: "hmac-sha256", Encoding: "hex", Template: "{body}",
		BodyAuthenticated: true,
	},
	Deadline: 5 * time.Second,
	Event:    source.EventConfig{ID: source.Locator{Header: "X-Razorpay-Event-Id"}, Type: at("event"), Time: at("created_at"), TimeFormat: source.FormatUnix},
	Live:     testsApart,
	Account:  []string{"payload.payout.entity.notes.account_id", "payload.payment.entity.notes.account_id"},
	Postings: []source.PostingConfig{{
		Key: "payment", Type: []string{"payment.captured", "order.paid"},
		Amount: "payload.payment.entity.amount", Unit: source.UnitMinor, Currency: at("payload.payment.entity.currency"), Direction: credits,
		Movement: "payload.payment.entity.id",
	}, {
		Type:   []string{"refund.processed"},
		When:   []source.ConditionConfig{not("payload.payment.entity.captured", "false")},
		Amount: "payload.refund.entity.amount", Unit: source.UnitMinor, Currency: at("payload.refund.entity.currency"), Direction: debits,
		Movement: "payload.refund.entity.id",
	}, {
		Type:   []string{"payment.dispute.lost"},
		Amount: "payload.dispute.entity.amount_deducted", Unit: source.UnitMinor, Currency: at("payload.dispute.entity.currency"), Direction: debits,
		Movement: "payload.dispute.entity.id",
	}, {
		Key: "payout", Type: []string{"payout.processed", "payout.reversed"},
		Amount: "payload.payout.entity.amount", Unit: source.UnitMinor, Currency: at("payload.payout.entity.currency"), Direction: debits,
		Movement: "payload.payout.entity.id",
	}, {
		Type:   []string{"payout.reversed"},
		Amount: "payload.payout.entity.amount", Unit: source.UnitMinor, Currency: at("payload.payout.entity.currency"), Direction: credits,
		Movement: "payload.payout.entity.id",
	}},
	Statuses: []source.StatusConfig{
		{Type: []string{"payment.authorized", "payment.failed"}, Object: "payload.payment.entity.id", Status: at("payload.payment.entity.status")},
		{Type: []string{"refund.created", "refund.failed", "refund.speed_changed"}, Object: "payload.refund.entity.id", Status: at("payload.refund.entity.status")},
		{
			Type:   []string{"payment.dispute.created", "payment.dispute.won", "payment.dispute.closed", "payment.dispute.under_review", "payment.dispute.action_required"},
			Object: "payload.dispute.entity.id", Status: at("payload.dispute.entity.status"),
		},
		{Type: []string{"payout.queued", "payout.initiated", "payout.rejected", "payout.failed"}, Object: "payload.payout.entity.id", Status: at("payload.payout.entity.status")},
	},
	Ignored: []source.Note{
		{Types: []string{"invoice.paid", "payment_link.paid", "subscription.charged", "qr_code.credited"}, Why: "payment.captured tells of the same money"},
		{Types: []string{"settlement.processed", "transfer.processed"}, Why: "moves between the merchant's own balances"},
	},
	Success: source.SuccessConfig{Status: 200},
})
