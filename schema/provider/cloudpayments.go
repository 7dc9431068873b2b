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
var _ = register(source.Definition{
	Name: "cloudpayments",
	Signature: source.Signature{
		Scheme: source.SchemeCloudPayments, Header: "Content-Hmac",
		BodyAuthenticated: true,
	},
	Methods: []string{http.MethodPost, http.MethodGet},
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
})

func cloudPaymentsType(d source.Delivery) (string, error) {
	query, err := url.ParseQuery(d.Query)
	if err != nil || len(query["type"]) != 1 || !slices.Contains(cloudPaymentsTypes, query.Get("type")) {
		return "", fmt.Errorf("the URL has no parameter type that is one of %s: register the address with it, such as ?type=pay", strings.Join(cloudPaymentsTypes, ", "))
	}
	return query.Get("type"), nil
}
