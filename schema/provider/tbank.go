package provider

import (
	"strings"
	"time"

	"hookledger/schema"
	"hookledger/schema/source"
)

// T-Bank (formerly Tinkoff) hashes the values of the fields of the root with the terminal's
// password. What is nested, such as DATA and Receipt, is not covered. There is no ID: an
// event is payment and status, and of partial operations the amount too. Notifications of
// linked accounts and cards have a request key in place of a payment. Amounts are kopecks.
// Sources: the bank's OpenAPI text, developer.tbank.ru/eacq/intro/developer/token, 2026-11.
//
// CONFIRMED credits, in roubles; a payment is confirmed once. AUTHORIZED only reserves, and
// REVERSED gives back what was reserved. Refunds go to quarantine: what their amount means is
// not documented. Chargebacks are not notified.
var _ = register(source.Definition{
	Name: "tbank",
	Signature: source.Signature{
		Scheme: source.SchemeTBank,
		Covers: []string{"*"},
	},
	Knobs:    []string{"terminal_key"},
	Deadline: 10 * time.Second,
	Event:    source.EventConfig{Type: at("Status")},
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
	// From memory, not verified: only the names of test terminals end so.
	Live:    source.LiveFlag{Paths: []string{"TerminalKey"}, Live: []string{"*"}, Test: []string{"*DEMO"}},
	Success: source.SuccessConfig{Body: "OK"},
	Account: []string{"OrderId"},
	Postings: []source.PostingConfig{{
		Type: []string{"CONFIRMED"}, When: []source.ConditionConfig{is("Success", "true")},
		Amount: "Amount", Unit: source.UnitMinor, Currency: source.Locator{Const: "RUB"}, Direction: credits,
		Movement: "PaymentId",
	}, {
		Key: "refund", Type: []string{"REFUNDED", "PARTIAL_REFUNDED"}, When: []source.ConditionConfig{is("Success", "true")},
		Unclear: "whether Amount is what was refunded now, all that was, or what remains is not documented",
	}},
	Statuses: []source.StatusConfig{{
		Type:   []string{"AUTHORIZED", "REJECTED", "REVERSED", "PARTIAL_REVERSED", "CANCELED", "AUTH_FAIL", "DEADLINE_EXPIRED"},
		When:   []source.ConditionConfig{present("PaymentId")},
		Object: "PaymentId", Status: at("Status"),
	}},
	Ignored: []source.Note{{Types: []string{"COMPLETED", "ACTIVE", "RECEIPT"}, Why: "cards, accounts and receipts, no money"}},
})
