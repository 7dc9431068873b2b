package provider

import (
	"fmt"

	"hookledger/schema"
	"hookledger/schema/source"
)

// Wise signs the body with RSA. The secrets of a source are Wise's public keys, in PEM, as
// its documentation publishes them for production and sandbox. The ID of a delivery stays
// the same when it is repeated; it is a header and not signed. Wise counts exactly 200 as
// success. Sources: transferwise/digital-signatures-examples, docs.wise.com (webhooks),
// 2026-11.
//
// balances#credit credits a balance; it names no transaction. So that nobody who has a signed
// body makes it a second credit by another header, event and movement are named by what is
// signed: balance, time, amount, currency and the balance after it. Without one of them the
// event goes to quarantine.
// balances#update tells of credits too: only its debits move money, so that nobody is paid
// twice. transfers#state-change carries no amount. Amounts are numbers in units of the
// currency. From memory, not verified: the fields of balances#update.
var _ = register(source.Definition{
	Name: "wise",
	Signature: source.Signature{
		Scheme: source.SchemeRSA, Header: "X-Signature-Sha256",
		SecretPrefixes:    []string{"-----BEGIN "},
		BodyAuthenticated: true,
	},
	Event: source.EventConfig{
		ID: source.Locator{Header: "X-Delivery-Id", Or: []source.Locator{
			{Join: []string{"subscription_id", "event_type", "sent_at"}, Separator: "|"},
		}},
		Type: at("event_type"),
		Time: at("data.occurred_at"), TimeFormat: source.FormatRFC3339,
	},
	ID: wiseID,
	// Not signed. Wise sends it when a subscription is made; a sandbox has a key of its own.
	Live: source.LiveFlag{Header: "X-Test-Notification", Live: []string{"false"}, Test: []string{"true"}, Missing: "live"},
	ComposeType: func(set func(string, any), eventType, eventID string) string {
		set("event_type", eventType)
		if eventType == wiseCredit {
			set("data.post_transaction_balance_amount", eventID)
		}
		return ""
	},
	Account: []string{"data.resource.id"},
	Postings: append(wiseUnclear(), []source.PostingConfig{{
		Type:   []string{wiseCredit},
		Amount: "data.amount", Unit: source.UnitMajor, Currency: at("data.currency"), Direction: credits,
	}, {
		Key: "balances#debit", Type: []string{"balances#update"}, When: []source.ConditionConfig{is("data.transaction_type", "debit")},
		Amount: "data.amount", Unit: source.UnitMajor, Currency: at("data.currency"), Direction: debits,
		Movement: "data.step_id",
	}}...),
	Statuses: []source.StatusConfig{{
		Type:   []string{"transfers#state-change", "transfers#active-cases", "transfers#payout-failure"},
		When:   []source.ConditionConfig{present("data.current_state")},
		Object: "data.resource.id", Status: at("data.current_state"),
	}},
})

const wiseCredit = "balances#credit"

// wiseMovement are the signed fields that together name a credit.
var wiseMovement = []string{
	"data.resource.id", "data.occurred_at", "data.amount", "data.currency", "data.post_transaction_balance_amount",
}

// wiseUnclear are rules for credits that lack a part of their name.
func wiseUnclear() []source.PostingConfig {
	var rules []source.PostingConfig
	for i, path := range wiseMovement {
		rules = append(rules, source.PostingConfig{
			Key: fmt.Sprintf("unclear_%d", i), Type: []string{wiseCredit}, When: []source.ConditionConfig{absent(path)},
			Unclear: "without it the credit cannot be told from another",
		})
	}
	return rules
}

// wiseID names a credit by its signed fields, and all else by the ID of the delivery.
func wiseID(d source.Delivery, v *schema.Value) (string, error) {
	if kind, err := word(v, "event_type"); err == nil && kind == wiseCredit {
		paths, complete := make([]schema.Path, len(wiseMovement)), true
		for i, path := range wiseMovement {
			paths[i] = schema.MustPath(path)
			field, ok := v.At(paths[i])
			complete = complete && ok && field.Kind() != schema.KindNull
		}
		if complete {
			hash, err := source.Derive(v, paths...)
			return kind + ":" + hash, err
		}
	}
	switch ids := d.Header.Values("X-Delivery-Id"); {
	case len(ids) > 1:
		return "", fmt.Errorf("the header X-Delivery-Id is there %d times", len(ids))
	case len(ids) == 1 && ids[0] != "":
		return ids[0], nil
	}
	id := ""
	for _, path := range []string{"subscription_id", "event_type", "sent_at"} {
		part, err := word(v, path)
		if err != nil {
			return "", err
		}
		id += "|" + part
	}
	return id[1:], nil
}
