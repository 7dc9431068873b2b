package signature

import (
	"bytes"
	"net/http"
	"net/netip"
	"testing"

	"hookledger/schema/provider"
	"hookledger/schema/source"
)

// sample is a source of a scheme and a delivery that it can sign.
type sample struct {
	config provider.Config
	method string
	query  string
	header http.Header
	body   string
	remote netip.Addr
	// wholeBody says that the scheme is an HMAC of the body as it is.
	wholeBody bool
}

func (s sample) secret() source.Secret {
	if len(s.config.Secrets) == 0 {
		return ""
	}
	return s.config.Secrets[0].Value
}

func (s sample) message() Message {
	return Message{Method: s.method, Query: s.query, Header: s.header, Body: []byte(s.body), At: noon}
}

const (
	adyenKey = "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056"
	formType = "application/x-www-form-urlencoded"
)

// samples is one delivery of every scheme that we can sign for.
func samples() map[string]sample {
	with := func(name string, secret source.Secret, change func(*provider.Config)) provider.Config {
		c := provider.Config{Name: "s", Provider: name, Account: []string{"account"}}
		if secret != "" {
			c.Secrets = []provider.SecretConfig{{ID: "main", Value: secret}}
		}
		if d, err := provider.Definition(name); err == nil && d.Postings == nil && d.Statuses == nil && d.NonEffect == "" {
			c.Postings = []provider.PostingConfig{{Key: "k", Amount: "a", Unit: "minor", Currency: provider.Locator{Const: "EUR"}, Direction: provider.Direction{Always: "credit"}}}
		}
		if change != nil {
			change(&c)
		}
		return c
	}
	generic := func(k provider.SignatureConfig) provider.Config {
		secret := source.Secret(acmeSecret)
		if k.SecretEncoding == "hex" {
			secret = adyenKey
		}
		return with("generic", secret, func(c *provider.Config) { c.Signature, c.Event.ID.Path = k, "id" })
	}
	form := http.Header{"Content-Type": {formType}}
	return map[string]sample{
		"stripe":           {config: with("stripe", stripeSecret, nil), body: `{"id":"evt_1"}`, header: jsonType, wholeBody: true},
		"standardwebhooks": {config: with("standardwebhooks", standardSecret, nil), body: "{}", header: http.Header{"Webhook-Id": {"msg_p5jXN8AQM9LWM0D4loKWxJek"}}, wholeBody: true},
		"hmac-sha256-hex":  {config: generic(provider.SignatureConfig{Header: "X-Signature"}), body: "{}", header: jsonType, wholeBody: true},
		"hmac-sha256-b64":  {config: generic(provider.SignatureConfig{Header: "X-Signature", Encoding: "base64"}), body: "{}", header: jsonType, wholeBody: true},
		"hmac-sha512-hex":  {config: generic(provider.SignatureConfig{Header: "X-Signature", Algorithm: "sha512"}), body: "{}", header: jsonType, wholeBody: true},
		"hmac-prefix":      {config: generic(provider.SignatureConfig{Header: "X-Signature", Prefix: "sha256="}), body: "{}", header: jsonType, wholeBody: true},
		"hmac-time":        {config: generic(provider.SignatureConfig{Header: "X-Signature", TimestampHeader: "X-Time"}), body: "{}", header: jsonType, wholeBody: true},
		"hmac-url":         {config: generic(provider.SignatureConfig{Header: "X-Signature", Template: "{url}{body}", URL: "https://x.example/hook"}), body: "{}", header: jsonType, wholeBody: true},
		"hmac-pairs":       {config: generic(provider.SignatureConfig{Header: "X-Signature", Pairs: provider.PairsConfig{Time: "t", Signature: "v1"}, Template: "{ts}:{body}"}), body: "{}", header: jsonType, wholeBody: true},
		"hmac-hex-key":     {config: generic(provider.SignatureConfig{Header: "X-Signature", SecretEncoding: "hex"}), body: "{}", header: jsonType, wholeBody: true},
		"paddle":           {config: with("paddle", "pdl_ntfset_01hsdn8d43dt7mezr1ef2jtbaw_x", nil), body: "{}", header: jsonType, wholeBody: true},
		"mollie":           {config: with("mollie", "0123456789abcdef", nil), body: "{}", header: jsonType, wholeBody: true},
		"adyen-platform":   {config: with("adyen-platform", adyenKey, nil), body: "{}", header: jsonType, wholeBody: true},
		"cloudpayments":    {config: with("cloudpayments", "0123456789abcdef", nil), query: "type=pay", body: "TransactionId=1&Amount=1.00", header: form, wholeBody: true},

		"adyen": {
			config: with("adyen", adyenKey, nil), header: jsonType,
			body: `{"live":"false","notificationItems":[{"NotificationRequestItem":{"pspReference":"p1","merchantAccountCode":"m","merchantReference":"a:b","amount":{"value":100,"currency":"EUR"},"eventCode":"AUTHORISATION","success":"true"}},{"NotificationRequestItem":{"pspReference":"p2","merchantAccountCode":"m","merchantReference":"c","amount":{"value":5,"currency":"EUR"},"eventCode":"REFUND","success":"true"}}]}`,
		},
		"mercadopago":   {config: with("mercadopago", "0123456789abcdef", nil), query: "data.id=ORD1&type=order", body: "{}", header: http.Header{"X-Request-Id": {"r-1"}}},
		"braintree":     {config: with("braintree", "private", func(c *provider.Config) { c.Signature.PublicKey = "public" }), header: form, body: "bt_payload=PG5vdGlmaWNhdGlvbj4%2BCg%3D%3D%0A"},
		"tbank":         {config: with("tbank", "0123456789abcdef", nil), header: jsonType, body: `{"TerminalKey":"t","OrderId":"1","Success":true,"Status":"CONFIRMED","PaymentId":13660,"Amount":100000,"DATA":{"a":"b"}}`},
		"robokassa":     {config: with("robokassa", "0123456789abcdef", nil), header: form, body: "OutSum=100.26&InvId=450009&Shp_login=%D0%92&Shp_a=1"},
		"robokassa-get": {config: with("robokassa", "0123456789abcdef", nil), method: http.MethodGet, query: "OutSum=100.26&InvId=450009"},
		"prodamus":      {config: with("prodamus", "0123456789abcdef", nil), header: form, body: "order_id=1&sum=1.00&products%5B0%5D%5Bname%5D=%D0%B0%2Fb"},
		"sberbank":      {config: with("sberbank", "0123456789abcdef", nil), method: http.MethodGet, query: "mdOrder=a-b&operation=deposited&status=1&amount=100"},
		"xendit":        {config: with("xendit", "0123456789abcdef", nil), header: jsonType, body: "{}"},
		"yookassa":      {config: with("yookassa", "", nil), header: jsonType, body: "{}", remote: netip.MustParseAddr("185.71.76.5")},
	}
}

// What we sign is believed, from what is kept too, and any change of what is signed is
// noticed.
func TestSign_IsBelievedAndChangesAreNoticed(t *testing.T) {
	t.Parallel()
	for name, s := range samples() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, sig := verifierOf(t, s.config)
			r := signed(t, sig, s.secret(), s.message())
			r.Remote = s.remote
			got, err := v.Verify(r)
			if err != nil {
				t.Fatal(err)
			}
			if got.BodyAuthenticated() != sig.BodyAuthenticated {
				t.Errorf("got body authenticated %v", got.BodyAuthenticated())
			}
			for _, h := range got.Headers() {
				if s.secret() != "" && bytes.Contains(h.Value, []byte(s.secret())) {
					t.Errorf("header %s, which is kept, holds the secret", h.Key)
				}
			}
			for i := range r.Body {
				changed := r
				changed.Body = bytes.Clone(r.Body)
				changed.Body[i] ^= 1
				if _, err := v.Verify(changed); err == nil && sig.BodyAuthenticated {
					t.Fatalf("believed with byte %d changed: %s", i, changed.Body)
				}
			}
			other := s.config
			other.Secrets = []provider.SecretConfig{{ID: "other", Value: "another-" + s.secret()}}
			if s.secret() == adyenKey {
				other.Secrets[0].Value = source.Secret(adyenKey[2:] + "00")
			}
			if s.config.Provider == "standardwebhooks" {
				other.Secrets[0].Value = source.Secret("whsec_AAAA" + standardSecret[10:])
			}
			if len(s.config.Secrets) > 0 {
				w, _ := verifierOf(t, other)
				if _, err := w.Verify(r); reasonOf(err) != NoMatch {
					t.Errorf("with another secret: got %v, want %s", err, NoMatch)
				}
			}
		})
	}
}
