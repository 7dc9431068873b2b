package provider

// Standard Webhooks 1.0.0 sign "id.timestamp.body"; the ID is a header and stays the
// same at every attempt. Source: spec/standard-webhooks.md of
// github.com/standard-webhooks/standard-webhooks, 2026-08. The body is the sender's
// own, so its meaning is configured as for a generic source.
var _ = register(definition{
	name: "standardwebhooks",
	signature: Signature{
		Scheme:            SchemeStandardWebhooks,
		Header:            "Webhook-Signature",
		IDHeader:          "Webhook-Id",
		TimestampHeader:   "Webhook-Timestamp",
		TimestampFormat:   formatUnix,
		SecretPrefixes:    []string{"whsec_", "whpk_"},
		BodyAuthenticated: true,
	},
	knobs: []string{"tolerance", "headers"},
	tune: func(sig *Signature, c SignatureConfig, p *problems) {
		switch c.Headers {
		case "", "webhook":
		case "svix":
			sig.Header, sig.IDHeader, sig.TimestampHeader = "Svix-Signature", "Svix-Id", "Svix-Timestamp"
		default:
			p.oneOf("signature.headers", c.Headers, "webhook", "svix")
		}
	},
	event: EventConfig{
		// The header of the ID follows signature.headers: see newEvent.
		ID:   Locator{Header: "Webhook-Id"},
		Type: Locator{Path: "type"},
		Time: Locator{Path: "timestamp"},
	},
})
