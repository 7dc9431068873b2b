package provider

import "hookledger/schema/source"

// PayPal signs with a certificate that the delivery names, and that is fetched from
// PayPal's own hosts alone. Sources: PayPal-Python-SDK notifications.py, PayPal-Java-SDK
// ValidateCertTest.java, developer.paypal.com/api/rest/webhooks/rest, 2026-11.
//
// A capture credits (v2), and so does a sale (v1, subscriptions); a transaction is told of by
// one of them, and by both it would be one movement. Refunds and reversals debit, each with
// an ID of its own; total_refunded_amount is a sum and not read. A dispute moves nothing: when
// it is lost, a refund or a reversal is notified. A reversal of a sale whose amount is written
// as negative goes to quarantine. An item of a payout debits when it is paid or unclaimed, and
// is given back when it returns, which makes the debit too, once. Amounts are decimal text,
// HUF, JPY and TWD without decimals. From memory, not verified: payouts, reversals, and that
// refunds carry custom_id.
var _ = register(source.Definition{
	Name: "paypal",
	Signature: source.Signature{
		Scheme: source.SchemePayPal, Header: "Paypal-Transmission-Sig",
		// Of the body a CRC-32 is signed: what TLS delivers is what was signed.
		BodyAuthenticated: true,
	},
	Knobs: []string{"webhook_id", "environment"},
	Tune: func(sig *source.Signature, c source.SignatureConfig, p *source.Problems) {
		if c.WebhookID == "" {
			p.Add("signature.webhook_id", "is missing; it is the ID of the webhook in PayPal's settings, and a part of what is signed")
		}
		sig.KeyHosts = []string{"api.paypal.com"}
		if sig.Environment == source.Sandbox {
			sig.KeyHosts = []string{"api.sandbox.paypal.com"}
		}
	},
	Event: source.EventConfig{
		ID: at("id"), Type: at("event_type"),
		Time: at("create_time"), TimeFormat: source.FormatRFC3339,
	},
	Live:    source.LiveFlag{Instead: "signature.environment says which of the two a source believes"},
	Account: []string{"resource.custom_id", "resource.custom", "resource.payout_item.sender_item_id"},
	Postings: []source.PostingConfig{{
		Key: "payment", Type: []string{"PAYMENT.CAPTURE.COMPLETED"},
		Amount: "resource.amount.value", Unit: source.UnitMajor, Currency: at("resource.amount.currency_code"), Direction: credits,
		Movement: "resource.id",
	}, {
		Key: "payment", Type: []string{"PAYMENT.SALE.COMPLETED"},
		Amount: "resource.amount.total", Unit: source.UnitMajor, Currency: at("resource.amount.currency"), Direction: credits,
		Movement: "resource.id",
	}, {
		Key: "refund", Type: []string{"PAYMENT.CAPTURE.REFUNDED"},
		Amount: "resource.amount.value", Unit: source.UnitMajor, Currency: at("resource.amount.currency_code"), Direction: debits,
		Movement: "resource.id",
	}, {
		Key: "refund", Type: []string{"PAYMENT.SALE.REFUNDED"},
		Amount: "resource.amount.total", Unit: source.UnitMajor, Currency: at("resource.amount.currency"), Direction: debits,
		Movement: "resource.id",
	}, {
		Key: "reversal", Type: []string{"PAYMENT.CAPTURE.REVERSED"},
		Amount: "resource.amount.value", Unit: source.UnitMajor, Currency: at("resource.amount.currency_code"), Direction: debits,
		Movement: "resource.id",
	}, {
		Key: "reversal", Type: []string{"PAYMENT.SALE.REVERSED"},
		Amount: "resource.amount.total", Unit: source.UnitMajor, Currency: at("resource.amount.currency"), Direction: debits,
		Movement: "resource.id",
	}, {
		Key: "payout", Type: []string{"PAYMENT.PAYOUTS-ITEM.SUCCEEDED", "PAYMENT.PAYOUTS-ITEM.UNCLAIMED", "PAYMENT.PAYOUTS-ITEM.RETURNED", "PAYMENT.PAYOUTS-ITEM.REFUNDED", "PAYMENT.PAYOUTS-ITEM.CANCELED"},
		Amount: "resource.payout_item.amount.value", Unit: source.UnitMajor, Currency: at("resource.payout_item.amount.currency"), Direction: debits,
		Movement: "resource.payout_item_id",
	}, {
		Key: "payout_returned", Type: []string{"PAYMENT.PAYOUTS-ITEM.RETURNED", "PAYMENT.PAYOUTS-ITEM.REFUNDED", "PAYMENT.PAYOUTS-ITEM.CANCELED"},
		Amount: "resource.payout_item.amount.value", Unit: source.UnitMajor, Currency: at("resource.payout_item.amount.currency"), Direction: credits,
		Movement: "resource.payout_item_id",
	}},
	Statuses: []source.StatusConfig{{
		Type:   []string{"PAYMENT.CAPTURE.PENDING", "PAYMENT.CAPTURE.DENIED", "PAYMENT.CAPTURE.DECLINED", "PAYMENT.AUTHORIZATION.CREATED", "PAYMENT.AUTHORIZATION.VOIDED", "CHECKOUT.ORDER.APPROVED", "CHECKOUT.ORDER.COMPLETED"},
		Object: "resource.id", Status: at("resource.status"),
	}, {
		Type:   []string{"CUSTOMER.DISPUTE.CREATED", "CUSTOMER.DISPUTE.UPDATED", "CUSTOMER.DISPUTE.RESOLVED"},
		Object: "resource.dispute_id", Status: at("resource.status"),
	}, {
		Type:   []string{"BILLING.SUBSCRIPTION.ACTIVATED", "BILLING.SUBSCRIPTION.SUSPENDED", "BILLING.SUBSCRIPTION.CANCELLED", "BILLING.SUBSCRIPTION.EXPIRED"},
		Object: "resource.id", Status: at("resource.status"),
	}, {
		Type:   []string{"PAYMENT.PAYOUTS-ITEM.FAILED", "PAYMENT.PAYOUTS-ITEM.BLOCKED", "PAYMENT.PAYOUTS-ITEM.DENIED", "PAYMENT.PAYOUTS-ITEM.HELD"},
		Object: "resource.payout_item_id", Status: at("resource.transaction_status"),
	}},
	Required: map[string]string{"webhook_id": "WEBHOOK-ID"},
})
