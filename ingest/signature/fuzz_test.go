package signature

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stripe/stripe-go/v84/webhook"

	"hookledger/schema/provider"
)

// fuzzHeaders checks that headers nobody signed are never believed and never end in
// anything but a *Rejection, and that what the scheme signs is accepted.
func fuzzHeaders(f *testing.F, c provider.Config, names ...string) {
	v, sig := verifierOf(f, c)
	f.Fuzz(func(t *testing.T, a, b, d string, body []byte) {
		h := http.Header{}
		for i, value := range []string{a, b, d} {
			if i < len(names) {
				h[names[i]] = []string{value}
			}
		}
		_, err := v.Verify(Request{Header: h, Body: body, At: noon})
		if err == nil {
			t.Fatalf("believed %q", h)
		}
		if reason := reasonOf(err); reason == "" || len(reason) > 20 {
			t.Fatalf("got %v, want a *Rejection", err)
		}
		r := signed(t, sig, c.Secrets[0].Value, Message{Header: http.Header{"Webhook-Id": {"m"}}, Body: body, At: noon})
		if _, err := v.Verify(r); err != nil {
			t.Fatalf("own signature of %q: %v", body, err)
		}
	})
}

func FuzzStripeHeader(f *testing.F) {
	f.Add("t=1795953600,v1=9db8662fe1766882391aa39d0ab8f18f1e55c7113d110da5361f60f7af4546d1,v0=00", "", "", []byte("{}"))
	f.Add("t=,v1=", "", "", []byte(""))
	fuzzHeaders(f, config("stripe", stripeSecret), "Stripe-Signature")
}

// FuzzStripeSecondOpinion has Stripe's own library read every header that we believe:
// {mac} stands for what the secret makes of the body at noon.
func FuzzStripeSecondOpinion(f *testing.F) {
	c := config("stripe", stripeSecret)
	v, _ := verifierOf(f, c)
	for _, s := range []string{"t=1795953600,v1={mac}", "v1=00,v1={mac},t=1795953600", "t=1795953600,t=1,v1={mac}", "t=1795953600, v1={mac}", "t=01795953600,v1={mac},v0={mac}", "t=+1795953600,v1={mac}", "t=1795953600,v1={mac},v1=", "T=1795953600,V1={mac}"} {
		f.Add(s, []byte(`{"id":"evt_1"}`))
	}
	f.Fuzz(func(t *testing.T, header string, body []byte) {
		header = strings.ReplaceAll(header, "{mac}", fmt.Sprintf("%x", webhook.ComputeSignature(noon, body, stripeSecret)))
		if _, err := v.Verify(Request{Header: http.Header{"Stripe-Signature": {header}}, Body: body, At: noon}); err != nil {
			return
		}
		if err := webhook.ValidatePayloadIgnoringTolerance(body, header, stripeSecret); err != nil {
			t.Fatalf("believed %q, which Stripe's library refuses: %v", header, err)
		}
	})
}

func FuzzStandardHeaders(f *testing.F) {
	f.Add("msg_1", "1795953600", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE= v1a,AAAA v2,x", []byte("{}"))
	f.Add(".", "0", "v1 v1, ,", []byte("."))
	fuzzHeaders(f, config("standardwebhooks", standardSecret), "Webhook-Id", "Webhook-Timestamp", "Webhook-Signature")
}

func FuzzHMACHeaders(f *testing.F) {
	c := config("generic", acmeSecret)
	c.Signature = provider.SignatureConfig{Header: "X-Signature", Prefix: "v1,", Encoding: "base64url", TimestampHeader: "X-Time", TimestampFormat: "rfc3339"}
	f.Add("v1,AAAA", "2026-11-29T12:00:00Z", "", []byte("{}"))
	f.Add("v1,====", "x", "", []byte(""))
	fuzzHeaders(f, c, "X-Signature", "X-Time")
}
