package provider

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"hookledger/schema"
	"hookledger/schema/source"
)

// cloudPaymentsTypes are the kinds of notification. Each is registered with an address of
// its own.
var cloudPaymentsTypes = []string{"check", "pay", "fail", "confirm", "refund", "recurrent", "receipt", "cancel", "kkt"}

// CloudPayments (and TipTopPay) sign body or query. What kind of notification it is stands
// nowhere in it: it is the parameter type of the registered address, such as
// …/webhooks/cloudpayments?type=pay. check asks whether a payment may go on; the answer
// here is yes. Sources: CMS plugins of the provider, npm cloudpayments 6.0.1, 2026-11.
//
// pay credits what is completed; of a payment in two steps confirm credits, and both are the
// same movement. A refund has a number of its own and debits; where it does not name its
// currency, the source's currency counts. The type in the address is not signed: what names a
// payment that is refunded (PaymentTransactionId) goes to quarantine on the address of
// payments, and what names none on that of refunds; and so does what failed, or is authorized
// alone, where payments are confirmed. check, which comes before the payment, has the same
// fields as pay, so of payments those of which nothing tells that they were made (a code of
// the issuer, a token, a fee, a reference number) go to quarantine too. Notifications of test payments (TestMode) come to the
// same address and count, unless livemode says otherwise; refunds have no TestMode, so with it
// they go to quarantine. Amounts are decimals in units of the currency.
var _ = register(source.Definition{
	Name: "cloudpayments",
	Signature: source.Signature{
		Scheme: source.SchemeCloudPayments, Header: "Content-Hmac",
		BodyAuthenticated: true,
	},
	Methods:   []string{http.MethodPost, http.MethodGet},
	Addresses: cloudPaymentsAddresses(),
	Event: source.EventConfig{
		Body: source.BodyAny,
		Time: at("DateTime"), TimeFormat: source.FormatDateTime,
	},
	Type: func(d source.Delivery, _ *schema.Value) (string, error) { return cloudPaymentsType(d) },
	ID: func(d source.Delivery, v *schema.Value) (string, error) {
		kind, err := cloudPaymentsType(d)
		if err != nil {
			return "", err
		}
		id, err := word(v, "TransactionId")
		return kind + ":" + id, err
	},
	Success: source.SuccessConfig{Body: `{"code":0}`, ContentType: "application/json"},
	ComposeType: func(set func(string, any), eventType, eventID string) string {
		if eventType == "refund" {
			set(cloudPaymentsRefunded, eventID)
		}
		if eventType == "pay" || eventType == "confirm" {
			set(cloudPaymentsMade[0], "A1B2C3")
		}
		return url.Values{"type": {eventType}}.Encode()
	},
	Live:    source.LiveFlag{Paths: []string{"TestMode"}, Live: []string{"0", "false", "False"}, Test: []string{"1", "true", "True"}},
	Account: []string{"AccountId"},
	Postings: []source.PostingConfig{{
		Key: "not_a_payment", Type: []string{"pay", "confirm"}, When: []source.ConditionConfig{present(cloudPaymentsRefunded)},
		Unclear: cloudPaymentsAddress,
	}, {
		Key: "not_a_payment_either", Type: []string{"pay", "confirm"}, When: []source.ConditionConfig{is("OperationType", "Refund", "CardPayout")},
		Unclear: cloudPaymentsAddress,
	}, {
		Key: "not_paid", Type: []string{"pay", "confirm"}, When: []source.ConditionConfig{present("ReasonCode"), not("ReasonCode", "0", "")},
		Unclear: cloudPaymentsAddress,
	}, {
		Key: "not_confirmed", Type: []string{"confirm"}, When: []source.ConditionConfig{is("Status", "Authorized", "Declined", "Cancelled")},
		Unclear: cloudPaymentsAddress,
	}, {
		Key: "not_made", Type: []string{"pay", "confirm"}, When: cloudPaymentsUnmade(),
		Unclear: "whether it was made: it holds nothing that the question before a payment (check) does not hold too",
	}, {
		Key: "not_a_refund", Type: []string{"refund"}, When: []source.ConditionConfig{absent(cloudPaymentsRefunded)},
		Unclear: cloudPaymentsAddress,
	}, {
		Key: "payment", Type: []string{"pay"}, When: []source.ConditionConfig{not("Status", "Authorized", "Declined")},
		Amount: "Amount", Unit: source.UnitMajor, Currency: at("Currency"), Direction: credits,
		Movement: "TransactionId",
	}, {
		Key: "payment", Type: []string{"confirm"},
		Amount: "Amount", Unit: source.UnitMajor, Currency: at("Currency"), Direction: credits,
		Movement: "TransactionId",
	}, {
		Type:   []string{"refund"},
		Amount: "Amount", Unit: source.UnitMajor, Currency: at("Currency"), Direction: debits,
		Movement: "TransactionId",
	}},
	Statuses: []source.StatusConfig{
		{Type: []string{"pay", "fail", "cancel"}, Object: "TransactionId", Status: at("Status")},
	},
	Ignored: []source.Note{{Types: []string{"check", "receipt", "kkt", "recurrent"}, Why: "no money moves"}},
})

// cloudPaymentsRefunded is in refunds alone, and in all of them: the payment's number.
const cloudPaymentsRefunded = "PaymentTransactionId"

// cloudPaymentsMade are fields that exist when a payment was made and not before. From
// memory, not verified: that one of them is in every notification of a payment.
var cloudPaymentsMade = []string{"AuthCode", "Token", "TotalFee", "Rrn"}

// cloudPaymentsUnmade holds where none of them is there, of what no other rule holds back.
func cloudPaymentsUnmade() []source.ConditionConfig {
	when := []source.ConditionConfig{not("Status", "Authorized", "Declined", "Cancelled")}
	for _, field := range cloudPaymentsMade {
		when = append(when, blank(field))
	}
	return when
}

const cloudPaymentsAddress = "what it is: the parameter type of its address and its fields differ; see which address is registered for which"

func cloudPaymentsAddresses() []string {
	out := make([]string, len(cloudPaymentsTypes))
	for i, kind := range cloudPaymentsTypes {
		out[i] = "type=" + kind
	}
	return out
}

func cloudPaymentsType(d source.Delivery) (string, error) {
	query, err := url.ParseQuery(d.Query)
	if err != nil || len(query["type"]) != 1 || !slices.Contains(cloudPaymentsTypes, query.Get("type")) {
		return "", fmt.Errorf("the URL has no parameter type that is one of %s: register the address with it, such as ?type=pay", strings.Join(cloudPaymentsTypes, ", "))
	}
	return query.Get("type"), nil
}
