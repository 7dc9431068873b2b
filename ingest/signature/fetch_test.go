package signature

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"hookledger/schema/provider"
)

// keyHost is a server that stands in for a provider's host of keys: whatever address is
// dialled leads to it, over TLS, and its certificate is for the provider's names.
type keyHost struct {
	transport http.RoundTripper
	asked     atomic.Int64
	dialled   sync.Map // addresses that were dialled
	serve     atomic.Pointer[http.HandlerFunc]
}

func newKeyHost(t testing.TB, ca *authority, names ...string) *keyHost {
	t.Helper()
	h := &keyHost{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.asked.Add(1)
		(*h.serve.Load())(w, r)
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{ca.issue(t, &x509.Certificate{DNSNames: names})}}
	server.StartTLS()
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(ca.cert)
	h.transport = &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots},
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			h.dialled.Store(address, true)
			return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
		},
	}
	return h
}

func (h *keyHost) handle(f http.HandlerFunc) { h.serve.Store(&f) }

// authority issues certificates.
type authority struct {
	cert *x509.Certificate
	key  *rsa.PrivateKey
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "root"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: noon.AddDate(-1, 0, 0), NotAfter: noon.AddDate(10, 0, 0), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{cert, key}
}

func (a *authority) issue(t testing.TB, template *x509.Certificate) tls.Certificate {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(2)
	if template.NotAfter.IsZero() {
		template.NotBefore, template.NotAfter = noon.AddDate(-1, 0, 0), noon.AddDate(1, 0, 0)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

func pemOf(c tls.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]})
}

const (
	paypalWebhook = "4JH86294D6297924G"
	paypalAddress = "https://api.paypal.com/v1/notifications/certs/CERT-360caa42"
)

// paypalDelivery signs as PayPal does.
func paypalDelivery(t testing.TB, cert tls.Certificate, address string, body string) Request {
	t.Helper()
	text := fmt.Sprintf("id-1|2026-11-29T12:00:00Z|%s|%d", paypalWebhook, crc32.ChecksumIEEE([]byte(body)))
	sum := sha256.Sum256([]byte(text))
	sig, err := rsa.SignPKCS1v15(rand.Reader, cert.PrivateKey.(*rsa.PrivateKey), crypto.SHA256, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	h := http.Header{}
	h.Set("PAYPAL-TRANSMISSION-ID", "id-1")
	h.Set("PAYPAL-TRANSMISSION-TIME", "2026-11-29T12:00:00Z")
	h.Set("PAYPAL-TRANSMISSION-SIG", base64.StdEncoding.EncodeToString(sig))
	h.Set("PAYPAL-CERT-URL", address)
	h.Set("PAYPAL-AUTH-ALGO", "SHA256withRSA")
	return Request{Header: h, Body: []byte(body), At: noon}
}

func paypalVerifier(t testing.TB, options ...Option) *Verifier {
	t.Helper()
	c := provider.Config{Name: "paypal", Provider: "paypal", Account: []string{"a"}, Signature: provider.SignatureConfig{WebhookID: paypalWebhook}}
	if d, err := provider.Definition("paypal"); err == nil && d.Postings == nil {
		c.Postings = []provider.PostingConfig{{Key: "k", Amount: "a", Unit: "minor", Currency: provider.Locator{Const: "EUR"}, Direction: provider.Direction{Always: "credit"}}}
	}
	source, err := provider.New(c)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := NewKeyring(source, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	v, err := New(source.Signature(), keys, options...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestPayPal_BelievesACertificateOfThePlaceAndTheRoot(t *testing.T) {
	t.Parallel()
	ca, other := newAuthority(t), newAuthority(t)
	host := newKeyHost(t, ca, "api.paypal.com")
	good := ca.issue(t, &x509.Certificate{Subject: pkix.Name{CommonName: "messageverificationcerts.paypal.com"}})
	for name, tc := range map[string]struct {
		cert tls.Certificate
		want Reason
	}{
		"good":       {good, ""},
		"by SAN":     {ca.issue(t, &x509.Certificate{DNSNames: []string{"x.PayPal.com"}}), ""},
		"other root": {other.issue(t, &x509.Certificate{Subject: pkix.Name{CommonName: "messageverificationcerts.paypal.com"}}), UnknownKey},
		"other name": {ca.issue(t, &x509.Certificate{Subject: pkix.Name{CommonName: "evilpaypal.com"}}), UnknownKey},
		"expired":    {ca.issue(t, &x509.Certificate{Subject: pkix.Name{CommonName: "m.paypal.com"}, NotBefore: noon.AddDate(-2, 0, 0), NotAfter: noon.AddDate(0, 0, -1)}), UnknownKey},
		"not yet":    {ca.issue(t, &x509.Certificate{Subject: pkix.Name{CommonName: "m.paypal.com"}, NotBefore: noon.AddDate(0, 0, 1), NotAfter: noon.AddDate(1, 0, 0)}), UnknownKey},
		"other cert": {tls.Certificate{Certificate: good.Certificate, PrivateKey: ca.issue(t, &x509.Certificate{}).PrivateKey}, NoMatch},
		"no cert":    {tls.Certificate{Certificate: [][]byte{[]byte("x")}, PrivateKey: good.PrivateKey}, UnknownKey},
	} {
		v := paypalVerifier(t, WithRoots(ca.pool()), WithTransport(host.transport))
		host.handle(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(pemOf(tc.cert)) })
		got, err := v.Verify(paypalDelivery(t, tc.cert, paypalAddress, `{"id":"WH-1"}`))
		if reason := reasonIn(err); reason != tc.want || err != nil && reason == "" {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
		if err == nil && (got.Scheme() != "paypal-rsa-sha256" || !strings.HasPrefix(got.KeyID(), "cert-") || len(got.Headers()) != 5) {
			t.Errorf("%s: got %s, %s, %v", name, got.Scheme(), got.KeyID(), got.Headers())
		}
	}
}

// Whatever a delivery writes into the address, nothing but the provider's host is asked.
func TestPayPal_CannotBePointedElsewhere(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	host := newKeyHost(t, ca, "api.paypal.com", "api.paypal.com.evil.example", "evil.example", "localhost")
	cert := ca.issue(t, &x509.Certificate{Subject: pkix.Name{CommonName: "m.paypal.com"}})
	host.handle(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(pemOf(cert)) })
	v := paypalVerifier(t, WithRoots(ca.pool()), WithTransport(host.transport))
	for _, address := range []string{
		"http://api.paypal.com/v1/notifications/certs/CERT-1", "https://api.paypal.com.evil.example/v1/notifications/certs/CERT-1",
		"https://evil.example/v1/notifications/certs/CERT-1?api.paypal.com", "https://api.paypal.com@evil.example/v1/notifications/certs/x",
		"https://api.paypal.com:8443/v1/notifications/certs/x", "https://api.paypal.com:443@evil.example/v1/notifications/x",
		"https://evil.example/v1/notifications/#api.paypal.com", "https://evil.example\\api.paypal.com/v1/notifications/x",
		"https://localhost/v1/notifications/x", "https://127.0.0.1/v1/notifications/x", "https://[::1]/v1/notifications/x", "https://169.254.169.254/v1/notifications/x",
		"https://api.paypal.com/v1/notifications/../oauth2/token", "https://api.paypal.com/v1/oauth2/token", "https://api.paypal.com",
		"https://api.paypal.com/v1/notifications/x?y=z", "https://api.paypal.com/v1/notifications/x#y", "https://API.PAYPAL.COM./v1/notifications/x",
		"https://api.sandbox.paypal.com/v1/notifications/x", "file:///v1/notifications/x", "//api.paypal.com/v1/notifications/x", "https:api.paypal.com/v1/notifications/x",
		"https://api.paypal.com/v1/notifications/%2e%2e/x", "%", "https://api.paypal.com%2eevil.example/v1/notifications/x", "https://аpi.paypal.com/v1/notifications/x",
	} {
		_, err := v.Verify(paypalDelivery(t, cert, address, "{}"))
		if reason := reasonIn(err); reason != UnknownKey && reason != Malformed {
			t.Errorf("%s: got %v", address, err)
		}
	}
	host.dialled.Range(func(address, _ any) bool {
		if address != "api.paypal.com:443" {
			t.Errorf("dialled %v", address)
		}
		return true
	})
	// A redirect of the provider's own host is not followed.
	host.handle(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://evil.example/v1/notifications/certs/CERT-1", http.StatusFound)
	})
	if _, err := v.Verify(paypalDelivery(t, cert, paypalAddress, "{}")); !errors.Is(err, ErrUnavailable) {
		t.Errorf("redirect: got %v, want %v", err, ErrUnavailable)
	}
	if _, dialled := host.dialled.Load("evil.example:443"); dialled {
		t.Error("the redirect was followed")
	}
}

// fetchClock is a clock for caches.
type fetchClock struct{ offset atomic.Int64 }

func (c *fetchClock) now() time.Time { return noon.Add(time.Duration(c.offset.Load())) }

func withClock(c *fetchClock) Option {
	return func(t *Trust) error { t.now = c.now; return nil }
}

func TestFetch_RemembersAndAsksAgain(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	host := newKeyHost(t, ca, "api.paypal.com")
	cert := ca.issue(t, &x509.Certificate{Subject: pkix.Name{CommonName: "m.paypal.com"}})
	clock := &fetchClock{}
	v := paypalVerifier(t, WithRoots(ca.pool()), WithTransport(host.transport), withClock(clock))
	up := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(pemOf(cert)) }
	down := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }
	absent := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }
	want := func(step string, asked int64, wantErr error) {
		t.Helper()
		_, err := v.Verify(paypalDelivery(t, cert, paypalAddress, "{}"))
		if wantErr == nil && err != nil || wantErr != nil && !errors.Is(err, wantErr) && reasonIn(err) == "" {
			t.Errorf("%s: got %v, want %v", step, err, wantErr)
		}
		if got := host.asked.Load(); got != asked {
			t.Errorf("%s: asked %d times, want %d", step, got, asked)
		}
	}
	pass := func(d time.Duration) { clock.offset.Add(int64(d)) }

	host.handle(down)
	want("away", 1, ErrUnavailable)
	want("away, a moment later", 1, ErrUnavailable)
	pass(retryAfter + time.Second)
	host.handle(up)
	want("back", 2, nil)
	want("remembered", 2, nil)
	pass(freshFor + time.Second)
	host.handle(down)
	want("not fresh and away: the old one is used", 3, nil)
	want("and nobody asks at once again", 3, nil)
	pass(staleFor)
	want("too old", 4, ErrUnavailable)
	pass(retryAfter + time.Second)
	host.handle(absent)
	_, err := v.Verify(paypalDelivery(t, cert, paypalAddress, "{}"))
	if reasonIn(err) != UnknownKey {
		t.Errorf("taken away: got %v", err)
	}
	if _, err = v.Verify(paypalDelivery(t, cert, paypalAddress, "{}")); reasonIn(err) != UnknownKey || host.asked.Load() != 5 {
		t.Errorf("taken away, again: got %v, asked %d times", err, host.asked.Load())
	}
}

// Names come from anybody; the provider is not asked for each of them.
func TestFetch_AsksNoMoreThanItsBurst(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	host := newKeyHost(t, ca, "api.paypal.com")
	cert := ca.issue(t, &x509.Certificate{Subject: pkix.Name{CommonName: "m.paypal.com"}})
	host.handle(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/notifications/certs/CERT-360caa42" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = w.Write(pemOf(cert))
	})
	v := paypalVerifier(t, WithRoots(ca.pool()), WithTransport(host.transport))
	good := paypalDelivery(t, cert, paypalAddress, "{}")
	if _, err := v.Verify(good); err != nil {
		t.Fatal(err)
	}
	for i := range 500 {
		_, err := v.Verify(paypalDelivery(t, cert, fmt.Sprintf("https://api.paypal.com/v1/notifications/certs/%d", i), "{}"))
		if err == nil {
			t.Fatal("believed a certificate that does not exist")
		}
	}
	if got := host.asked.Load(); got > fetchBurst {
		t.Errorf("asked %d times, want at most %d", got, fetchBurst)
	}
	if _, err := v.Verify(good); err != nil {
		t.Errorf("the known certificate is forgotten: %v", err)
	}
}

// A host that does not answer costs a delivery no more than the timeout, and says nothing
// about the signature.
func TestFetch_TimesOut(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	host := newKeyHost(t, ca, "api.paypal.com")
	cert := ca.issue(t, &x509.Certificate{Subject: pkix.Name{CommonName: "m.paypal.com"}})
	host.handle(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	v := paypalVerifier(t, WithRoots(ca.pool()), WithTransport(host.transport))
	start := time.Now()
	var waiting sync.WaitGroup
	for range 8 {
		waiting.Go(func() {
			if _, err := v.Verify(paypalDelivery(t, cert, paypalAddress, "{}")); !errors.Is(err, ErrUnavailable) {
				t.Errorf("got %v, want %v", err, ErrUnavailable)
			}
		})
	}
	waiting.Wait()
	if took := time.Since(start); took > 3*fetchTimeout {
		t.Errorf("eight deliveries took %s", took)
	}
	if asked := host.asked.Load(); asked != 1 {
		t.Errorf("asked %d times, want once for all", asked)
	}
}

// plaidKey is a key that signs as Plaid does.
type plaidKey struct {
	kid string
	key *ecdsa.PrivateKey
}

func newPlaidKey(t testing.TB, kid string) plaidKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return plaidKey{kid, key}
}

func (k plaidKey) jwk(t testing.TB, expired any) string {
	t.Helper()
	point, err := k.key.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	b64 := base64.RawURLEncoding.EncodeToString
	text, err := json.Marshal(map[string]any{"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": k.kid, "x": b64(point[1:33]), "y": b64(point[33:]), "expired_at": expired})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (k plaidKey) sign(t testing.TB, head, body string) Request {
	t.Helper()
	sum := sha256.Sum256([]byte(body))
	claims := fmt.Sprintf(`{"iat":%d,"request_body_sha256":"%s"}`, noon.Unix(), hex.EncodeToString(sum[:]))
	b64 := base64.RawURLEncoding.EncodeToString
	text := b64([]byte(head)) + "." + b64([]byte(claims))
	digest := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, k.key, digest[:])
	if err != nil {
		t.Fatal(err)
	}
	value := make([]byte, 64)
	r.FillBytes(value[:32])
	s.FillBytes(value[32:])
	return Request{Header: http.Header{"Plaid-Verification": {text + "." + b64(value)}}, Body: []byte(body), At: noon}
}

func (k plaidKey) delivery(t testing.TB, body string) Request {
	return k.sign(t, `{"alg":"ES256","kid":"`+k.kid+`","typ":"JWT"}`, body)
}

func TestPlaid_FetchesRotatesAndExpires(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	host := newKeyHost(t, ca, "production.plaid.com")
	first, second := newPlaidKey(t, "first"), newPlaidKey(t, "second")
	var expired atomic.Pointer[any]
	host.handle(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		var q struct {
			ClientID string `json:"client_id"`
			Secret   string `json:"secret"`
			KeyID    string `json:"key_id"`
		}
		if err := json.Unmarshal(text, &q); err != nil || r.Method != http.MethodPost || r.URL.Path != "/webhook_verification_key/get" || q.ClientID != "client" || q.Secret != "secret-0123456789" {
			t.Errorf("got %s %s %s", r.Method, r.URL, text)
		}
		switch q.KeyID {
		case "first":
			var at any
			if p := expired.Load(); p != nil {
				at = *p
			}
			fmt.Fprintf(w, `{"key":%s,"request_id":"r"}`, first.jwk(t, at))
		case "second":
			fmt.Fprintf(w, `{"key":%s,"request_id":"r"}`, second.jwk(t, nil))
		default:
			w.WriteHeader(http.StatusBadRequest)
		}
	})
	source, err := provider.New(provider.Config{
		Name: "plaid", Provider: "plaid", Secrets: []provider.SecretConfig{{Value: "secret-0123456789"}},
		Signature: provider.SignatureConfig{ClientID: "client"},
	})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := NewKeyring(source, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	clock := &fetchClock{}
	v, err := New(source.Signature(), keys, WithTransport(host.transport), withClock(clock))
	if err != nil {
		t.Fatal(err)
	}
	want := func(step string, r Request, reason Reason) {
		t.Helper()
		if _, err := v.Verify(r); reasonIn(err) != reason || err != nil && reason == "" {
			t.Errorf("%s: got %v, want %q", step, err, reason)
		}
	}
	want("first", first.delivery(t, "{}"), "")
	want("second, after a rotation", second.delivery(t, "{}"), "")
	want("first, still", first.delivery(t, "{ }"), "")
	if got := host.asked.Load(); got != 2 {
		t.Errorf("asked %d times, want once for each key", got)
	}
	imposter := newPlaidKey(t, "first")
	want("another key of the same name", imposter.delivery(t, "{}"), NoMatch)
	want("a key nobody knows", newPlaidKey(t, "third").delivery(t, "{}"), UnknownKey)
	want("none", first.sign(t, `{"alg":"none","kid":"first"}`, "{}"), UnknownVersion)
	want("HS256", first.sign(t, `{"alg":"HS256","kid":"first"}`, "{}"), UnknownVersion)
	want("no algorithm", first.sign(t, `{"kid":"first"}`, "{}"), UnknownVersion)
	want("no key", first.sign(t, `{"alg":"ES256"}`, "{}"), UnknownKey)
	want("a path for a key", first.sign(t, `{"alg":"ES256","kid":"../first"}`, "{}"), UnknownKey)
	want("a key of its own", first.sign(t, `{"alg":"ES256","kid":"first","jwk":`+imposter.jwk(t, nil)+`}`, "{}"), "")
	want("critical extensions", first.sign(t, `{"alg":"ES256","kid":"first","crit":["exp"]}`, "{}"), UnknownVersion)
	want("two algorithms", first.sign(t, `{"alg":"none","alg":"ES256","kid":"first"}`, "{}"), Malformed)
	late := first.delivery(t, "{}")
	late.At = noon.Add(301 * time.Second)
	want("late", late, Stale)

	// The provider takes a key out of use; that is seen when it is asked for again.
	var at any = noon.Add(-time.Hour).Unix()
	expired.Store(&at)
	clock.offset.Add(int64(freshFor + time.Second))
	want("expired", first.delivery(t, "{}"), UnknownKey)
}
