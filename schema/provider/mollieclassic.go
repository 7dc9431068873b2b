package provider

import (
	"time"

	"hookledger/schema/source"
)

// Mollie's classic webhooks carry the ID of what changed, in a form, and are not signed at
// all. The same ID is sent for a payment, its refunds and its chargebacks, so every
// delivery is an event of its own, kept for whoever fetches. Sources: mollie-api-php
// docs/webhooks.md, mollie/api-documentation overview/webhooks.rst, 2026-11.
var _ = register(source.Definition{
	Name:      "mollie-classic",
	Signature: source.Signature{Scheme: source.SchemeNone},
	Deadline:  15 * time.Second,
	Event: source.EventConfig{
		Body: source.BodyForm,
		ID:   source.Locator{Path: "id", PerDelivery: true},
		Type: source.Locator{Const: "changed"},
	},
	Live:      testsApart,
	NonEffect: "webhooks name what changed and is to be fetched; they are not signed, and carry no amount",
})
