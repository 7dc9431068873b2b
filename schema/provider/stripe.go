package provider

import "hookledger/schema/source"

// Stripe signs "t.body" with the whole whsec_ text as key. Sources: stripe-go v84.4.1
// webhook/client.go, docs.stripe.com/webhooks, 2026-11.
var _ = register(source.Definition{
	Name: "stripe",
	Signature: source.Signature{
		Scheme:            source.SchemeStripe,
		Header:            "Stripe-Signature",
		TimestampFormat:   source.FormatUnix,
		SecretPrefixes:    []string{"whsec_"},
		BodyAuthenticated: true,
	},
	Knobs: []string{"tolerance"},
	Event: source.EventConfig{
		ID:   source.Locator{Path: "id"},
		Type: source.Locator{Path: "type"},
		// Seconds in v1 events, RFC 3339 in v2 ("thin") ones.
		Time: source.Locator{Path: "created"},
	},
	Livemode: "livemode",
	Postings: []source.PostingConfig{{
		Type: []string{"payment_intent.succeeded"},
		// What was received, not what was asked for: they differ for partial captures.
		Amount:    "data.object.amount_received",
		Unit:      source.UnitMinor,
		Currency:  source.Locator{Path: "data.object.currency"},
		Direction: source.Direction{Always: source.Credit},
		// A payment intent succeeds once, so it is one movement.
		Movement: "data.object.id",
	}},
})
