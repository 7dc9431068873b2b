package provider_test

import (
	"testing"

	"hookledger/schema/provider"
)

func shopifySource(t testing.TB) *provider.Source {
	t.Helper()
	// One account for each order: the only identity that refunds and disputes share with it.
	return mustSource(t, provider.Config{
		Name: "x", Provider: "shopify",
		Account: []string{"order_id", "id"},
	})
}

var shopifyFixtures = []fixture{
	{file: "disputes_create.json", header: map[string]string{"X-Shopify-Topic": "disputes/create", "X-Shopify-Webhook-Id": "b54557e4"}, want: []string{"b54557e4 disputes/create 2025-12-01T12:00:00Z: -10000 USD 820982911946154508 dispute 598735659; status 598735659=needs_response"}},
	{file: "disputes_create_inquiry.json", header: map[string]string{"X-Shopify-Topic": "disputes/create", "X-Shopify-Webhook-Id": "b54557e4"}, want: []string{"b54557e4 disputes/create 2025-12-01T12:00:00Z: status 598735660=needs_response"}},
	{file: "disputes_update_won.json", header: map[string]string{"X-Shopify-Topic": "disputes/update", "X-Shopify-Webhook-Id": "b54557e4"}, want: []string{"b54557e4 disputes/update 2025-12-20T12:00:00Z: -10000 USD 820982911946154508 dispute 598735659; +10000 USD 820982911946154508 dispute_won 598735659; status 598735659=won"}},
	{file: "order_transactions_create.json", header: map[string]string{"X-Shopify-Topic": "order_transactions/create", "X-Shopify-Webhook-Id": "b54557e4"}, want: []string{"b54557e4 order_transactions/create 2025-11-30T12:00:00Z: ignored"}},
	{file: "orders_cancelled.json", header: map[string]string{"X-Shopify-Topic": "orders/cancelled", "X-Shopify-Webhook-Id": "b54557e4"}, want: []string{"b54557e4 orders/cancelled 2025-11-29T12:00:05Z: status 820982911946154512=voided"}},
	{file: "orders_paid.json", header: map[string]string{"X-Shopify-Topic": "orders/paid", "X-Shopify-Webhook-Id": "b54557e4"}, want: []string{"b54557e4 orders/paid 2025-11-29T12:00:05Z: +40495 USD 820982911946154508 orders/paid 820982911946154508"}},
	{file: "orders_paid_guest.json", header: map[string]string{"X-Shopify-Topic": "orders/paid", "X-Shopify-Webhook-Id": "b54557e4"}, want: []string{"b54557e4 orders/paid 2025-11-29T12:00:05Z: +40495 USD 820982911946154511 orders/paid 820982911946154511"}},
	{file: "orders_paid_jpy.json", header: map[string]string{"X-Shopify-Topic": "orders/paid", "X-Shopify-Webhook-Id": "b54557e4"}, want: []string{"b54557e4 orders/paid 2025-11-29T12:00:05Z: +5000 JPY 820982911946154510 orders/paid 820982911946154510"}},
	{file: "orders_paid_pending.json", header: map[string]string{"X-Shopify-Topic": "orders/paid", "X-Shopify-Webhook-Id": "b54557e4"}, want: []string{"b54557e4 orders/paid 2025-11-29T12:00:05Z: ignored"}},
	{file: "refunds_create.json", header: map[string]string{"X-Shopify-Topic": "refunds/create", "X-Shopify-Webhook-Id": "b54557e4"}, want: []string{"b54557e4 refunds/create 2025-11-30T12:00:00Z: -4095 USD 820982911946154508 refunds/create 179259969; -5905 USD 820982911946154508 refunds/create 179259970"}},
	{file: "refunds_create_no_money.json", header: map[string]string{"X-Shopify-Topic": "refunds/create", "X-Shopify-Webhook-Id": "b54557e4"}, want: []string{"b54557e4 refunds/create 2025-11-30T12:00:00Z: ignored"}},
	{file: "refunds_create_second.json", header: map[string]string{"X-Shopify-Topic": "refunds/create", "X-Shopify-Webhook-Id": "b54557e4"}, want: []string{"b54557e4 refunds/create 2025-11-30T12:00:00Z: -4095 USD 820982911946154508 refunds/create 179259973"}},
}

func TestShopify_Meaning(t *testing.T) {
	t.Parallel()
	checkFixtures(t, shopifySource(t), "shopify", shopifyFixtures)
}

func TestShopify_EveryMovementIsMadeOnce(t *testing.T) {
	t.Parallel()
	s := shopifySource(t)
	// A refund with two transactions and another of an amount it had, a chargeback that
	// is won.
	wantStory(t, s, "shopify", shopifyFixtures, "26400 USD 820982911946154508",
		"orders_paid.json", "order_transactions_create.json", "refunds_create.json", "refunds_create_second.json", "refunds_create_no_money.json",
		"disputes_create.json", "disputes_update_won.json")
}
