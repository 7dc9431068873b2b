package provider

import (
	"strings"
	"time"

	"hookledger/schema"
	"hookledger/schema/source"
)

// Xendit sends a token that is the secret itself, and signs nothing of the body. Invoices
// have no word for their type but a status: theirs is invoice. and the status in lower
// case, such as invoice.paid. From memory, not verified: the fields.
//
// An invoice that is paid credits what was paid, once, also when it is settled later. Amounts
// are numbers in units of the currency, whole ones for IDR. Refunds and payouts carry a reference
// of their own, not the invoice's external_id: they go to quarantine unless data.reference_id,
// in the account's list, is known to hold the same account.
var _ = register(source.Definition{
	Name: "xendit",
	Signature: source.Signature{
		Scheme: source.SchemeToken, Header: "X-Callback-Token",
	},
	Deadline: 30 * time.Second, // From memory.
	Event: source.EventConfig{
		ID:   source.Locator{Header: "Webhook-Id", Or: []source.Locator{{Join: []string{"id", "status"}}, {Join: []string{"event", "data.id"}}}},
		Time: source.Locator{Path: "paid_at", Or: []source.Locator{{Path: "updated"}, {Path: "created"}}}, TimeFormat: source.FormatRFC3339,
	},
	Type: func(_ source.Delivery, v *schema.Value) (string, error) {
		return typeOrStatus(v, "event", "status", "invoice."), nil
	},
	ComposeType: func(set func(string, any), eventType, _ string) string {
		if status, invoice := strings.CutPrefix(eventType, "invoice."); invoice {
			set("status", strings.ToUpper(status))
		} else {
			set("event", eventType)
		}
		return ""
	},
	Live:        testsApart,
	AccountNote: []string{"Refunds and payouts carry data.reference_id in its place: add it where both hold the same account."},
	Account:     []string{"external_id"},
	Postings: []source.PostingConfig{{
		Key: "invoice", Type: []string{"invoice.paid", "invoice.settled"},
		Amount: "paid_amount", AmountElse: "amount", Unit: source.UnitMajor, Currency: at("currency"), Direction: credits,
		Movement: "id",
	}, {
		Key: "refund", Type: []string{"refund.succeeded"},
		Amount: "data.amount", Unit: source.UnitMajor, Currency: at("data.currency"), Direction: debits,
		Movement: "data.id",
	}, {
		Key: "payout", Type: []string{"payout.succeeded", "payout.reversed"},
		Amount: "data.amount", Unit: source.UnitMajor, Currency: at("data.currency"), Direction: debits,
		Movement: "data.id",
	}, {
		Key: "payout_reversed", Type: []string{"payout.reversed"},
		Amount: "data.amount", Unit: source.UnitMajor, Currency: at("data.currency"), Direction: credits,
		Movement: "data.id",
	}},
	Statuses: []source.StatusConfig{
		{Type: []string{"invoice.expired", "invoice.pending"}, Object: "id", Status: at("status")},
		{Type: []string{"refund.failed", "payout.failed"}, Object: "data.id", Status: at("data.status")},
	},
	Ignored: []source.Note{{Types: []string{"payment.succeeded", "payment.capture", "capture.succeeded"}, Why: "the invoice tells of the same money; add a rule where payments have none"}},
})
