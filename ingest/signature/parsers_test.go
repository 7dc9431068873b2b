package signature

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"hookledger/schema/provider"
	"hookledger/schema/source"
)

// A text that was signed could otherwise be read as another delivery.
func TestVerify_RefusesWhatCouldBeReadInTwoWays(t *testing.T) {
	t.Parallel()
	all := samples()
	change := func(name string, f func(*sample)) sample {
		s := all[name]
		s.header = s.header.Clone()
		f(&s)
		return s
	}
	for name, s := range map[string]sample{
		"adyen: colon in a field":  change("adyen", func(s *sample) { s.body = strings.Replace(s.body, `"m"`, `"m:x"`, 1) }),
		"adyen: object in a field": change("adyen", func(s *sample) { s.body = strings.Replace(s.body, `"m"`, `{"a":1}`, 1) }),
		"adyen: no items":          change("adyen", func(s *sample) { s.body = `{"notificationItems":[]}` }),
		"adyen: key twice":         change("adyen", func(s *sample) { s.body = strings.Replace(s.body, `"success"`, `"Success":"false","success"`, 1) }),
		"mercadopago: semicolon":   change("mercadopago", func(s *sample) { s.query = "data.id=1%3Brequest-id:2" }),
		"mercadopago: twice":       change("mercadopago", func(s *sample) { s.query = "data.id=1&data.id=2" }),
		"robokassa: not a sum":     change("robokassa", func(s *sample) { s.body = "OutSum=1%3A2&InvId=3" }),
		"robokassa: not a number":  change("robokassa", func(s *sample) { s.body = "OutSum=1&InvId=3%3Ax" }),
		"robokassa: twice":         change("robokassa", func(s *sample) { s.body += "&OutSum=1" }),
		"prodamus: twice":          change("prodamus", func(s *sample) { s.body += "&sum=2" }),
		"prodamus: text and array": change("prodamus", func(s *sample) { s.body += "&sum%5B0%5D=2" }),
		"sberbank: semicolon":      change("sberbank", func(s *sample) { s.query += "&description=x%3Bstatus%3B1" }),
		"sberbank: twice":          change("sberbank", func(s *sample) { s.query += "&status=0" }),
		"sberbank: bare semicolon": change("sberbank", func(s *sample) { s.query += ";status=0" }),
		"form: bad escape":         change("prodamus", func(s *sample) { s.body += "&x=%zz" }),
		"form: not UTF-8":          change("prodamus", func(s *sample) { s.body += "&x=%ff" }),
	} {
		_, err := Sign(mustSignature(t, s.config), s.secret(), s.message())
		if reason := reasonIn(err); reason != Malformed && reason != DuplicateHeader && !strings.Contains(err.Error(), "two ways") && !strings.Contains(err.Error(), "single value") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	// T-Bank names a field as it names the secret.
	tbank := all["tbank"]
	v, sig := verifierOf(t, tbank.config)
	r := signed(t, sig, tbank.secret(), tbank.message())
	r.Body = bytes.Replace(r.Body, []byte(`"OrderId"`), []byte(`"Password":"x","OrderId"`), 1)
	if _, err := v.Verify(r); reasonIn(err) != Malformed {
		t.Errorf("tbank: got %v", err)
	}
	// X-Content-HMAC signs the decoded text.
	cp := all["cloudpayments"]
	v, _ = verifierOf(t, cp.config)
	key, err := cloudPaymentsScheme{}.lock([]byte(cp.secret()))
	if err != nil {
		t.Fatal(err)
	}
	mac := encode(key.(*hmacLock).mac([][]byte{[]byte("Amount=1&Data=x&Amount=2")}), "base64")
	for body, want := range map[string]Reason{"Amount=1&Data=x&Amount=2": "", "Amount=1&Data=x%26Amount=2": Malformed, "Amount=1&Data=x%26Amount%3D2": Malformed} {
		h := http.Header{"Content-Type": {formType}, "X-Content-Hmac": {mac}}
		if _, err := v.Verify(Request{Header: h, Body: []byte(body), At: noon}); reasonIn(err) != want || want == "" && err != nil {
			t.Errorf("cloudpayments, %s: got %v, want %q", body, err, want)
		}
	}
}

func mustSignature(t *testing.T, c provider.Config) source.Signature {
	t.Helper()
	src, err := provider.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return src.Signature()
}

func TestVerify_RefusesDoubledHeadersOfEveryScheme(t *testing.T) {
	t.Parallel()
	for name, s := range samples() {
		v, sig := verifierOf(t, s.config)
		r := signed(t, sig, s.secret(), s.message())
		r.Remote = s.remote
		for header, values := range r.Header {
			if header == "Content-Type" {
				continue
			}
			doubled := r
			doubled.Header = r.Header.Clone()
			doubled.Header[header] = []string{values[0], values[0]}
			_, err := v.Verify(doubled)
			if sig.Repeated {
				if err != nil {
					t.Errorf("%s: %s twice is refused: %v", name, header, err)
				}
				continue
			}
			if reasonIn(err) != DuplicateHeader {
				t.Errorf("%s: %s twice: got %v", name, header, err)
			}
		}
	}
}

func TestToken_ComparesTheWholeToken(t *testing.T) {
	t.Parallel()
	s := samples()["xendit"]
	v, _ := verifierOf(t, s.config)
	token := string(s.secret())
	for value, want := range map[string]Reason{
		token: "", token + "x": NoMatch, token[:5]: NoMatch, strings.ToUpper(token): NoMatch, "": MissingHeader, " ": MissingHeader, token + "\x00": Malformed,
	} {
		_, err := v.Verify(Request{Header: http.Header{"X-Callback-Token": {value}}, Body: []byte("{}"), At: noon})
		if reasonIn(err) != want || want == "" && err != nil {
			t.Errorf("%q: got %v, want %q", value, err, want)
		}
	}
}

func TestNetworks_BelieveTheirOwn(t *testing.T) {
	t.Parallel()
	c := samples()["yookassa"].config
	v, _ := verifierOf(t, c)
	own := c
	own.Signature.Networks = []string{"192.0.2.0/24", "2001:db8::1"}
	w, _ := verifierOf(t, own)
	for address, believed := range map[string][2]bool{
		"185.71.76.31": {true, false}, "185.71.76.32": {false, false}, "::ffff:77.75.156.11": {true, false}, "2a02:5180:0:1509::1": {true, false},
		"2a02:5180:0:1510::1": {false, false}, "192.0.2.7": {false, true}, "2001:db8::1": {false, true}, "2001:db8::2": {false, false}, "fe80::1%eth0": {false, false},
	} {
		for i, v := range []*Verifier{v, w} {
			got, err := v.Verify(Request{Remote: netip.MustParseAddr(address), Body: []byte("{}"), At: noon})
			if (err == nil) != believed[i] || err != nil && reasonIn(err) != Address {
				t.Errorf("%s: got %v", address, err)
			}
			if err == nil && (got.BodyAuthenticated() || len(got.Headers()) != 1 || got.Headers()[0].Key != "hl_remote") {
				t.Errorf("%s: got %v, %v", address, got.BodyAuthenticated(), got.Headers())
			}
		}
	}
	if _, err := v.Verify(Request{At: noon}); reasonIn(err) != Address {
		t.Errorf("no address: got %v", err)
	}
}

func TestBraintree_AnswersChallengesAndNothingElse(t *testing.T) {
	t.Parallel()
	c := samples()["braintree"].config
	c.Secrets[0].Value, c.Signature.PublicKey = "integration_private_key", "integration_public_key"
	v, _ := verifierOf(t, c)
	for query, want := range map[string]string{
		"bt_challenge=20f9f8ed05f77439fe955c977e4c8a53":  "integration_public_key|d9b899556c966b3f06945ec21311865d35df3ce4",
		"bt_challenge=20f9f8ed05f77439fe955c977e4c8a530": "",
		"bt_challenge=20F9F8ED05F77439FE955C977E4C8A53":  "",
		"bt_challenge=":                     "",
		"":                                  "",
		"bt_challenge=PG5vdGlmaWNhdGlvbj48": "",
	} {
		got, err := v.Verify(Request{Method: http.MethodGet, Query: query, At: noon})
		if got.Reply() != want || (err == nil) != (want != "") {
			t.Errorf("%s: got %q, %v", query, got.Reply(), err)
		}
	}
}

// Expectations are the output of PHP 8.2.36: parse_str, ksort at every level, json_encode
// with JSON_UNESCAPED_UNICODE.
func TestProdamus_WritesAsPHPDoes(t *testing.T) {
	t.Parallel()
	for form, want := range map[string]string{
		"b=2&a=1":                           `{"a":"1","b":"2"}`,
		"a[1]=y&a[0]=x":                     `{"a":["x","y"]}`,
		"a[]=x":                             `{"a":["x"]}`,
		"a[1]=x&a[2]=y":                     `{"a":{"1":"x","2":"y"}}`,
		"a[10]=x&a[9]=y&a[b]=z":             `{"a":{"9":"y","10":"x","b":"z"}}`,
		"a[0][name]=%D0%90/b&a[0][price]=1": `{"a":[{"name":"А\/b","price":"1"}]}`,
		"q=%22%5C%08%0C%0A%0D%09%01%7F%E2%80%A8%F0%9F%98%80": `{"q":"\"\\\b\f\n\r\t\u0001` + "\x7f" + `\u2028😀"}`,
		"a.b=1&%20c=2&d+e=3":                    `{"a_b":"1","c":"2","d_e":"3"}`,
		"a[-1]=x&a[0]=y":                        `{"a":{"-1":"x","0":"y"}}`,
		"a[01]=x&a[1]=y":                        `{"a":{"01":"x","1":"y"}}`,
		"10=x&9=y&b=z&a=w":                      `{"9":"y","10":"x","a":"w","b":"z"}`,
		"0=x&1=y":                               `["x","y"]`,
		"a[b.c]=1&a[d%20e]=2&a[x]y=3":           `{"a":{"b.c":"1","d e":"2","x":"3"}}`,
		"a[9a]=x&a[10]=y&a[9]=z":                `{"a":{"9":"z","10":"y","9a":"x"}}`,
		"signature=x&sign=y&_payform_sign=z&a=": `{"a":""}`,
	} {
		got, err := prodamusText(Request{Body: []byte(form)})
		if err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v, want %s", form, got, err, want)
		}
	}
}

func TestPublicKey_SaysWhatItIsNot(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "x", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n"} {
		if _, err := (rsaScheme{}).lock([]byte(text)); err == nil {
			t.Errorf("accepted %q", text)
		}
	}
}

func FuzzForm(f *testing.F) {
	f.Add("a=1&b=%D0%90+c&&=x", "multipart/form-data; boundary=x")
	f.Add("--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--x--\r\n", "multipart/form-data; boundary=x")
	f.Fuzz(func(t *testing.T, body, contentType string) {
		_, _ = formFields(Request{Header: http.Header{"Content-Type": {contentType}}, Body: []byte(body)})
		fields, err := formFields(Request{Body: []byte(body)})
		if err != nil {
			return
		}
		// What is accepted is what the standard library reads.
		want, err := url.ParseQuery(body)
		if err != nil || len(want) != len(fields) {
			t.Fatalf("got %v, the library says %v, %v", fields, want, err)
		}
		for _, field := range fields {
			if len(want[field.Name]) != 1 || want[field.Name][0] != field.Value {
				t.Fatalf("got %v, the library says %v", field, want[field.Name])
			}
		}
	})
}

// fuzzBody checks that bodies nobody signed are never believed and never end in anything
// but a *Rejection.
func fuzzBody(f *testing.F, name string) {
	s := samples()[name]
	v, sig := verifierOf(f, s.config)
	m, err := Sign(sig, s.secret(), s.message())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(m.Body, m.Query, m.Header.Get(sig.Header))
	f.Add([]byte(s.body), s.query, "")
	f.Fuzz(func(t *testing.T, body []byte, query, header string) {
		r := Request{Method: m.Method, Query: query, Header: m.Header.Clone(), Body: body, At: noon}
		if sig.Header != "" {
			r.Header[sig.Header] = []string{header}
		}
		if _, err := v.Verify(r); err != nil {
			var rejection *Rejection
			if !errors.As(err, &rejection) {
				t.Fatalf("got %v, want a *Rejection", err)
			}
			return
		}
		// The seeds, or a change that says the same.
		if sig.BodyAuthenticated && m.Method == "" && string(body) != string(m.Body) && name != "braintree" && name != "prodamus" {
			t.Fatalf("believed %q", body)
		}
	})
}

func FuzzAdyen(f *testing.F)       { fuzzBody(f, "adyen") }
func FuzzTBank(f *testing.F)       { fuzzBody(f, "tbank") }
func FuzzRobokassa(f *testing.F)   { fuzzBody(f, "robokassa") }
func FuzzProdamus(f *testing.F)    { fuzzBody(f, "prodamus") }
func FuzzSberbank(f *testing.F)    { fuzzBody(f, "sberbank") }
func FuzzBraintree(f *testing.F)   { fuzzBody(f, "braintree") }
func FuzzMercadoPago(f *testing.F) { fuzzBody(f, "mercadopago") }
func FuzzPairs(f *testing.F)       { fuzzBody(f, "paddle") }

func FuzzPlaidToken(f *testing.F) {
	source, err := provider.New(provider.Config{Name: "plaid", Provider: "plaid", Secrets: []provider.SecretConfig{{Value: "secret-0123456789"}}, Signature: provider.SignatureConfig{ClientID: "c"}})
	if err != nil {
		f.Fatal(err)
	}
	key := newPlaidKey(f, "k")
	var nobody json.RawMessage = []byte(`{"keys":[` + key.jwk(f, nil) + `]}`)
	s := &plaidScheme{sig: source.Signature()}
	t := newTrust(source.Signature())
	if err := WithJWKS(nobody)(t); err != nil {
		f.Fatal(err)
	}
	s.trust(t)
	f.Add(key.delivery(f, "{}").Header.Get("Plaid-Verification"), []byte("{}"))
	f.Add("a.b.c", []byte(""))
	f.Fuzz(func(t *testing.T, token string, body []byte) {
		claims, err := s.read(Request{Header: http.Header{"Plaid-Verification": {token}}, Body: body, At: noon})
		if err != nil {
			var rejection *Rejection
			if !errors.As(err, &rejection) {
				t.Fatalf("got %v, want a *Rejection", err)
			}
			return
		}
		if !isKeyID(claims[0].keyName) || len(claims[0].signatures[0].value) != 64 {
			t.Fatalf("got %v", claims)
		}
	})
}

func FuzzPayPalAddress(f *testing.F) {
	s := &paypalScheme{sig: source.Signature{KeyHosts: []string{"api.paypal.com"}}}
	for _, seed := range []string{paypalAddress, "https://api.paypal.com@evil/v1/notifications/", "https://api.paypal.com:443/v1/notifications/..", "https://API.paypal.com/"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, address string) {
		if s.checkAddress(address) != nil {
			return
		}
		r, err := http.NewRequest(http.MethodGet, address, nil)
		if err != nil {
			return
		}
		if r.URL.Scheme != "https" || r.URL.Host != "api.paypal.com" && r.URL.Host != "api.paypal.com:443" || !strings.HasPrefix(r.URL.Path, paypalCertPath) {
			t.Fatalf("would ask %s", r.URL)
		}
	})
}

func FuzzBodyChanges(f *testing.F) {
	f.Add([]byte("{\"a\":\"\\u0041\\/\", \"b\":[1,2]}\r\n"))
	f.Fuzz(func(_ *testing.T, body []byte) {
		for _, c := range bodyChanges {
			_ = c.make(body)
		}
	})
}
