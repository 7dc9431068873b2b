package provider

import (
	"time"

	"hookledger/schema/source"
)

// Standard Webhooks 1.0.0 sign "id.timestamp.body"; the ID is a header and stays the
// same at every attempt. Source: spec/standard-webhooks.md of
// github.com/standard-webhooks/standard-webhooks, 2026-08. The body is the sender's
// own, so its meaning is configured as for a generic source.
var _ = register(source.Definition{
	Name: "standardwebhooks",
	Signature: source.Signature{
		Scheme:            source.SchemeStandardWebhooks,
		Header:            "Webhook-Signature",
		IDHeader:          "Webhook-Id",
		TimestampHeader:   "Webhook-Timestamp",
		TimestampFormat:   source.FormatUnix,
		SecretPrefixes:    []string{"whsec_", "whpk_"},
		BodyAuthenticated: true,
	},
	Knobs: []string{"tolerance", "headers"},
	Tune: func(sig *source.Signature, c source.SignatureConfig, p *source.Problems) {
		switch c.Headers {
		case "", "webhook":
		case "svix":
			sig.Header, sig.IDHeader, sig.TimestampHeader = "Svix-Signature", "Svix-Id", "Svix-Timestamp"
		default:
			p.OneOf("signature.headers", c.Headers, "webhook", "svix")
		}
	},
	Deadline: 15 * time.Second, // 15 to 30 s.
	Event: source.EventConfig{
		// The header of the ID follows signature.headers: the engine takes IDHeader.
		ID:   source.Locator{Header: "Webhook-Id"},
		Type: source.Locator{Path: "type"},
		Time: source.Locator{Path: "timestamp"},
	},
})
