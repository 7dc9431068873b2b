package provider_test

import (
	"testing"
	"time"

	"hookledger/schema/provider"
)

// success is what a provider counts as success.
type success struct {
	status   int
	body     string
	deadline time.Duration
}

// successes are the answers as the providers document them; no deadline where none is known.
var successes = map[string]success{
	"adyen": {200, "[accepted]", 10 * time.Second}, "adyen-manual-capture": {200, "[accepted]", 10 * time.Second}, "adyen-platform": {200, "[accepted]", 10 * time.Second},
	"braintree": {200, "", 30 * time.Second}, "checkoutcom": {200, "", 0}, "cloudpayments": {200, `{"code":0}`, 0}, "coinbasecommerce": {200, "", 0},
	"flutterwave-v3": {200, "", 60 * time.Second}, "flutterwave-v4": {200, "", 60 * time.Second}, "generic": {200, "", 0}, "github": {200, "", 10 * time.Second},
	"gocardless": {204, "", 10 * time.Second}, "lemonsqueezy": {200, "", 0}, "mercadopago": {200, "", 22 * time.Second}, "mollie": {200, "", 15 * time.Second},
	"mollie-classic": {200, "", 15 * time.Second}, "paddle": {200, "", 5 * time.Second}, "paypal": {200, "", 0}, "paystack": {200, "", 30 * time.Second},
	"plaid": {200, "", 10 * time.Second}, "prodamus": {200, "", 0}, "razorpay": {200, "", 5 * time.Second}, "robokassa": {200, "OK450009", 0},
	"sberbank": {200, "", 0}, "shopify": {200, "", 5 * time.Second}, "square": {200, "", 0}, "standardwebhooks": {200, "", 15 * time.Second},
	"stripe": {200, "", 20 * time.Second}, "tbank": {200, "OK", 10 * time.Second}, "wise": {200, "", 0}, "xendit": {200, "", 30 * time.Second}, "yookassa": {200, "", 0},
}

func TestSuccess_IsWhatTheProviderCounts(t *testing.T) {
	t.Parallel()
	for _, name := range provider.Names() {
		s := mustSource(t, configOf(t, name, "", ""))
		answer := s.Success([]provider.Item{{ID: "450009"}})
		want, known := successes[name]
		if got := (success{answer.Status, answer.Body, s.Deadline()}); known && got != want {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
}
