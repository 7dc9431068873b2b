package signature

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strings"

	"hookledger/schema/source"
)

// standardScheme reads the three headers of Standard Webhooks. The signature is a list
// "v1,<base64> v1a,<base64> …"; the signed text is "<id>.<timestamp>.<body>". Secrets:
// whsec_ and base64 of an HMAC key (v1; the prefix may be missing), or whpk_ and base64
// of an ed25519 public key (v1a). A secret checks its own version alone.
type standardScheme struct{ sig source.Signature }

func (s standardScheme) headers() []string {
	return []string{s.sig.IDHeader, s.sig.TimestampHeader, s.sig.Header}
}

func (s standardScheme) lock(secret []byte) (lock, error) {
	text := string(secret)
	switch {
	case strings.HasPrefix(text, "whsk_"):
		return nil, errors.New("whsk_ is the sender's private key; configure the public key, whpk_…")
	case strings.HasPrefix(text, "whpk_"):
		key, err := strictBase64(base64.StdEncoding, text[len("whpk_"):])
		if err != nil || len(key) != ed25519.PublicKeySize {
			return nil, errors.New("what stands behind whpk_ is not base64 of 32 bytes")
		}
		return &ed25519Lock{name: "standard-webhooks-v1a", version: "v1a", key: key}, nil
	}
	// A decoder that skips what it cannot read would make an empty key of "!!!!".
	key, err := strictBase64(base64.StdEncoding, strings.TrimPrefix(text, "whsec_"))
	if err != nil {
		return nil, errors.New("the secret is not base64 behind whsec_")
	}
	return newHMACLock("standard-webhooks-v1", "v1", sha256.New, key)
}

func (s standardScheme) read(r Request) ([]claim, error) {
	id, err := one(r.Header, s.sig.IDHeader)
	if err != nil {
		return nil, err
	}
	ts, err := one(r.Header, s.sig.TimestampHeader)
	if err != nil {
		return nil, err
	}
	list, err := one(r.Header, s.sig.Header)
	if err != nil {
		return nil, err
	}
	c := claim{text: standardText(id, ts, r.Body)}
	if c.signedAt, err = readTime("header "+s.sig.TimestampHeader, ts, s.sig.TimestampFormat); err != nil {
		return nil, err
	}
	known := 0
	for entry := range strings.SplitSeq(list, " ") {
		version, encoded, _ := strings.Cut(entry, ",")
		var size int
		switch version {
		case "v1":
			size = sha256.Size
		case "v1a":
			size = ed25519.SignatureSize
		default:
			continue
		}
		known++
		if value, err := decode(encoded, "base64", size); err == nil {
			c.signatures = append(c.signatures, signature{version: version, value: value})
		}
	}
	switch {
	case known == 0:
		return nil, reject(UnknownVersion, "header %s has no signature of version v1 or v1a", s.sig.Header)
	case len(c.signatures) == 0:
		return nil, reject(Malformed, "header %s has no readable signature", s.sig.Header)
	case known > maxSignatures:
		return nil, reject(Malformed, "header %s has more than %d signatures", s.sig.Header, maxSignatures)
	}
	return []claim{c}, nil
}

func standardText(id, ts string, body []byte) [][]byte {
	return [][]byte{[]byte(id + "." + ts + "."), body}
}

func (s standardScheme) sign(key lock, m *Message) error {
	id := m.Header.Get(s.sig.IDHeader)
	if id == "" {
		return errors.New("message has no header " + s.sig.IDHeader)
	}
	mac, err := macOf(key, func(ts string) [][]byte { return standardText(id, ts, m.Body) }, m, s.sig.TimestampFormat)
	if err != nil {
		return err
	}
	m.Header.Set(s.sig.TimestampHeader, mac.ts)
	m.Header.Set(s.sig.Header, "v1,"+base64.StdEncoding.EncodeToString(mac.sum))
	return nil
}
