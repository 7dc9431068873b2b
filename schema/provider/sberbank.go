package provider

import (
	"net/http"

	"hookledger/schema"
	"hookledger/schema/source"
)

// Sberbank and other banks with BPC's gateway sign the sorted parameters of a callback,
// with a token (HMAC) or the bank's certificate (RSA, signature.algorithm: rsa-sha512; the
// secret is the certificate in PEM). An operation that failed and then succeeded is two
// events; of refunds, which can come in parts, amount and date belong to the ID where the
// bank sends them. The gateway gives up after three attempts within two minutes.
// Sources: dev.bpcbt.com callback notifications, panasyuk/sberbank-acquiring, 2026-11.
//
// deposited credits; approved only reserves. A refund debits operationRefundedAmount, which
// the bank sends on request: without it, and for reversed, the event goes to quarantine.
// Amounts are in minor units, where the bank sends them. Callbacks do not name the currency:
// it is the source's. The movement of a refund is the event's ID: two refunds of one amount
// are told apart by callbackCreationDate, also on request. Without it a refund goes to
// quarantine, and so a second one, which is the same event, is no repetition of one that
// was made: a person looks how many there were.
var _ = register(source.Definition{
	Name: "sberbank",
	Signature: source.Signature{
		Scheme: source.SchemeSberbank, Algorithm: "hmac-sha256",
		BodyAuthenticated: true,
	},
	Knobs: []string{"algorithm"},
	Tune: func(sig *source.Signature, c source.SignatureConfig, p *source.Problems) {
		if c.Algorithm != "" {
			sig.Algorithm = c.Algorithm
			p.OneOf("signature.algorithm", c.Algorithm, "hmac-sha256", "rsa-sha512")
		}
	},
	Methods: []string{http.MethodGet, http.MethodPost},
	Event: source.EventConfig{
		Body: source.BodyForm,
		Type: at("operation"),
	},
	ID: func(_ source.Delivery, v *schema.Value) (string, error) {
		order, err := word(v, "mdOrder")
		if err != nil {
			return "", err
		}
		operation, err := word(v, "operation")
		if err != nil {
			return "", err
		}
		id := order + ":" + operation
		if status, err := word(v, "status"); err == nil && status != "1" {
			id += ":" + status
		}
		if operation == "refunded" {
			for _, field := range []string{"operationRefundedAmount", "callbackCreationDate"} {
				if part, err := word(v, field); err == nil {
					id += ":" + part
				}
			}
		}
		return id, nil
	},
	ComposeType: func(set func(string, any), eventType, eventID string) string {
		set("operation", eventType)
		set("mdOrder", eventID)
		if eventType == "refunded" {
			set("callbackCreationDate", eventID)
		}
		return ""
	},
	Live:       testsApart,
	Account:    []string{"orderNumber"},
	NoCurrency: true,
	Postings: []source.PostingConfig{{
		Type: []string{"deposited"}, When: []source.ConditionConfig{is("status", "1")},
		Amount: "amount", Unit: source.UnitMinor, Currency: at("currency"), Direction: credits,
		Movement: "mdOrder",
	}, {
		Key: "refund_undated", Type: []string{"refunded"}, When: []source.ConditionConfig{is("status", "1"), blank("callbackCreationDate")},
		Unclear: "without callbackCreationDate, which the bank sends on request, it cannot be told from another refund of the same amount",
	}, {
		Type: []string{"refunded"}, When: []source.ConditionConfig{is("status", "1")},
		Amount: "operationRefundedAmount", Unit: source.UnitMinor, Currency: at("currency"), Direction: debits,
	}, {
		Type: []string{"reversed"}, When: []source.ConditionConfig{is("status", "1")},
		Unclear: "whether what was reversed had been deposited before or was only reserved is not said",
	}},
	Statuses: []source.StatusConfig{{
		Type:   []string{"approved", "declinedByTimeout", "declinedCardPresent"},
		Object: "mdOrder", Status: at("operation"),
	}},
	Ignored: []source.Note{{Types: []string{"bindingCreated", "bindingActivityChanged"}, Why: "no money moves"}},
})
