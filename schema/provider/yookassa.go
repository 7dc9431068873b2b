package provider

import (
	"net/netip"

	"hookledger/schema/source"
)

// YooKassa signs nothing: who sends from its addresses is believed to be YooKassa, and the
// body may have been changed by anybody on the way who can. Money is therefore not taken
// from it unless trust: body says so. Sources: SecurityHelper of the PHP and Python
// libraries, yookassa.ru/developers/using-api/webhooks, 2026-11.
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
})
