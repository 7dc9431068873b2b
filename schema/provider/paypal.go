package provider

import "hookledger/schema/source"

// PayPal signs with a certificate that the delivery names, and that is fetched from
// PayPal's own hosts alone. Sources: PayPal-Python-SDK notifications.py, PayPal-Java-SDK
// ValidateCertTest.java, developer.paypal.com/api/rest/webhooks/rest, 2026-11.
var _ = register(source.Definition{
	Name: "paypal",
	Signature: source.Signature{
		Scheme: source.SchemePayPal, Header: "Paypal-Transmission-Sig",
		// Of the body a CRC-32 is signed: what TLS delivers is what was signed.
		BodyAuthenticated: true,
	},
	Knobs: []string{"webhook_id", "environment"},
	Tune: func(sig *source.Signature, c source.SignatureConfig, p *source.Problems) {
		if c.WebhookID == "" {
			p.Add("signature.webhook_id", "is missing; it is the ID of the webhook in PayPal's settings, and a part of what is signed")
		}
		sig.KeyHosts = []string{"api.paypal.com"}
		if sig.Environment == source.Sandbox {
			sig.KeyHosts = []string{"api.sandbox.paypal.com"}
		}
	},
	Event: source.EventConfig{
		ID: at("id"), Type: at("event_type"),
		Time: at("create_time"), TimeFormat: source.FormatRFC3339,
	},
})
