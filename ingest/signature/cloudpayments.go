package signature

import (
	"crypto/sha256"
	"encoding/base64"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"hookledger/schema/source"
)

// cloudPaymentsScheme reads Content-HMAC, an HMAC-SHA256 (base64) of the body as it was
// sent, or of the query of a GET; without it X-Content-HMAC, the same of the URL-decoded
// text. Source: the provider's CMS plugins and npm cloudpayments 6.0.1, 2026-11.
type cloudPaymentsScheme struct{ sig source.Signature }

const (
	contentHMAC  = "Content-Hmac"
	xContentHMAC = "X-Content-Hmac"
)

func (s cloudPaymentsScheme) headers() []string { return []string{contentHMAC, xContentHMAC} }

func (s cloudPaymentsScheme) lock(secret []byte) (lock, error) {
	return newHMACLock("cloudpayments-hmac-sha256", "", sha256.New, secret)
}

func (s cloudPaymentsScheme) read(r Request) ([]claim, error) {
	text := r.Body
	if r.Method == http.MethodGet {
		text = []byte(r.Query)
	}
	name := contentHMAC
	if len(r.Header[contentHMAC]) == 0 && len(r.Header[xContentHMAC]) > 0 {
		name = xContentHMAC
		if media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); media != "application/json" {
			decoded, err := unescape(text)
			if err != nil {
				return nil, err
			}
			text = decoded
		}
	}
	encoded, err := one(r.Header, name)
	if err != nil {
		return nil, err
	}
	mac, err := decode(encoded, "base64", sha256.Size)
	if err != nil {
		return nil, reject(Malformed, "header %s: %v", name, err)
	}
	return []claim{{signatures: []signature{{value: mac}}, text: [][]byte{text}}}, nil
}

// unescape decodes a form as a whole, which is what X-Content-HMAC signs. It refuses a
// form in which a value holds what separates fields: another form would decode to the
// same text.
func unescape(form []byte) ([]byte, error) {
	fields, err := decodeFields(string(form))
	if err != nil {
		return nil, err
	}
	for _, f := range fields {
		if strings.Contains(f.Name, "=") || strings.Contains(f.Name+f.Value, "&") {
			return nil, reject(Malformed, "a field holds an encoded &, so the decoded text, which %s signs, could be read in two ways", xContentHMAC)
		}
	}
	decoded, err := url.QueryUnescape(string(form))
	if err != nil {
		return nil, reject(Malformed, "the body is not encoded as it should be")
	}
	return []byte(decoded), nil
}

func (s cloudPaymentsScheme) sign(l lock, m *Message) error {
	key, err := hmacKey(l)
	if err != nil {
		return err
	}
	text := m.Body
	if m.Method == http.MethodGet {
		text = []byte(m.Query)
	}
	m.Header.Set(contentHMAC, base64.StdEncoding.EncodeToString(key.mac([][]byte{text})))
	return nil
}
