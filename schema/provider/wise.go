package provider

import "hookledger/schema/source"

// Wise signs the body with RSA. The secrets of a source are Wise's public keys, in PEM, as
// its documentation publishes them for production and sandbox. The ID of a delivery stays
// the same when it is repeated; it is a header and not signed. Wise counts exactly 200 as
// success. Sources: transferwise/digital-signatures-examples, docs.wise.com (webhooks),
// 2026-11.
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
})
