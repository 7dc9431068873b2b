package provider

import (
	"time"

	"hookledger/schema/source"
)

// Shopify signs the body with the app's client secret. Topic and delivery ID are headers
// and not signed, so movements are named by what is in the body, and an order must say
// itself that it is paid. Sources: @shopify/shopify-api 13.1.0 lib/webhooks, shopify.dev
// (verify deliveries), 2026-11; the fields of orders, refunds and disputes are from
// memory and not verified.
//
// orders/paid comes when an order is paid in full, and credits its total. An order that
// is changed and paid again comes again with another total: quarantine effect_mismatch,
// for the difference cannot be told from it. The alternative, order_transactions/create,
// tells of each payment but not of the customer; it moves nothing here, so that nobody is
// paid twice. A shop that takes instalments adds rules for it and leaves orders/paid out
// of its subscriptions.
//
// refunds/create holds one or several refund transactions, each a movement; a return
// without any moves nothing. A chargeback debits from its beginning and is given back
// when it is won; every later state makes the debit too, once. An inquiry moves nothing.
// Fees of disputes are not in the events. Refunds and disputes carry the order, not the
// customer, so they go to quarantine: another account than was credited must not pay.
var _ = register(source.Definition{
	Name: "shopify",
	Signature: source.Signature{
		Scheme: source.SchemeHMAC, Header: "X-Shopify-Hmac-Sha256",
		Algorithm: "hmac-sha256", Encoding: "base64", Template: "{body}",
		BodyAuthenticated: true,
	},
	Deadline: 5 * time.Second,
	Event: source.EventConfig{
		ID: source.Locator{Header: "X-Shopify-Webhook-Id"}, Type: source.Locator{Header: "X-Shopify-Topic"},
		Time:       source.Locator{Path: "updated_at", Or: []source.Locator{{Path: "processed_at"}, {Path: "finalized_on"}, {Path: "created_at"}, {Path: "initiated_at"}}},
		TimeFormat: source.FormatRFC3339,
	},
	// Disputes have none.
	Live: source.LiveFlag{Paths: []string{"test", "transactions[0].test"}, Live: []string{"false"}, Test: []string{"true"}},
	AccountNote: []string{
		"Refunds and disputes carry the order, not the customer: quarantine, unless each order has an account:",
		"account: [order_id, id]",
	},
	Account: []string{"customer.id"},
	Postings: []source.PostingConfig{{
		Type:   []string{"orders/paid"},
		When:   []source.ConditionConfig{not("financial_status", "pending", "authorized", "partially_paid", "voided", "expired")},
		Amount: "total_price", Unit: source.UnitMajor, Currency: at("currency"), Direction: credits,
		Movement: "id",
	}, {
		Type: []string{"refunds/create"}, Each: "transactions",
		When:   []source.ConditionConfig{is("item.kind", "refund"), is("item.status", "success")},
		Amount: "item.amount", Unit: source.UnitMajor, Currency: at("item.currency"), Direction: debits,
		Movement: "item.id",
	}, {
		Key: "dispute", Type: []string{"disputes/create", "disputes/update"},
		When:   []source.ConditionConfig{is("type", "chargeback")},
		Amount: "amount", Unit: source.UnitMajor, Currency: at("currency"), Direction: debits,
		Movement: "id",
	}, {
		Key: "dispute_won", Type: []string{"disputes/create", "disputes/update"},
		When:   []source.ConditionConfig{is("type", "chargeback"), is("status", "won")},
		Amount: "amount", Unit: source.UnitMajor, Currency: at("currency"), Direction: credits,
		Movement: "id",
	}},
	Statuses: []source.StatusConfig{
		{Type: []string{"orders/create", "orders/updated", "orders/cancelled", "orders/partially_paid"}, When: []source.ConditionConfig{present("financial_status")}, Object: "id", Status: at("financial_status")},
		{Type: []string{"disputes/create", "disputes/update"}, Object: "id", Status: at("status")},
	},
	Ignored: []source.Note{
		{Types: []string{"order_transactions/create"}, Why: "orders/paid and refunds/create tell of the same money, with the customer"},
		{Types: []string{"customers/data_request", "customers/redact", "shop/redact"}, Why: "requests for data, kept as they came"},
	},
})
