package provider

// Stripe signs "t.body" with the whole whsec_ text as key. Sources: stripe-go v84.4.1
// webhook/client.go, docs.stripe.com/webhooks, 2026-11.
var _ = register(definition{
	name: "stripe",
	signature: Signature{
		Scheme:            SchemeStripe,
		Header:            "Stripe-Signature",
		TimestampFormat:   formatUnix,
		SecretPrefixes:    []string{"whsec_"},
		BodyAuthenticated: true,
	},
	knobs: []string{"tolerance"},
	event: EventConfig{
		ID:   Locator{Path: "id"},
		Type: Locator{Path: "type"},
		// Seconds in v1 events, RFC 3339 in v2 ("thin") ones.
		Time: Locator{Path: "created"},
	},
	livemode: "livemode",
	postings: []PostingConfig{{
		Type: []string{"payment_intent.succeeded"},
		// What was received, not what was asked for: they differ for partial captures.
		Amount:    "data.object.amount_received",
		Unit:      unitMinor,
		Currency:  Locator{Path: "data.object.currency"},
		Direction: Direction{Always: directionCredit},
		// A payment intent succeeds once, so it is one movement.
		Movement: "data.object.id",
	}},
})
