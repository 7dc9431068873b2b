package provider

import "hookledger/schema/source"

// Coinbase Commerce signs the body, whose envelope changes at every attempt: the event
// inside it is what has an ID. Sources: coinbase-commerce-node 1.0.4,
// docs.cdp.coinbase.com/commerce (webhook fields, payment status), 2026-11.
//
// charge:confirmed credits the price of the charge in its local currency; a charge is
// confirmed once. charge:pending comes before, when the payment was seen but can still be
// lost in a reorganization. Charges without a price (donations) go to quarantine: what
// was paid stands in payments, in several currencies. Payments that came late, too high
// or too low (charge:delayed, charge:resolved, charge:failed) are for a person.
var _ = register(source.Definition{
	Name: "coinbasecommerce",
	Signature: source.Signature{
		Scheme: source.SchemeHMAC, Header: "X-Cc-Webhook-Signature",
		Algorithm: "hmac-sha256", Encoding: "hex", Template: "{body}",
		BodyAuthenticated: true,
	},
	Event:   source.EventConfig{ID: at("event.id"), Type: at("event.type"), Time: at("event.created_at"), TimeFormat: source.FormatRFC3339},
	Account: []string{"event.data.metadata.account_id"},
	Postings: []source.PostingConfig{{
		Type:   []string{"charge:confirmed"},
		Amount: "event.data.pricing.local.amount", Unit: source.UnitMajor, Currency: at("event.data.pricing.local.currency"), Direction: credits,
		Movement: "event.data.code",
	}},
	// The type is the status: the payload has a timeline and no status of its own.
	Statuses: []source.StatusConfig{{
		Type:   []string{"charge:created", "charge:pending", "charge:failed", "charge:delayed", "charge:resolved"},
		Object: "event.data.code", Status: at("event.type"),
	}},
	Success: source.SuccessConfig{Status: 200},
})
