package provider

import (
	"slices"
	"time"

	"hookledger/schema/source"
)

// Adyen's standard notifications sign eight fields of every item; the rest of an item, its
// date and additionalData among it, is not signed. One delivery carries several items. An
// item is identified by reference, event and success: a refund that fails after it had
// succeeded is another event. Sources: hmacValidator of the node and Go libraries,
// docs.adyen.com (verify-hmac-signatures, webhooks best practices), 2026-11.
//
// The answer has the body that older configurations wait for. Adyen holds back all that
// follows a delivery that is not accepted, so what cannot be applied is accepted and goes to
// quarantine. Only an item without a usable ID or a signature is refused: success would say
// that it is kept. The items beside one without an ID are stored, and known when they are
// sent again; nothing is stored of a delivery in which one signature does not hold.
//
// AUTHORISATION credits: what is authorised is captured by itself, and Adyen tells of that
// no more. Where captures are made by hand, use provider adyen-manual-capture instead: each
// CAPTURE credits there, and AUTHORISATION moves nothing. REFUND debits, CHARGEBACK debits;
// what fails or is reversed later gives back. Each has a pspReference of its own, so partial
// captures and refunds are movements of their own. Whether CANCEL_OR_REFUND cancelled or
// refunded stands in a field that is not signed, and so may anybody write cancel there or leave
// it out: all of them go to quarantine unless trust: body. Fees are not in notifications. From memory, not verified: the names of the
// events for chargebacks and for what was reversed.
//
// The account has to be in a signed field: merchantReference or merchantAccountCode.
var _ = register(source.Definition{
	Name:      "adyen",
	Signature: adyenSignature,
	Event:     adyenEvent,
	Deadline:  10 * time.Second,
	Live:      adyenLive,
	Success:   source.SuccessConfig{Body: "[accepted]"},
	Account:   []string{"NotificationRequestItem.merchantReference"},
	Postings:  slices.Concat(adyenAuthorised, adyenPostings),
	Statuses:  adyenStatuses,
	Ignored:   adyenIgnored,
	// Source: docs.adyen.com/development-resources/currency-codes ("differs from standard").
	Exponents: adyenExponents,
})

var adyenSignature = source.Signature{
	Scheme: source.SchemeAdyenItems,
	Covers: []string{
		"NotificationRequestItem.pspReference", "NotificationRequestItem.originalReference",
		"NotificationRequestItem.merchantAccountCode", "NotificationRequestItem.merchantReference",
		"NotificationRequestItem.amount.value", "NotificationRequestItem.amount.currency",
		"NotificationRequestItem.eventCode", "NotificationRequestItem.success",
	},
}

var adyenEvent = source.EventConfig{
	Items: "notificationItems",
	ID:    source.Locator{Join: []string{"NotificationRequestItem.pspReference", "NotificationRequestItem.eventCode", "NotificationRequestItem.success"}},
	Type:  at("NotificationRequestItem.eventCode"),
	Time:  at("NotificationRequestItem.eventDate"), TimeFormat: source.FormatRFC3339,
}

// adyenLive is of the whole delivery, and not signed. Test and live have endpoints and keys of
// their own, so what is signed with the key of one is not from the other.
var adyenLive = source.LiveFlag{Delivery: "live", Live: []string{"true"}, Test: []string{"false"}}

// adyen-manual-capture is Adyen's standard notifications for merchants who capture by hand.
var _ = register(source.Definition{
	Name:      "adyen-manual-capture",
	Signature: adyenSignature,
	Event:     adyenEvent,
	Deadline:  10 * time.Second,
	Live:      adyenLive,
	Account:   []string{"NotificationRequestItem.merchantReference"},
	Postings:  slices.Concat(adyenCaptured, adyenPostings),
	Statuses:  adyenStatuses,
	Ignored:   adyenIgnored,
	// Source: docs.adyen.com/development-resources/currency-codes ("differs from standard").
	Exponents: adyenExponents,
	Success:   source.SuccessConfig{Body: "[accepted]"},
})

var adyenSucceeded = is("NotificationRequestItem.success", "true")

// adyenRule is a rule for one kind of item that succeeded.
func adyenRule(direction source.Direction, code string, when ...source.ConditionConfig) source.PostingConfig {
	return source.PostingConfig{
		Type: []string{code}, When: append([]source.ConditionConfig{adyenSucceeded}, when...),
		Amount: "NotificationRequestItem.amount.value", Unit: source.UnitMinor, Currency: at("NotificationRequestItem.amount.currency"),
		Direction: direction, Movement: "NotificationRequestItem.pspReference",
	}
}

var (
	adyenAuthorised = []source.PostingConfig{adyenRule(credits, "AUTHORISATION")}
	adyenCaptured   = []source.PostingConfig{adyenRule(credits, "CAPTURE")}
	adyenPostings   = []source.PostingConfig{
		adyenRule(debits, "CAPTURE_FAILED"),
		adyenRule(debits, "REFUND"),
		adyenRefunded(),
		adyenCancelled(),
		adyenRule(credits, "REFUND_FAILED"),
		adyenRule(credits, "REFUNDED_REVERSED"),
		adyenRule(debits, "CHARGEBACK"),
		adyenRule(debits, "SECOND_CHARGEBACK"),
		adyenRule(credits, "CHARGEBACK_REVERSED"),
	}
	adyenSteps = []string{
		"AUTHORISATION", "CAPTURE", "REFUND", "CANCELLATION", "CANCEL_OR_REFUND", "NOTIFICATION_OF_CHARGEBACK",
		"REQUEST_FOR_INFORMATION", "PREARBITRATION_WON", "PREARBITRATION_LOST",
	}
	adyenStatuses = []source.StatusConfig{
		{Type: adyenSteps, When: []source.ConditionConfig{adyenSucceeded}, Object: "NotificationRequestItem.pspReference", Status: at("NotificationRequestItem.eventCode")},
		{Type: adyenSteps, Object: "NotificationRequestItem.pspReference", Status: source.Locator{Const: "REFUSED"}},
	}
	adyenIgnored = []source.Note{
		{Types: []string{"REPORT_AVAILABLE", "PENDING", "OFFER_CLOSED", "ORDER_OPENED", "ORDER_CLOSED"}, Why: "no money moves"},
		{Types: []string{"PAYOUT_THIRDPARTY", "PAYOUT_DECLINE", "PAYOUT_EXPIRE", "PAIDOUT_REVERSED"}, Why: "payouts to third parties: add a rule where accounts of yours are paid out"},
	}
	adyenExponents = map[string]int{"CLP": 2, "CVE": 0, "IDR": 0, "ISK": 2}
)

// adyenAction says whether CANCEL_OR_REFUND cancelled or refunded. It is not signed.
const adyenAction = "NotificationRequestItem.additionalData.modification\\.action"

// adyenRefunded debits what CANCEL_OR_REFUND refunded, and does not guess where the field
// is missing or says something else.
func adyenRefunded() source.PostingConfig {
	return adyenRule(source.Direction{Path: adyenAction, Debit: []string{"refund"}}, "CANCEL_OR_REFUND", not(adyenAction, "cancel"))
}

// adyenCancelled moves nothing, the amount less itself. It is a rule so that a cancellation
// that is not signed is not believed either.
func adyenCancelled() source.PostingConfig {
	r := adyenRule(debits, "CANCEL_OR_REFUND", is(adyenAction, "cancel"))
	r.Key, r.Less = "cancelled", r.Amount
	return r
}

var adyenTransfers = []string{"balancePlatform.transfer.created", "balancePlatform.transfer.updated"}

// Adyen's other webhooks (balance platform, management, tokens, disputes) sign the whole
// body with the same kind of key. Of one transfer many are sent, numbered from 1.
//
// A transfer moves money when it is booked, once, into or out of its balance account; one
// that was returned goes back. The shape is from memory and not verified.
var _ = register(source.Definition{
	Name: "adyen-platform",
	Signature: source.Signature{
		Scheme: source.SchemeHMAC, Header: "Hmacsignature",
		Algorithm: "hmac-sha256", Encoding: "base64", KeyEncoding: "hex", Template: "{body}",
		BodyAuthenticated: true,
	},
	Deadline: 10 * time.Second,
	Event: source.EventConfig{
		ID: source.Locator{Join: []string{"data.id", "type", "data.sequenceNumber"}, Or: []source.Locator{
			{Join: []string{"data.id", "type", "timestamp"}},
			{Join: []string{"data.id", "type"}},
			{Path: "eventId"},
		}},
		Type: at("type"),
		Time: at("timestamp"), TimeFormat: source.FormatRFC3339,
	},
	Live:    source.LiveFlag{Paths: []string{"environment"}, Live: []string{"live"}, Test: []string{"test"}},
	Success: source.SuccessConfig{Body: "[accepted]"},
	Account: []string{"data.balanceAccount.id"},
	Postings: []source.PostingConfig{{
		Key: "transfer", Type: adyenTransfers, When: []source.ConditionConfig{is("data.status", "booked", "returned")},
		Amount: "data.amount.value", Unit: source.UnitMinor, Currency: at("data.amount.currency"),
		Direction: source.Direction{Path: "data.direction", Credit: []string{"incoming"}, Debit: []string{"outgoing"}},
		Movement:  "data.id",
	}, {
		Key: "transfer_returned", Type: adyenTransfers, When: []source.ConditionConfig{is("data.status", "returned")},
		Amount: "data.amount.value", Unit: source.UnitMinor, Currency: at("data.amount.currency"),
		Direction: source.Direction{Path: "data.direction", Credit: []string{"outgoing"}, Debit: []string{"incoming"}},
		Movement:  "data.id",
	}},
	Statuses: []source.StatusConfig{{Type: adyenTransfers, Object: "data.id", Status: at("data.status")}},
	Ignored: []source.Note{
		{Types: []string{"balancePlatform.payout.created", "balancePlatform.payout.updated", "balancePlatform.transaction.created"}, Why: "transfer events tell of the same money"},
	},
	Exponents: adyenExponents,
})
