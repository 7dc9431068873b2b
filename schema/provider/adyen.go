package provider

import "hookledger/schema/source"

// Adyen's standard notifications sign eight fields of every item; the rest of an item, its
// date and additionalData among it, is not signed. One delivery carries several items. An
// item is identified by reference, event and success: a refund that fails after it had
// succeeded is another event. Sources: hmacValidator of the node and Go libraries,
// docs.adyen.com (verify-hmac-signatures, webhooks best practices), 2026-11.
//
// The answer has the body that older configurations wait for. Adyen holds back all that
// follows a delivery that is not accepted.
var _ = register(source.Definition{
	Name: "adyen",
	Signature: source.Signature{
		Scheme: source.SchemeAdyenItems,
		Covers: []string{
			"NotificationRequestItem.pspReference", "NotificationRequestItem.originalReference",
			"NotificationRequestItem.merchantAccountCode", "NotificationRequestItem.merchantReference",
			"NotificationRequestItem.amount.value", "NotificationRequestItem.amount.currency",
			"NotificationRequestItem.eventCode", "NotificationRequestItem.success",
		},
	},
	Event: source.EventConfig{
		Items: "notificationItems",
		ID:    source.Locator{Join: []string{"NotificationRequestItem.pspReference", "NotificationRequestItem.eventCode", "NotificationRequestItem.success"}},
		Type:  at("NotificationRequestItem.eventCode"),
		Time:  at("NotificationRequestItem.eventDate"), TimeFormat: source.FormatRFC3339,
	},
	Success: source.SuccessConfig{Body: "[accepted]"},
})

// Adyen's other webhooks (balance platform, management, tokens, disputes) sign the whole
// body with the same kind of key. Of one transfer many are sent, numbered from 1.
var _ = register(source.Definition{
	Name: "adyen-platform",
	Signature: source.Signature{
		Scheme: source.SchemeHMAC, Header: "Hmacsignature",
		Algorithm: "hmac-sha256", Encoding: "base64", KeyEncoding: "hex", Template: "{body}",
		BodyAuthenticated: true,
	},
	Event: source.EventConfig{
		ID: source.Locator{Join: []string{"data.id", "type", "data.sequenceNumber"}, Or: []source.Locator{
			{Join: []string{"data.id", "type", "timestamp"}},
			{Join: []string{"data.id", "type"}},
			{Path: "eventId"},
		}},
		Type: at("type"),
		Time: at("timestamp"), TimeFormat: source.FormatRFC3339,
	},
	Success: source.SuccessConfig{Body: "[accepted]"},
})
