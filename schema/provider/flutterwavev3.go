package provider

import (
	"hookledger/schema"
	"hookledger/schema/source"
	"time"
)

// Flutterwave's v3 webhooks send a token that is the secret itself, and sign nothing of the
// body. Charges are identified by their ID alone, what else there is by event and ID: the
// numbers of transfers are others. From memory, not verified: the fields.
//
// A charge credits and a transfer debits, if successful: both are notified when they failed,
// too. Refunds are status alone. amount is what was asked for; what was charged with fees is
// charged_amount.
var _ = register(source.Definition{
	Name: "flutterwave-v3",
	Signature: source.Signature{
		Scheme: source.SchemeToken, Header: "Verif-Hash",
	},
	Deadline: 60 * time.Second, // From memory.
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
	Live:    testsApart,
	Account: []string{"data.meta.account_id", "data.tx_ref"},
	Postings: []source.PostingConfig{{
		Type: []string{"charge.completed"}, When: []source.ConditionConfig{is("data.status", "successful")},
		Amount: "data.amount", Unit: source.UnitMajor, Currency: at("data.currency"), Direction: credits,
		Movement: "data.id",
	}, {
		Type: []string{"transfer.completed"}, When: []source.ConditionConfig{is("data.status", "SUCCESSFUL")},
		Amount: "data.amount", Unit: source.UnitMajor, Currency: at("data.currency"), Direction: debits,
		Movement: "data.id",
	}},
	Statuses: []source.StatusConfig{{Type: []string{"charge.completed", "transfer.completed", "refund.completed"}, Object: "data.id", Status: at("data.status")}},
})
