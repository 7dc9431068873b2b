package signature

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stripe/stripe-go/v84/webhook"

	"hookledger/schema/provider"
	"hookledger/schema/source"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

const (
	stripeSecret   = "whsec_7Hq2nX0vYwE4kLr9ZtBcPaMdUjS5gFiO"
	standardSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	acmeSecret     = "k-5f1e0c-0123456789"
)

// config returns a source of a provider with one secret of id main.
func config(name string, secret provider.Secret) provider.Config {
	c := provider.Config{
		Name: "s", Provider: name, Account: []string{"account"},
		Secrets: []provider.SecretConfig{{ID: "main", Value: secret}},
	}
	if name == "generic" {
		c.Signature.Header, c.Event.ID.Path = "X-Signature", "id"
	}
	if name != "stripe" {
		c.Event.Type.Path = "type"
		c.Postings = []provider.PostingConfig{{Type: []string{"t"}, Amount: "a", Unit: "minor", Currency: provider.Locator{Path: "c"}, Direction: provider.Direction{Always: "credit"}}}
	}
	return c
}

func verifierOf(t testing.TB, c provider.Config) (*Verifier, provider.Signature) {
	t.Helper()
	source, err := provider.New(c)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := NewKeyring(source, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	v, err := New(source.Signature(), keys)
	if err != nil {
		t.Fatal(err)
	}
	return v, source.Signature()
}

func signed(t testing.TB, sig source.Signature, secret source.Secret, m Message) Request {
	t.Helper()
	m, err := Sign(sig, secret, m)
	if err != nil {
		t.Fatal(err)
	}
	return m.request()
}

func reasonOf(err error) Reason {
	var r *Rejection
	if errors.As(err, &r) {
		return r.Reason
	}
	return Reason(fmt.Sprint(err))
}

func TestVerify_ToleranceIsInclusiveAndBothWays(t *testing.T) {
	t.Parallel()
	generic := config("generic", acmeSecret)
	generic.Signature.TimestampHeader = "X-Time"
	millis := generic
	millis.Signature.TimestampFormat = "unix_ms"
	text := generic
	text.Signature.TimestampFormat = "rfc3339"
	narrow := config("stripe", stripeSecret)
	narrow.Signature.Tolerance = 10 * time.Second
	for name, tc := range map[string]struct {
		config    provider.Config
		tolerance time.Duration
	}{
		"stripe":   {config("stripe", stripeSecret), 300 * time.Second},
		"narrow":   {narrow, 10 * time.Second},
		"standard": {config("standardwebhooks", standardSecret), 300 * time.Second},
		"generic":  {generic, 300 * time.Second},
		"unix_ms":  {millis, 300 * time.Second},
		"rfc3339":  {text, 300 * time.Second},
	} {
		v, sig := verifierOf(t, tc.config)
		r := signed(t, sig, tc.config.Secrets[0].Value, Message{Header: http.Header{"Webhook-Id": {"m"}}, Body: []byte("{}"), At: noon})
		for offset, want := range map[time.Duration]Reason{
			0: "", tc.tolerance: "", -tc.tolerance: "",
			tc.tolerance + 1: Stale, -tc.tolerance - 1: Future, 24 * time.Hour: Stale,
		} {
			r.At = noon.Add(offset)
			_, err := v.Verify(r)
			if err == nil && want != "" || err != nil && reasonOf(err) != want {
				t.Errorf("%s, %s after signing: got %v, want %q", name, offset, err, want)
			}
		}
	}
}

// A time in milliseconds where seconds are meant lies so far ahead that no Duration reaches
// there; it was taken for near.
func TestVerify_RefusesTimesBeyondEveryDuration(t *testing.T) {
	t.Parallel()
	paddle := provider.Config{
		Name: "paddle", Provider: "paddle", Account: []string{"data.customer_id"},
		Secrets: []provider.SecretConfig{{Value: "pdl_ntfset_0123456789abcdef"}},
	}
	generic := config("generic", acmeSecret)
	generic.Signature.TimestampHeader = "X-Time"
	for _, c := range []provider.Config{config("stripe", stripeSecret), config("standardwebhooks", standardSecret), paddle, generic} {
		v, sig := verifierOf(t, c)
		for at, want := range map[time.Time]Reason{
			time.Unix(noon.UnixMilli(), 0):    Future,
			time.Unix(999_999_999_999_999, 0): Future,
			time.Unix(0, 0):                   Stale,
			time.Unix(-9_000_000_000, 0):      Malformed, // before 1970 there is no time without a sign
		} {
			r := signed(t, sig, c.Secrets[0].Value, Message{Header: http.Header{"Webhook-Id": {"m"}}, Body: []byte("{}"), At: at})
			r.At = noon
			if _, err := v.Verify(r); err == nil || reasonOf(err) != want {
				t.Errorf("%s, signed at %s: got %v, want %s", c.Provider, at, err, want)
			}
		}
	}
}

func TestVerify_SaysWhyNot(t *testing.T) {
	t.Parallel()
	stripe, sig := verifierOf(t, config("stripe", stripeSecret))
	good := signed(t, sig, stripeSecret, Message{Body: []byte("{}"), At: noon}).Header.Get("Stripe-Signature")
	mac := good[strings.Index(good, "v1=")+3:]
	ts := good[2:strings.Index(good, ",")]
	for header, want := range map[string]Reason{
		good:                                  "",
		good + ",v2=00,x=y":                   "",
		good + ",v1=zz":                       "",
		"t=" + ts + ",v1=00,v1=" + mac:        "",
		"":                                    MissingHeader,
		"x":                                   Malformed,
		"t=" + ts:                             UnknownVersion,
		"v1=" + mac:                           Malformed,
		"t=,v1=" + mac:                        Malformed,
		"t=" + ts + ",t=" + ts + ",v1=" + mac: Malformed,
		"t=+" + ts + ",v1=" + mac:             Malformed,
		"t=-1,v1=" + mac:                      Malformed,
		"t=0x10,v1=" + mac:                    Malformed,
		"t=" + ts + "000000,v1=" + mac:        Malformed,
		"t=" + ts + ", v1=" + mac:             UnknownVersion,
		"t=" + ts + ",V1=" + mac:              UnknownVersion,
		"t=" + ts + ",v0=" + mac:              UnknownVersion,
		"t=" + ts + ",v1=" + mac[:62]:         Malformed,
		"t=" + ts + ",v1=" + mac + "00":       Malformed,
		"t=0" + ts + ",v1=" + mac:             Malformed,
		good + "," + strings.Repeat("v1="+mac+",", 40) + "v1=00": Malformed,
		good + ",x=\xff": Malformed,
		good + ",é=1":    Malformed,
	} {
		h := http.Header{}
		if header != "" {
			h.Set("Stripe-Signature", header)
		}
		_, err := stripe.Verify(Request{Header: h, Body: []byte("{}"), At: noon})
		if err == nil && want != "" || err != nil && reasonOf(err) != want {
			t.Errorf("%q: got %v, want %q", header, err, want)
		}
		if err != nil && strings.Contains(err.Error(), mac[:16]) {
			t.Errorf("%q: the error repeats a signature: %v", header, err)
		}
	}
}

func TestVerify_GenericKnobs(t *testing.T) {
	t.Parallel()
	for name, knobs := range map[string]provider.SignatureConfig{
		"plain":       {Header: "x-signature"},
		"sha512":      {Header: "X-Signature", Algorithm: "sha512", Encoding: "base64"},
		"sha1":        {Header: "X-Signature", Algorithm: "hmac-sha1", Prefix: "sha1="},
		"url base64":  {Header: "X-Signature", Encoding: "base64url", Prefix: "v1,"},
		"time":        {Header: "X-Signature", TimestampHeader: "X-Time"},
		"own order":   {Header: "X-Signature", TimestampHeader: "X-Time", Template: "v0:{ts}:{body}"},
		"url":         {Header: "X-Signature", Template: "{url}{body}", URL: "https://x.example/hook?a=b"},
		"header":      {Header: "X-Signature", Template: "{header:X-Request-Id}.{body}"},
		"all of them": {Header: "X-Signature", TimestampHeader: "X-Time", Template: "{header:x-request-id}|{ts}|{url}|{body}", URL: "u"},
	} {
		c := config("generic", acmeSecret)
		c.Signature = knobs
		v, sig := verifierOf(t, c)
		r := signed(t, sig, acmeSecret, Message{Header: http.Header{"X-Request-Id": {"r1"}}, Body: []byte(`{"a":1}`), At: noon})
		got, err := v.Verify(r)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got.KeyID() != "main" || string(got.Body()) != `{"a":1}` || !got.BodyAuthenticated() || !strings.HasPrefix(got.Scheme(), "hmac-") {
			t.Errorf("%s: got %+v", name, got)
		}
		// Everything that is kept is enough to verify again.
		again := Request{Header: http.Header{}, Body: got.Body(), At: noon}
		for _, h := range got.Headers() {
			again.Header.Set(h.Key, string(h.Value))
		}
		if _, err := v.Verify(again); err != nil {
			t.Errorf("%s: from what is kept: %v", name, err)
		}
		for header := range r.Header {
			changed := Request{Header: r.Header.Clone(), Body: r.Body, At: r.At}
			changed.Header[header][0] += "0"
			if _, err := v.Verify(changed); err == nil && (header != "X-Request-Id" || strings.Contains(sig.Template, "header")) {
				t.Errorf("%s: accepted with another %s", name, header)
			}
			changed.Header[header] = append(r.Header[header], r.Header[header]...)
			if _, err := v.Verify(changed); err == nil && (header != "X-Request-Id" || strings.Contains(sig.Template, "header")) {
				t.Errorf("%s: accepted with %s twice", name, header)
			}
		}
	}
}

// Stripe's own library is the second opinion on Stripe, in both directions. We differ in
// two ways, on purpose: a time in the future is refused, and so is a header with two
// times.
func TestStripe_AgreesWithTheProvidersLibrary(t *testing.T) {
	t.Parallel()
	v, sig := verifierOf(t, config("stripe", stripeSecret))
	body := []byte(`{"id":"evt_1","object":"event","note":"é\u00e9"}`)
	now := time.Now()

	ours := signed(t, sig, stripeSecret, Message{Body: body, At: now})
	if err := webhook.ValidatePayload(body, ours.Header.Get("Stripe-Signature"), stripeSecret); err != nil {
		t.Errorf("the library refuses our signature: %v", err)
	}
	theirs := webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{Payload: body, Secret: stripeSecret, Timestamp: now})
	if _, err := v.Verify(Request{Header: http.Header{"Stripe-Signature": {theirs.Header}}, Body: body, At: now}); err != nil {
		t.Errorf("we refuse the library's signature: %v", err)
	}

	mac := fmt.Sprintf("%x", webhook.ComputeSignature(now, body, stripeSecret))
	other := fmt.Sprintf("%x", webhook.ComputeSignature(now, body, "whsec_other"))
	ts := fmt.Sprint(now.Unix())
	old := fmt.Sprint(now.Add(-time.Hour).Unix())
	oldMAC := fmt.Sprintf("%x", webhook.ComputeSignature(now.Add(-time.Hour), body, stripeSecret))
	for _, header := range []string{
		"t=" + ts + ",v1=" + mac, "v1=" + mac + ",t=" + ts, "t=" + ts + ",v1=" + other, "t=" + ts + ",v1=" + other + ",v1=" + mac,
		"t=" + ts + ",v0=" + mac, "t=" + ts + ",v1=" + mac + ",v0=" + other, "t=" + ts + ",v1=" + strings.ToUpper(mac),
		"t=" + ts + ",v1=zz,v1=" + mac, "t=" + ts + ",v1=", "t=" + ts, "v1=" + mac, "", "t", "t=a,v1=" + mac,
		"t=" + ts + ",v1=" + mac + ",x", "t=" + ts + ", v1=" + mac, "t=" + old + ",v1=" + oldMAC, "t=" + old + ",v1=" + mac,
		"t=" + ts + ",v1=" + mac[:60], "t=" + ts + ",v1=" + mac + "00", "t=" + ts + ";v1=" + mac, "T=" + ts + ",V1=" + mac,
	} {
		_, err := v.Verify(Request{Header: http.Header{"Stripe-Signature": {header}}, Body: body, At: now})
		theirErr := webhook.ValidatePayload(body, header, stripeSecret)
		if (err == nil) != (theirErr == nil) {
			t.Errorf("%q: we say %v, the library says %v", header, err, theirErr)
		}
	}
}

// Neither can a caller make a Verified that says something.
func TestVerified_ZeroSaysNothing(t *testing.T) {
	t.Parallel()
	var v Verified
	if v.Body() != nil || v.KeyID() != "" || v.Scheme() != "" || v.BodyAuthenticated() {
		t.Errorf("got %+v", v)
	}
}
