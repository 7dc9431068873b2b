package provider

import "hookledger/schema/source"

// Lemon Squeezy signs the body. The name of the event is in a header and, signed, in the
// body: the latter counts. All of this is from memory and not verified.
//
// There is no event ID: it is the event's name and the ID of what it is about.
// order_created credits an order that is paid. The first payment of a subscription is its
// order, so subscription_payment_success credits renewals alone.
//
// refunded_amount is the sum of all refunds so far, and no event holds the sum before. So
// the first refund of an order debits that sum, and a second one, with another sum, goes
// to quarantine (effect_mismatch) or stands as a conflict for a person. An order that says
// it is refunded in full and has no refunded_amount debits its total.
//
// Amounts are in cents; how currencies without cents are written is not known, and such
// events go to quarantine.
var _ = register(source.Definition{
	Name: "lemonsqueezy",
	Signature: source.Signature{
		Scheme: source.SchemeHMAC, Header: "X-Signature",
		Algorithm: "hmac-sha256", Encoding: "hex", Template: "{body}",
		BodyAuthenticated: true,
	},
	Event: source.EventConfig{
		ID: source.Locator{Join: []string{"meta.event_name", "data.id"}}, Type: at("meta.event_name"),
		Time:       source.Locator{Path: "data.attributes.updated_at", Or: []source.Locator{{Path: "data.attributes.created_at"}}},
		TimeFormat: source.FormatRFC3339,
	},
	Live:    source.LiveFlag{Paths: []string{"meta.test_mode", "data.attributes.test_mode"}, Live: []string{"false"}, Test: []string{"true"}},
	Account: []string{"meta.custom_data.account_id"},
	Postings: []source.PostingConfig{{
		Type:   []string{"order_created"},
		When:   []source.ConditionConfig{is("data.attributes.status", "paid")},
		Amount: "data.attributes.total", Unit: source.UnitMinor, Currency: at("data.attributes.currency"), Direction: credits,
		Movement: "data.id",
	}, {
		Key: "order_refunded", Type: []string{"order_refunded"},
		When:   []source.ConditionConfig{is("data.attributes.status", "refunded")},
		Amount: "data.attributes.refunded_amount", AmountElse: "data.attributes.total",
		Unit: source.UnitMinor, Currency: at("data.attributes.currency"), Direction: debits,
		Movement: "data.id",
	}, {
		Key: "order_refunded", Type: []string{"order_refunded"},
		When:   []source.ConditionConfig{is("data.attributes.status", "partial_refund")},
		Amount: "data.attributes.refunded_amount",
		Unit:   source.UnitMinor, Currency: at("data.attributes.currency"), Direction: debits,
		Movement: "data.id",
	}, {
		Type:   []string{"subscription_payment_success"},
		When:   []source.ConditionConfig{not("data.attributes.billing_reason", "initial")},
		Amount: "data.attributes.total", Unit: source.UnitMinor, Currency: at("data.attributes.currency"), Direction: credits,
		Movement: "data.id",
	}, {
		Type:   []string{"subscription_payment_refunded"},
		When:   []source.ConditionConfig{not("data.attributes.billing_reason", "initial")},
		Amount: "data.attributes.refunded_amount", Unit: source.UnitMinor, Currency: at("data.attributes.currency"), Direction: debits,
		Movement: "data.id",
	}},
	// Events about one object share their IDs, so the later status wins.
	Statuses: []source.StatusConfig{{
		Type:   []string{"subscription_payment_failed", "subscription_created", "subscription_updated", "subscription_cancelled", "subscription_expired"},
		Object: "data.id", Status: at("data.attributes.status"), LatestWins: true,
	}},
	Exponents: map[string]int{
		"JPY": source.UnknownExponent, "KRW": source.UnknownExponent, "CLP": source.UnknownExponent, "ISK": source.UnknownExponent,
		"VND": source.UnknownExponent, "PYG": source.UnknownExponent, "UGX": source.UnknownExponent, "RWF": source.UnknownExponent,
		"XAF": source.UnknownExponent, "XOF": source.UnknownExponent, "XPF": source.UnknownExponent,
		"BHD": source.UnknownExponent, "JOD": source.UnknownExponent, "KWD": source.UnknownExponent, "OMR": source.UnknownExponent, "TND": source.UnknownExponent,
	},
	Success: source.SuccessConfig{Status: 200},
})
