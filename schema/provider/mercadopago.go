package provider

import (
	"time"

	"hookledger/schema/source"
)

// Mercado Pago signs the ID in the URL, the request ID and the time, and nothing of the
// body. Notifications name what is to be fetched. QR-code notifications are never signed,
// so they are refused. How old a notification may be is not judged unless
// signature.tolerance says so: whether repeats are signed anew is not documented.
// Sources: webhook helpers of the npm and Go libraries, mercadopago.com/developers, 2026-11.
var _ = register(source.Definition{
	Name: "mercadopago",
	Signature: source.Signature{
		Scheme: source.SchemeMercadoPago, Header: "X-Signature", IDHeader: "X-Request-Id",
		Tolerance: source.NoTolerance,
	},
	Knobs:    []string{"tolerance"},
	Deadline: 22 * time.Second, // From memory.
	Event: source.EventConfig{
		// A number or a text.
		ID:   source.Locator{Join: []string{"id"}, Or: []source.Locator{{Query: "data.id", PerDelivery: true}, {Query: "id", PerDelivery: true}}},
		Type: source.Locator{Path: "action", Or: []source.Locator{{Path: "type"}, {Path: "topic"}}},
		Time: at("date_created"), TimeFormat: source.FormatRFC3339,
	},
	Live:      source.LiveFlag{Paths: []string{"live_mode"}, Live: []string{"true"}, Test: []string{"false"}},
	NonEffect: "notifications name what is to be fetched; they carry no amount, and their body is not signed",
})
