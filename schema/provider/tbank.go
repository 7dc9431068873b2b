package provider

import (
	"strings"

	"hookledger/schema"
	"hookledger/schema/source"
)

// T-Bank (formerly Tinkoff) hashes the values of the fields of the root with the terminal's
// password. What is nested, such as DATA and Receipt, is not covered. There is no ID: an
// event is payment and status, and of partial operations the amount too. Notifications of
// linked accounts and cards have a request key in place of a payment. Amounts are kopecks.
// Sources: the bank's OpenAPI text, developer.tbank.ru/eacq/intro/developer/token, 2026-11.
var _ = register(source.Definition{
	Name: "tbank",
	Signature: source.Signature{
		Scheme: source.SchemeTBank,
		Covers: []string{"*"},
	},
	Knobs: []string{"terminal_key"},
	Event: source.EventConfig{Type: at("Status")},
	ID: func(_ source.Delivery, v *schema.Value) (string, error) {
		status, err := word(v, "Status")
		if err != nil {
			return "", err
		}
		id, err := word(v, "PaymentId")
		if err != nil {
			id, err = word(v, "RequestKey")
		}
		if err != nil {
			return "", err
		}
		id += ":" + status
		if amount, err := word(v, "Amount"); err == nil && strings.HasPrefix(status, "PARTIAL_") {
			id += ":" + amount
		}
		return id, nil
	},
	Success: source.SuccessConfig{Body: "OK"},
})
