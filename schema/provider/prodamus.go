package provider

import (
	"hookledger/schema"
	"hookledger/schema/source"
)

// Prodamus signs all fields of its form. order_id is its own number, order_num the shop's.
// A number that was denied or cancelled may still be paid, so those are events of their
// own. Prodamus counts exactly 200 as success. Second-hand: references/hmac.md of the
// provider's integration guide, as quoted in public repositories, 2026-11.
//
// A payment credits its sum, decimal text; each payment of a subscription has an order_id of
// its own. Refunds are not notified.
var _ = register(source.Definition{
	Name: "prodamus",
	Signature: source.Signature{
		Scheme: source.SchemeProdamus, Header: "Sign",
		BodyAuthenticated: true,
	},
	Event: source.EventConfig{
		Body: source.BodyForm,
		Type: at("payment_status"),
		Time: at("date"), TimeFormat: source.FormatRFC3339,
	},
	ID: func(_ source.Delivery, v *schema.Value) (string, error) {
		id, err := word(v, "order_id")
		if err != nil {
			return "", err
		}
		if status, err := word(v, "payment_status"); err == nil && status != "success" {
			id += ":" + status
		}
		return id, nil
	},
	// Sent in demo mode alone, which has a key of its own.
	Live:    source.LiveFlag{Paths: []string{"demo_mode"}, Live: []string{"0", "false", ""}, Test: []string{"1", "true"}, Missing: "live"},
	Account: []string{"customer_extra", "order_num"},
	Postings: []source.PostingConfig{{
		Type:   []string{"success"},
		Amount: "sum", Unit: source.UnitMajor, Currency: at("currency"), Direction: credits,
		Movement: "order_id",
	}},
	Statuses: []source.StatusConfig{{Type: []string{"order_canceled", "order_denied"}, Object: "order_id", Status: at("payment_status")}},
})
