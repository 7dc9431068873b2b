package provider

import "hookledger/schema/source"

// Wise signs the body with RSA. The secrets of a source are Wise's public keys, in PEM, as
// its documentation publishes them for production and sandbox. The ID of a delivery stays
// the same when it is repeated; it is a header and not signed. Wise counts exactly 200 as
// success. Sources: transferwise/digital-signatures-examples, docs.wise.com (webhooks),
// 2026-11.
//
// balances#credit credits a balance; it names no transaction, so the movement is the delivery.
// balances#update tells of credits too: only its debits move money, so that nobody is paid
// twice. transfers#state-change carries no amount. Amounts are numbers in units of the
// currency. From memory, not verified: the fields of balances#update.
var _ = register(source.Definition{
	Name: "wise",
	Signature: source.Signature{
		Scheme: source.SchemeRSA, Header: "X-Signature-Sha256",
		SecretPrefixes:    []string{"-----BEGIN "},
		BodyAuthenticated: true,
	},
	Event: source.EventConfig{
		ID: source.Locator{Header: "X-Delivery-Id", Or: []source.Locator{
			{Join: []string{"subscription_id", "event_type", "sent_at"}, Separator: "|"},
		}},
		Type: at("event_type"),
		Time: at("data.occurred_at"), TimeFormat: source.FormatRFC3339,
	},
	Account: []string{"data.resource.id"},
	Postings: []source.PostingConfig{{
		Type:   []string{"balances#credit"},
		Amount: "data.amount", Unit: source.UnitMajor, Currency: at("data.currency"), Direction: credits,
	}, {
		Key: "balances#debit", Type: []string{"balances#update"}, When: []source.ConditionConfig{is("data.transaction_type", "debit")},
		Amount: "data.amount", Unit: source.UnitMajor, Currency: at("data.currency"), Direction: debits,
		Movement: "data.step_id",
	}},
	Statuses: []source.StatusConfig{{
		Type:   []string{"transfers#state-change", "transfers#active-cases", "transfers#payout-failure"},
		When:   []source.ConditionConfig{present("data.current_state")},
		Object: "data.resource.id", Status: at("data.current_state"),
	}},
})
