package provider

import (
	"time"

	"hookledger/schema/source"
)

// Plaid signs a JWT with the body's hash; the key is fetched by its ID, with the secret of
// the API. Events have no ID, and what is new must be fetched: two of them are never one.
// Source: plaid.com/docs/api/webhooks/webhook-verification, 2026-11.
var _ = register(source.Definition{
	Name: "plaid",
	Signature: source.Signature{
		Scheme: source.SchemePlaid, Header: "Plaid-Verification",
		BodyAuthenticated: true,
	},
	Knobs: []string{"client_id", "environment", "tolerance"},
	Tune: func(sig *source.Signature, c source.SignatureConfig, p *source.Problems) {
		if c.ClientID == "" {
			p.Add("signature.client_id", "is missing; keys are fetched from Plaid with it and the secret of the API")
		}
		sig.KeyHosts = []string{sig.Environment + ".plaid.com"}
	},
	Deadline: 10 * time.Second, // From memory.
	Event: source.EventConfig{
		ID: source.Locator{
			Join: []string{"item_id", "webhook_code"}, PerDelivery: true,
			Or: []source.Locator{{Path: "webhook_code", PerDelivery: true}},
		},
		Type: source.Locator{Join: []string{"webhook_type", "webhook_code"}, Or: []source.Locator{{Path: "webhook_code"}}},
	},
	Live:      source.LiveFlag{Paths: []string{"environment"}, Live: []string{"production"}, Test: []string{"sandbox", "development"}},
	Required:  map[string]string{"client_id": "CLIENT-ID"},
	NonEffect: "webhooks say that there is something to fetch; they carry no amount",
})
