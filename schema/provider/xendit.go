package provider

import (
	"hookledger/schema"
	"hookledger/schema/source"
)

// Xendit sends a token that is the secret itself, and signs nothing of the body. Invoices
// have no word for their type but a status: theirs is invoice. and the status in lower
// case, such as invoice.paid. From memory, not verified: the fields.
var _ = register(source.Definition{
	Name: "xendit",
	Signature: source.Signature{
		Scheme: source.SchemeToken, Header: "X-Callback-Token",
	},
	Event: source.EventConfig{
		ID:   source.Locator{Header: "Webhook-Id", Or: []source.Locator{{Join: []string{"id", "status"}}}},
		Time: at("paid_at"), TimeFormat: source.FormatRFC3339,
	},
	Type: func(_ source.Delivery, v *schema.Value) (string, error) {
		return typeOrStatus(v, "event", "status", "invoice."), nil
	},
})
