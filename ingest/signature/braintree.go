package signature

import (
	"crypto/sha1" //nolint:gosec // What the provider signs with.
	"crypto/subtle"
	"encoding/hex"
	"strings"

	"hookledger/schema/source"
)

// braintreeScheme reads the fields bt_signature and bt_payload of a form. bt_signature is
// a list of <public key>|<MAC in hex> joined by &; the MAC is HMAC-SHA1 over bt_payload,
// keyed with the SHA-1 of the private key. A GET with bt_challenge asks whether the
// address is ours. Source: the provider's node and Python libraries, 2026-11.
type braintreeScheme struct{ sig source.Signature }

const (
	braintreeSignature = "bt_signature"
	braintreePayload   = "bt_payload"
	braintreeChallenge = "bt_challenge"
)

func (s braintreeScheme) headers() []string { return nil }

func (s braintreeScheme) lock(secret []byte) (lock, error) {
	if len(secret) == 0 {
		return nil, errEmptySecret
	}
	key := sha1.Sum(secret)
	return newHMACLock("braintree-hmac-sha1", "", sha1.New, key[:])
}

func (s braintreeScheme) read(r Request) ([]claim, error) {
	fields, err := formFields(r)
	if err != nil {
		return nil, err
	}
	list, err := field(fields, braintreeSignature)
	if err != nil {
		return nil, err
	}
	payload, err := field(fields, braintreePayload)
	if err != nil {
		return nil, err
	}
	if i := strings.IndexFunc(payload, notBase64); i >= 0 {
		return nil, reject(Malformed, "field %s is not base64 at byte %d; is + encoded as %%2B?", braintreePayload, i)
	}
	// A library of the provider takes a line feed more at the end.
	c := claim{text: [][]byte{[]byte(payload)}}
	known := 0
	for pair := range strings.SplitSeq(list, "&") {
		public, mac, ok := strings.Cut(pair, "|")
		if !ok || subtle.ConstantTimeCompare([]byte(public), []byte(s.sig.PublicKey)) != 1 {
			continue
		}
		known++
		if value, err := decode(mac, "hex", sha1.Size); err == nil {
			c.signatures = append(c.signatures,
				signature{value: value},
				signature{value: value, text: [][]byte{[]byte(payload), []byte("\n")}})
		}
	}
	switch {
	case known == 0:
		return nil, reject(UnknownKey, "field %s has no signature for the configured public key", braintreeSignature)
	case known > maxSignatures:
		return nil, reject(Malformed, "field %s has more than %d signatures", braintreeSignature, maxSignatures)
	case len(c.signatures) == 0:
		return nil, reject(Malformed, "field %s has no readable signature", braintreeSignature)
	}
	return []claim{c}, nil
}

func notBase64(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("+/=\n", r)
}

// challenge returns what is to be signed. Signing what anybody asks for is harmless: 20
// to 32 lower-case hexadecimal digits, taken for a payload, are base64 of nothing that
// begins with <.
func (s braintreeScheme) challenge(r Request) (string, error) {
	fields, err := formFields(r)
	if err != nil {
		return "", err
	}
	if len(fields) == 0 {
		return "", reject(MissingHeader, "parameter %s is missing", braintreeChallenge)
	}
	text, err := field(fields, braintreeChallenge)
	if err != nil {
		return "", err
	}
	if len(text) < 20 || len(text) > 32 || strings.Trim(text, lowerHex) != "" {
		return "", reject(Malformed, "parameter %s is not 20 to 32 lower-case hexadecimal digits", braintreeChallenge)
	}
	return text, nil
}

func (s braintreeScheme) reply(l lock, text string) string {
	return s.sig.PublicKey + "|" + hex.EncodeToString(l.(*hmacLock).mac([][]byte{[]byte(text)}))
}

func (s braintreeScheme) sign(l lock, m *Message) error {
	key, err := hmacKey(l)
	if err != nil {
		return err
	}
	fields, err := formFields(m.request())
	if err != nil {
		return err
	}
	payload, err := field(fields, braintreePayload)
	if err != nil {
		return err
	}
	addField(m, braintreeSignature, s.sig.PublicKey+"|"+hex.EncodeToString(key.mac([][]byte{[]byte(payload)})))
	return nil
}
