package signature

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"hash/crc32"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"hookledger/schema/source"
)

// paypalScheme reads an RSA signature (SHA-256, PKCS #1 v1.5) of
// transmission ID|transmission time|webhook ID|CRC-32 of the body, made with a certificate
// that the delivery names by its address. The checksum is no hash: who can change a body
// on its way can keep its CRC, so it is TLS that protects the body. Source:
// PayPal-Python-SDK notifications.py, developer.paypal.com/api/rest/webhooks/rest, 2026-11.
type paypalScheme struct {
	sig   source.Signature
	certs *cache[*paypalCert]
	roots *x509.CertPool
}

const (
	paypalID        = "Paypal-Transmission-Id"
	paypalTime      = "Paypal-Transmission-Time"
	paypalSignature = "Paypal-Transmission-Sig"
	paypalCertURL   = "Paypal-Cert-Url"
	paypalAlgorithm = "Paypal-Auth-Algo"
	// paypalCertPath is where certificates stand on the provider's hosts.
	paypalCertPath = "/v1/notifications/"
	paypalName     = ".paypal.com"
)

func (s *paypalScheme) headers() []string {
	return []string{paypalID, paypalTime, paypalSignature, paypalCertURL, paypalAlgorithm}
}

func (s *paypalScheme) lock([]byte) (lock, error) {
	return nil, errors.New("the provider's key is a certificate that is fetched; there is no secret")
}

func (s *paypalScheme) open() (string, lock) { return "", nil }

func (s *paypalScheme) read(r Request) ([]claim, error) {
	value, err := rsaSignature(r, paypalSignature)
	if err != nil {
		return nil, err
	}
	text := make([]string, 4)
	for i, name := range []string{paypalID, paypalTime} {
		if text[i], err = one(r.Header, name); err != nil {
			return nil, err
		}
		if strings.Contains(text[i], "|") {
			return nil, reject(Malformed, "header %s holds a bar, so the signed text could be read in two ways", name)
		}
	}
	algorithm, err := one(r.Header, paypalAlgorithm)
	if err != nil {
		return nil, err
	}
	if algorithm != "SHA256withRSA" {
		return nil, reject(UnknownVersion, "header %s is not SHA256withRSA", paypalAlgorithm)
	}
	address, err := one(r.Header, paypalCertURL)
	if err != nil {
		return nil, err
	}
	if err := s.checkAddress(address); err != nil {
		return nil, err
	}
	text[2] = s.sig.WebhookID
	text[3] = strconv.FormatUint(uint64(crc32.ChecksumIEEE(r.Body)), 10)
	return []claim{{
		signatures: []signature{{value: value}},
		text:       [][]byte{[]byte(strings.Join(text, "|"))},
		keyName:    address,
	}}, nil
}

// checkAddress lets certificates come from the provider alone: nothing in the address can
// lead elsewhere.
func (s *paypalScheme) checkAddress(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" || u.User != nil || u.Opaque != "" || u.RawQuery != "" || u.Fragment != "" ||
		u.Port() != "" && u.Port() != "443" || !strings.HasPrefix(u.EscapedPath(), paypalCertPath) || !isPlainPath(u.EscapedPath()) {
		return reject(UnknownKey, "header %s is not an address under %s", paypalCertURL, paypalCertPath)
	}
	for _, host := range s.sig.KeyHosts {
		if u.Hostname() == host {
			return nil
		}
	}
	return reject(UnknownKey, "header %s names a host that is not the provider's: one of %s", paypalCertURL, strings.Join(s.sig.KeyHosts, ", "))
}

// isPlainPath refuses what two readers could resolve in two ways: escapes and dots.
func isPlainPath(path string) bool {
	return !strings.Contains(path, "..") && strings.IndexFunc(path, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("/-_.", r)
	}) < 0
}

// paypalCert is a certificate and those that lead from it to a root.
type paypalCert struct {
	leaf  *x509.Certificate
	chain *x509.CertPool
	key   *key
}

func (s *paypalScheme) trust(t *Trust) {
	s.roots = t.roots
	s.certs = newCache(t, func(address string) (*paypalCert, error) {
		if t.certificates != nil {
			return readPayPalCert(t.certificates)
		}
		text, err := t.get(http.MethodGet, address, nil)
		if err != nil {
			return nil, err
		}
		return readPayPalCert(text)
	})
}

// readPayPalCert reads a chain in PEM, the certificate that signs first.
func readPayPalCert(text []byte) (*paypalCert, error) {
	c := &paypalCert{chain: x509.NewCertPool()}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, errNoKey
		}
		if c.leaf == nil {
			c.leaf = cert
			continue
		}
		c.chain.AddCert(cert)
	}
	if c.leaf == nil {
		return nil, errNoKey
	}
	public, ok := c.leaf.PublicKey.(*rsa.PublicKey)
	if !ok || public.N.BitLen() < 2*minRSABits {
		return nil, errNoKey
	}
	sum := sha256.Sum256(c.leaf.Raw)
	c.key = &key{
		id: "cert-" + hex.EncodeToString(sum[:4]), uses: &uses{},
		lock: &rsaLock{name: "paypal-rsa-sha256", hash: crypto.SHA256, key: public},
	}
	return c, nil
}

func (s *paypalScheme) fetch(c *claim, _ []*key, at time.Time) (*key, error) {
	cert, err := s.certs.get(c.keyName)
	if err != nil {
		return nil, err
	}
	if err := s.check(cert, at); err != nil {
		return nil, reject(UnknownKey, "certificate %s: %v", cert.key.id, err)
	}
	return cert.key, nil
}

// check tells why a certificate is not to be believed at a time.
func (s *paypalScheme) check(cert *paypalCert, at time.Time) error {
	names := append([]string{cert.leaf.Subject.CommonName}, cert.leaf.DNSNames...)
	ours := false
	for _, name := range names {
		ours = ours || strings.HasSuffix(strings.ToLower(name), paypalName)
	}
	if !ours {
		return fmt.Errorf("it is not for a name under %s", paypalName[1:])
	}
	_, err := cert.leaf.Verify(x509.VerifyOptions{
		Roots: s.roots, Intermediates: cert.chain, CurrentTime: at,
		// The certificate signs messages, whatever use its issuer wrote into it.
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	})
	return err
}
