package signature

import (
	"crypto/sha1" //nolint:gosec // HMAC-SHA1 is what some providers sign with; it must be asked for by name.
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"net/http"
	"strings"

	"hookledger/schema/source"
)

// hmacScheme is an HMAC in one header, over a template.
type hmacScheme struct {
	sig     source.Signature
	name    string
	newHash func() hash.Hash
	size    int
	parts   []source.TemplatePart
	names   []string
}

// hashOf returns the hash behind an algorithm such as hmac-sha256.
func hashOf(algorithm string) (func() hash.Hash, error) {
	switch algorithm {
	case "hmac-sha256":
		return sha256.New, nil
	case "hmac-sha512":
		return sha512.New, nil
	case "hmac-sha1":
		return sha1.New, nil
	}
	return nil, fmt.Errorf("signature algorithm %q is not known", algorithm)
}

func newHMACScheme(sig source.Signature) (*hmacScheme, error) {
	s := &hmacScheme{sig: sig, name: sig.Algorithm + "-" + sig.Encoding, names: []string{sig.Header}}
	var err error
	if s.newHash, err = hashOf(sig.Algorithm); err != nil {
		return nil, err
	}
	s.size = s.newHash().Size()
	if s.parts, err = source.SplitTemplate(sig.Template); err != nil {
		return nil, fmt.Errorf("signature template %q: it %w", sig.Template, err)
	}
	if sig.TimestampHeader != "" {
		s.names = append(s.names, sig.TimestampHeader)
	}
	for _, part := range s.parts {
		if part.Name == "header" {
			s.names = append(s.names, part.Text)
		}
	}
	return s, nil
}

func (s *hmacScheme) headers() []string { return s.names }

func (s *hmacScheme) lock(secret []byte) (lock, error) {
	key, err := keyBytes(secret, s.sig.KeyEncoding)
	if err != nil {
		return nil, err
	}
	return newHMACLock(s.name, "", s.newHash, key)
}

// keyBytes decodes a secret, strictly: a decoder that skips what it cannot read would
// make a shorter key, or an empty one, of a secret that was cut when it was copied.
func keyBytes(secret []byte, encoding string) ([]byte, error) {
	switch encoding {
	case "hex":
		key, err := hex.DecodeString(string(secret))
		if err != nil {
			return nil, errors.New("the secret is not an even number of hexadecimal digits; copy it again, whole")
		}
		return key, nil
	case "base64":
		key, err := strictBase64(base64.StdEncoding, string(secret))
		if err != nil {
			return nil, errors.New("the secret is not base64; copy it again, whole")
		}
		return key, nil
	}
	return secret, nil
}

func (s *hmacScheme) read(r Request) ([]claim, error) {
	c := claim{}
	ts, err := s.signatures(r.Header, &c)
	if err != nil {
		return nil, err
	}
	if s.sig.TimestampHeader != "" {
		if ts, err = one(r.Header, s.sig.TimestampHeader); err != nil {
			return nil, err
		}
		if c.signedAt, err = readTime("header "+s.sig.TimestampHeader, ts, s.sig.TimestampFormat); err != nil {
			return nil, err
		}
	}
	if c.text, err = s.text(r.Header, ts, r.Body); err != nil {
		return nil, err
	}
	return []claim{c}, nil
}

// signatures reads the header of the signature into c, and returns the time if that
// stands there too.
func (s *hmacScheme) signatures(h http.Header, c *claim) (ts string, err error) {
	lines := h[s.sig.Header]
	if !s.sig.Repeated || len(lines) < 2 {
		text, err := one(h, s.sig.Header)
		if err != nil {
			return "", err
		}
		if s.sig.Pairs != (source.PairsConfig{}) {
			return s.pairs(text, c)
		}
		return "", s.signature(text, c)
	}
	if len(lines) > maxSignatures {
		return "", reject(Malformed, "header %s is there more than %d times", s.sig.Header, maxSignatures)
	}
	// Of several, those that are none are skipped: each stands for itself.
	var last error
	for _, line := range lines {
		text, err := printable(line, s.sig.Header)
		if err == nil {
			err = s.signature(text, c)
		}
		if err != nil {
			last = err
		}
	}
	if len(c.signatures) == 0 {
		return "", last
	}
	return "", nil
}

func (s *hmacScheme) signature(text string, c *claim) error {
	digits, ok := strings.CutPrefix(text, s.sig.Prefix)
	if !ok && !s.sig.PrefixOptional {
		return reject(Malformed, "header %s does not begin with the configured prefix", s.sig.Header)
	}
	value, err := decode(digits, s.sig.Encoding, s.size)
	if err != nil {
		return reject(Malformed, "header %s: %v", s.sig.Header, err)
	}
	c.signatures = append(c.signatures, signature{value: value})
	return nil
}

func (s *hmacScheme) pairs(header string, c *claim) (ts string, err error) {
	p, err := readPairs(header, s.sig.Header, s.sig.Pairs, s.sig.Encoding, s.size)
	if err != nil {
		return "", err
	}
	for _, value := range p.values {
		c.signatures = append(c.signatures, signature{value: value})
	}
	if s.sig.Pairs.Time == "" {
		return "", nil
	}
	c.signedAt, err = readTime(s.sig.Pairs.Time+" of header "+s.sig.Header, p.ts, s.sig.TimestampFormat)
	return p.ts, err
}

// text returns the signed text: what stands before the body, the body, what stands behind.
func (s *hmacScheme) text(h http.Header, ts string, body []byte) ([][]byte, error) {
	if len(s.parts) == 1 && s.parts[0].Name == "body" {
		return [][]byte{body}, nil
	}
	text := make([][]byte, 0, 3)
	var piece []byte
	for _, part := range s.parts {
		switch part.Name {
		case "":
			piece = append(piece, part.Text...)
		case "body":
			text, piece = append(text, piece, body), nil
		case "ts":
			piece = append(piece, ts...)
		case "url":
			piece = append(piece, s.sig.URL...)
		case "header":
			value, err := one(h, part.Text)
			if err != nil {
				return nil, err
			}
			piece = append(piece, value...)
		}
	}
	return append(text, piece), nil
}

func (s *hmacScheme) sign(l lock, m *Message) error {
	key, err := hmacKey(l)
	if err != nil {
		return err
	}
	ts := writeTime(m.At, s.sig.TimestampFormat)
	if s.sig.TimestampHeader != "" {
		m.Header.Set(s.sig.TimestampHeader, ts)
	}
	text, err := s.text(m.Header, ts, m.Body)
	if err != nil {
		return err
	}
	value := s.sig.Prefix + encode(key.mac(text), s.sig.Encoding)
	if p := s.sig.Pairs; p != (source.PairsConfig{}) {
		value = p.Signature + "=" + value
		if p.Time != "" {
			value = p.Time + "=" + ts + p.Separator + value
		}
	}
	m.Header.Set(s.sig.Header, value)
	return nil
}

// decode reads a signature of size bytes, strictly: hexadecimal in either case, base64
// with its padding, base64url with or without.
func decode(text, encoding string, size int) ([]byte, error) {
	var value []byte
	var err error
	switch encoding {
	case "hex":
		value, err = hex.DecodeString(text)
	case "base64":
		value, err = strictBase64(base64.StdEncoding, text)
	case "base64url":
		value, err = strictBase64(base64.RawURLEncoding, strings.TrimRight(text, "="))
	default:
		err = errors.New("unknown")
	}
	if err != nil {
		return nil, fmt.Errorf("not in %s", encoding)
	}
	if len(value) != size {
		return nil, fmt.Errorf("of %d bytes, not %d", len(value), size)
	}
	return value, nil
}

// strictBase64 refuses line breaks, which the package encoding/base64 skips, and bits
// that say nothing.
func strictBase64(enc *base64.Encoding, text string) ([]byte, error) {
	if strings.ContainsAny(text, "\r\n") {
		return nil, errors.New("line break in base64")
	}
	return enc.Strict().DecodeString(text)
}

func encode(value []byte, encoding string) string {
	switch encoding {
	case "base64":
		return base64.StdEncoding.EncodeToString(value)
	case "base64url":
		return base64.URLEncoding.EncodeToString(value)
	}
	return hex.EncodeToString(value)
}
