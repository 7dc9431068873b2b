package provider

import (
	"time"

	"hookledger/schema/source"
)

// Flutterwave v4 signs the body, where v3 sent the secret itself. Source: the signature
// cases of developer.flutterwave.com/docs/webhooks as quoted by others; the names of
// fields and events are from memory and not verified.
//
// charge.completed is sent for charges that failed, too: only succeeded ones credit.
// Amounts are numbers in units of the currency. Refunds, chargebacks and transfers are
// status alone: no documented example tells whether their amount is that of the movement.
// A source that knows adds rules.
var _ = register(source.Definition{
	Name: "flutterwave-v4",
	Signature: source.Signature{
		Scheme: source.SchemeHMAC, Header: "Flutterwave-Signature",
		Algorithm: "hmac-sha256", Encoding: "base64", Template: "{body}",
		BodyAuthenticated: true,
	},
	Deadline: 60 * time.Second, // From memory.
	Event: source.EventConfig{
		ID:   source.Locator{Path: "webhook_id", Or: []source.Locator{{Join: []string{"type", "data.id"}}}},
		Type: at("type"), Time: at("timestamp"), TimeFormat: source.FormatUnixMS,
	},
	Live:    testsApart,
	Account: []string{"data.meta.account_id", "data.customer.id"},
	Postings: []source.PostingConfig{{
		Type:   []string{"charge.completed"},
		When:   []source.ConditionConfig{is("data.status", "succeeded")},
		Amount: "data.amount", Unit: source.UnitMajor, Currency: at("data.currency"), Direction: credits,
		Movement: "data.id",
	}},
	Statuses: []source.StatusConfig{{
		Type: []string{
			"charge.completed", "charge.failed", "refund.completed", "refund.failed", "chargeback.created", "chargeback.updated",
			"transfer.completed", "transfer.failed", "transfer.disburse",
		},
		Object: "data.id", Status: at("data.status"),
	}},
	Success: source.SuccessConfig{Status: 200},
})
