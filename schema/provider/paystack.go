package provider

import (
	"time"

	"hookledger/schema/source"
)

// Paystack signs the body with the API secret key; there is no secret for webhooks alone,
// so rotating the one rotates the other at once. Header, algorithm and key are from
// secondary texts, what follows is from memory or from samples in public repositories,
// and not verified.
//
// There is no event ID: it is the event's name and the ID of what it is about. A refund
// has an ID in newer versions, else its reference; one with neither shares the name of its
// payment with every other refund of it, and goes to quarantine. charge.success credits. A refund moves
// money when it is processed. Disputes move nothing by themselves: an accepted one is
// refunded, and that refund is notified. transfer.success debits; transfer.reversed makes
// the debit too, once, and gives it back. transfer.failed was never paid.
//
// Amounts are in the hundredth of the currency, as numbers or as text. How amounts in
// XOF and RWF, which have no hundredths, are written is not known: such events go to
// quarantine.
var _ = register(source.Definition{
	Name: "paystack",
	Signature: source.Signature{
		Scheme: source.SchemeHMAC, Header: "X-Paystack-Signature",
		Algorithm: "hmac-sha512", Encoding: "hex", Template: "{body}",
		SecretPrefixes:    []string{"sk_live_", "sk_test_"},
		BodyAuthenticated: true,
	},
	Deadline: 30 * time.Second, // From memory.
	Event: source.EventConfig{
		ID: source.Locator{Join: []string{"event", "data.id"}, Or: []source.Locator{
			{Join: []string{"event", "data.refund_reference"}},
			{Join: []string{"event", "data.reference"}},
			{Join: []string{"event", "data.transaction_reference"}},
		}},
		Type: at("event"), Time: source.Locator{Path: "data.paid_at", Or: []source.Locator{{Path: "data.transferred_at"}, {Path: "data.resolvedAt"}, {Path: "data.updated_at"}, {Path: "data.created_at"}}},
		TimeFormat: source.FormatRFC3339,
	},
	Live:    source.LiveFlag{Paths: []string{"data.domain"}, Live: []string{"live"}, Test: []string{"test"}},
	Account: []string{"data.metadata.account_id", "data.recipient.metadata.account_id"},
	Postings: []source.PostingConfig{{
		Type:   []string{"charge.success"},
		Amount: "data.amount", Unit: source.UnitMinor, Currency: at("data.currency"), Direction: credits,
		Movement: "data.reference",
	}, {
		Key: "refund_unnamed", Type: []string{"refund.processed"}, When: []source.ConditionConfig{blank("data.id"), blank("data.refund_reference")},
		Unclear: "without an ID and a reference it cannot be told from another refund of the same payment",
	}, {
		Type:   []string{"refund.processed"},
		Amount: "data.amount", Unit: source.UnitMinor, Currency: at("data.currency"), Direction: debits,
	}, {
		Key: "transfer", Type: []string{"transfer.success", "transfer.reversed"},
		Amount: "data.amount", Unit: source.UnitMinor, Currency: at("data.currency"), Direction: debits,
		Movement: "data.reference",
	}, {
		Type:   []string{"transfer.reversed"},
		Amount: "data.amount", Unit: source.UnitMinor, Currency: at("data.currency"), Direction: credits,
		Movement: "data.reference",
	}},
	// Events about one object share their IDs, so the later status wins.
	Statuses: []source.StatusConfig{
		{Type: []string{"charge.failed", "transfer.failed"}, Object: "data.reference", Status: at("data.status"), LatestWins: true},
		{Type: []string{"refund.pending", "refund.processing", "refund.failed"}, Object: "data.transaction_reference", Status: at("data.status"), LatestWins: true},
		{Type: []string{"charge.dispute.create", "charge.dispute.remind", "charge.dispute.resolve"}, Object: "data.id", Status: at("data.status"), LatestWins: true},
	},
	Ignored: []source.Note{
		{Types: []string{"invoice.create", "invoice.update", "invoice.payment_failed", "subscription.create"}, Why: "charge.success tells of each payment"},
	},
	Exponents: map[string]int{"XOF": source.UnknownExponent, "RWF": source.UnknownExponent},
	Success:   source.SuccessConfig{Status: 200},
})
