package provider

import (
	"hookledger/schema"
	"hookledger/schema/source"
)

// Flutterwave's v3 webhooks send a token that is the secret itself, and sign nothing of the
// body. Charges are identified by their ID alone, what else there is by event and ID: the
// numbers of transfers are others. From memory, not verified: the fields.
var _ = register(source.Definition{
	Name: "flutterwave-v3",
	Signature: source.Signature{
		Scheme: source.SchemeToken, Header: "Verif-Hash",
	},
	Event: source.EventConfig{
		Type: source.Locator{Path: "event", Or: []source.Locator{{Path: "event\\.type"}}},
		Time: at("data.created_at"), TimeFormat: source.FormatRFC3339,
	},
	ID: func(_ source.Delivery, v *schema.Value) (string, error) {
		event, err := word(v, "event")
		if err != nil {
			return "", err
		}
		id, err := word(v, "data.id")
		if err != nil || event == "charge.completed" {
			return id, err
		}
		return event + ":" + id, nil
	},
})
