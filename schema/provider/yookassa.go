package provider

import (
	"net/netip"

	"hookledger/schema/source"
)

// YooKassa signs nothing: who sends from its addresses is believed to be YooKassa, and the
// body may have been changed by anybody on the way who can. Money is therefore not taken
// from it unless trust: body says so. Sources: SecurityHelper of the PHP and Python
// libraries, yookassa.ru/developers/using-api/webhooks, 2026-11.
//
// Payments credit, refunds and payouts debit, each by an ID of its own; a payment that is
// captured in part succeeds with what was captured. There are no events for chargebacks.
// Amounts are decimal text. From memory, not verified: that refunds and payouts carry metadata.
var _ = register(source.Definition{
	Name: "yookassa",
	Signature: source.Signature{
		Scheme: source.SchemeNetworks,
		Networks: []netip.Prefix{
			netip.MustParsePrefix("185.71.76.0/27"), netip.MustParsePrefix("185.71.77.0/27"),
			netip.MustParsePrefix("77.75.153.0/25"), netip.MustParsePrefix("77.75.154.128/25"),
			netip.MustParsePrefix("77.75.156.11/32"), netip.MustParsePrefix("77.75.156.35/32"),
			netip.MustParsePrefix("2a02:5180:0:1509::/64"), netip.MustParsePrefix("2a02:5180:0:2655::/64"),
			netip.MustParsePrefix("2a02:5180:0:1533::/64"), netip.MustParsePrefix("2a02:5180:0:2669::/64"),
		},
	},
	Knobs: []string{"networks"},
	Event: source.EventConfig{
		ID: source.Locator{Join: []string{"event", "object.id"}}, Type: at("event"),
		Time: at("object.created_at"), TimeFormat: source.FormatRFC3339,
	},
	// Refunds have none.
	Live:    source.LiveFlag{Paths: []string{"object.test"}, Live: []string{"false"}, Test: []string{"true"}},
	Account: []string{"object.metadata.account_id"},
	Postings: []source.PostingConfig{{
		Type:   []string{"payment.succeeded"},
		Amount: "object.amount.value", Unit: source.UnitMajor, Currency: at("object.amount.currency"), Direction: credits,
		Movement: "object.id",
	}, {
		Type:   []string{"refund.succeeded"},
		Amount: "object.amount.value", Unit: source.UnitMajor, Currency: at("object.amount.currency"), Direction: debits,
		Movement: "object.id",
	}, {
		Type:   []string{"payout.succeeded"},
		Amount: "object.amount.value", Unit: source.UnitMajor, Currency: at("object.amount.currency"), Direction: debits,
		Movement: "object.id",
	}},
	Statuses: []source.StatusConfig{{
		Type:   []string{"payment.waiting_for_capture", "payment.canceled", "refund.canceled", "payout.canceled"},
		Object: "object.id", Status: at("object.status"),
	}},
	Ignored: []source.Note{{Types: []string{"deal.closed"}, Why: "payments and payouts of the deal are told of by themselves"}},
})
