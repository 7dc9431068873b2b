package providers

import (
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
	"fmt"
	"hash/crc32"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// internet stands in for the hosts of providers: a proxy that takes every tunnel to one
// server, whose certificate is for their names and of a root of our own.
type internet struct {
	root     string // a file with the root, in PEM
	proxy    string // its URL
	paypal   *rsa.PrivateKey
	paypalPE []byte
	plaid    *ecdsa.PrivateKey

	mu    sync.Mutex
	asked []string
}

func newInternet(t *testing.T) *internet {
	t.Helper()
	n := &internet{}
	rootKey, rootCert := certificate(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "root of a test"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil, nil)
	hostKey, hostCert := certificate(t, &x509.Certificate{DNSNames: []string{"api.paypal.com", "production.plaid.com"}}, rootCert, rootKey)
	paypalKey, paypalCert := certificate(t, &x509.Certificate{Subject: pkix.Name{CommonName: "messageverificationcerts.paypal.com"}}, rootCert, rootKey)
	n.paypal, n.paypalPE = paypalKey, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: paypalCert.Raw})
	var err error
	if n.plaid, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	n.root = filepath.Join(t.TempDir(), "root.pem")
	if err := os.WriteFile(n.root, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: rootCert.Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	hosts := httptest.NewUnstartedServer(http.HandlerFunc(n.serve))
	hosts.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{hostCert.Raw}, PrivateKey: hostKey}}}
	hosts.StartTLS()
	t.Cleanup(hosts.Close)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { n.tunnel(w, r, hosts.Listener.Addr().String()) }))
	t.Cleanup(proxy.Close)
	n.proxy = proxy.URL
	return n
}

// certificate issues a certificate, by itself without a parent.
func certificate(t *testing.T, template, parent *x509.Certificate, parentKey *rsa.PrivateKey) (*rsa.PrivateKey, *x509.Certificate) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	if parent == nil {
		parent, parentKey = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return key, cert
}

// tunnel is the method CONNECT of a proxy.
func (n *internet) tunnel(w http.ResponseWriter, r *http.Request, to string) {
	n.mu.Lock()
	n.asked = append(n.asked, r.Method+" "+r.Host)
	n.mu.Unlock()
	if r.Method != http.MethodConnect {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	out, err := net.Dial("tcp", to)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer out.Close()
	in, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer in.Close()
	if _, err := io.WriteString(in, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	go func() { // ends when either side closes
		_, _ = io.Copy(out, in)
		_ = out.Close()
	}()
	_, _ = io.Copy(in, out)
}

func (n *internet) serve(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Host == "api.paypal.com" && r.URL.Path == "/v1/notifications/certs/CERT-1":
		_, _ = w.Write(n.paypalPE)
	case r.Host == "production.plaid.com" && r.URL.Path == "/webhook_verification_key/get":
		point, err := n.plaid.PublicKey.Bytes()
		if err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		b64 := base64.RawURLEncoding.EncodeToString
		_ = json.NewEncoder(w).Encode(map[string]any{"key": map[string]any{
			"kty": "EC", "crv": "P-256", "alg": "ES256", "kid": "key-1", "x": b64(point[1:33]), "y": b64(point[33:]), "expired_at": nil,
		}})
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// signPayPal signs as PayPal does.
func (n *internet) signPayPal(t *testing.T, h http.Header, body []byte, webhook string) {
	t.Helper()
	at := time.Now().UTC().Format(time.RFC3339)
	sum := sha256.Sum256(fmt.Appendf(nil, "tr-1|%s|%s|%d", at, webhook, crc32.ChecksumIEEE(body)))
	value, err := rsa.SignPKCS1v15(rand.Reader, n.paypal, crypto.SHA256, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	h.Set("Paypal-Transmission-Id", "tr-1")
	h.Set("Paypal-Transmission-Time", at)
	h.Set("Paypal-Auth-Algo", "SHA256withRSA")
	h.Set("Paypal-Cert-Url", "https://api.paypal.com/v1/notifications/certs/CERT-1")
	h.Set("Paypal-Transmission-Sig", base64.StdEncoding.EncodeToString(value))
}

// signPlaid signs as Plaid does.
func (n *internet) signPlaid(t *testing.T, h http.Header, body []byte) {
	t.Helper()
	b64 := base64.RawURLEncoding.EncodeToString
	hash := sha256.Sum256(body)
	text := b64([]byte(`{"alg":"ES256","kid":"key-1","typ":"JWT"}`)) + "." +
		b64(fmt.Appendf(nil, `{"iat":%d,"request_body_sha256":"%s"}`, time.Now().Unix(), hex.EncodeToString(hash[:])))
	digest := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, n.plaid, digest[:])
	if err != nil {
		t.Fatal(err)
	}
	value := make([]byte, 64)
	r.FillBytes(value[:32])
	s.FillBytes(value[32:])
	h.Set("Plaid-Verification", text+"."+b64(value))
}
