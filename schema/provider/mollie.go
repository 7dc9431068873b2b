package provider

import (
	"time"

	"hookledger/schema/source"
)

// Mollie's next-gen webhooks sign the body; during a rotation the header is repeated, and
// the prefix may be missing. Sources: mollie-api-php 53e49e71 SignatureValidator,
// docs.mollie.com (next-gen webhooks; changelog of payment, refund, chargeback and capture
// events), 2026-11. Webhooks that name only a payment are mollie-classic.
//
// The entity is in the event where the subscription asks for full payloads. A simple
// payload carries an ID to fetch, and moves nothing.
//
// payment.paid credits, refund.refunded debits, a chargeback debits and is given back
// when it is reversed; each has an ID of its own. Of a payment that is captured in parts,
// each capture credits and the payment itself does not. payment-link.paid and
// sales-invoice.paid tell of a payment that has its own payment.paid, and
// balance-transaction.created of all of them: they move nothing, so that nobody is paid
// twice. From memory, not verified: the fields of captures and chargebacks, and that
// payments captured in parts have captureMode or amountCaptured.
//
// Amounts are decimal strings. JPY and ISK are written without decimals, as in ISO 4217.
var _ = register(source.Definition{
	Name: "mollie",
	Signature: source.Signature{
		Scheme: source.SchemeHMAC, Header: "X-Mollie-Signature",
		Algorithm: "hmac-sha256", Encoding: "hex", Prefix: "sha256=", Template: "{body}",
		PrefixOptional: true, Repeated: true,
		BodyAuthenticated: true,
	},
	Deadline: 15 * time.Second,
	Event: source.EventConfig{
		ID: at("id"), Type: source.Locator{Path: "type", Or: []source.Locator{{Path: "event_type"}}},
		Time: at("createdAt"), TimeFormat: source.FormatRFC3339,
	},
	Live:    source.LiveFlag{Paths: []string{"mode", "_embedded.entity.mode"}, Live: []string{"live"}, Test: []string{"test"}},
	Account: []string{"_embedded.entity.metadata.account_id"},
	Postings: []source.PostingConfig{{
		Type: []string{"payment.paid"},
		When: []source.ConditionConfig{
			present("_embedded.entity"), not("_embedded.entity.captureMode", "manual"), absent("_embedded.entity.amountCaptured"),
		},
		Amount: "_embedded.entity.amount.value", Unit: source.UnitMajor, Currency: at("_embedded.entity.amount.currency"), Direction: credits,
		Movement: "_embedded.entity.id",
	}, {
		Type:   []string{"capture.succeeded"},
		When:   []source.ConditionConfig{present("_embedded.entity")},
		Amount: "_embedded.entity.amount.value", Unit: source.UnitMajor, Currency: at("_embedded.entity.amount.currency"), Direction: credits,
		Movement: "_embedded.entity.id",
	}, {
		Type:   []string{"refund.refunded"},
		When:   []source.ConditionConfig{present("_embedded.entity")},
		Amount: "_embedded.entity.amount.value", Unit: source.UnitMajor, Currency: at("_embedded.entity.amount.currency"), Direction: debits,
		Movement: "_embedded.entity.id",
	}, {
		Key: "chargeback", Type: []string{"chargeback.received", "chargeback.reversed"},
		When:   []source.ConditionConfig{present("_embedded.entity")},
		Amount: "_embedded.entity.amount.value", Unit: source.UnitMajor, Currency: at("_embedded.entity.amount.currency"), Direction: debits,
		Movement: "_embedded.entity.id",
	}, {
		Type:   []string{"chargeback.reversed"},
		When:   []source.ConditionConfig{present("_embedded.entity")},
		Amount: "_embedded.entity.amount.value", Unit: source.UnitMajor, Currency: at("_embedded.entity.amount.currency"), Direction: credits,
		Movement: "_embedded.entity.id",
	}},
	// The type is the status. A simple payload has one too.
	Statuses: []source.StatusConfig{{
		Type: []string{
			"payment.authorized", "payment.pending", "payment.failed", "payment.canceled", "payment.expired",
			"refund.queued", "refund.pending", "refund.processing", "refund.failed", "refund.canceled", "capture.failed",
		},
		When: []source.ConditionConfig{present("entityId")}, Object: "entityId", Status: at("type"),
	}},
	Ignored: []source.Note{
		{Types: []string{"payment-link.paid", "sales-invoice.paid", "balance-transaction.created"}, Why: "payment.paid tells of the same money"},
	},
	Success: source.SuccessConfig{Status: 200},
})
