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
	parts   []source.TemplatePart
	names   []string
}

func newHMACScheme(sig source.Signature) (*hmacScheme, error) {
	s := &hmacScheme{sig: sig, name: sig.Algorithm + "-" + sig.Encoding, names: []string{sig.Header}}
	switch sig.Algorithm {
	case "hmac-sha256":
		s.newHash = sha256.New
	case "hmac-sha512":
		s.newHash = sha512.New
	case "hmac-sha1":
		s.newHash = sha1.New
	default:
		return nil, fmt.Errorf("signature algorithm %q is not known", sig.Algorithm)
	}
	var err error
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
	return newHMACLock(s.name, "", s.newHash, secret)
}

func (s *hmacScheme) read(r Request) (*claim, error) {
	text, err := one(r.Header, s.sig.Header)
	if err != nil {
		return nil, err
	}
	digits, ok := strings.CutPrefix(text, s.sig.Prefix)
	if !ok {
		return nil, reject(Malformed, "header %s does not begin with the configured prefix", s.sig.Header)
	}
	value, err := decode(digits, s.sig.Encoding, s.newHash().Size())
	if err != nil {
		return nil, reject(Malformed, "header %s: %v", s.sig.Header, err)
	}
	c := &claim{signatures: []signature{{value: value}}}
	var ts string
	if s.sig.TimestampHeader != "" {
		if ts, err = one(r.Header, s.sig.TimestampHeader); err != nil {
			return nil, err
		}
		if c.signedAt, err = readTime("header "+s.sig.TimestampHeader, ts, s.sig.TimestampFormat); err != nil {
			return nil, err
		}
	}
	c.text, err = s.text(r.Header, ts, r.Body)
	return c, err
}

func (s *hmacScheme) text(h http.Header, ts string, body []byte) ([][]byte, error) {
	text := make([][]byte, 0, len(s.parts))
	for _, part := range s.parts {
		switch part.Name {
		case "":
			text = append(text, []byte(part.Text))
		case "body":
			text = append(text, body)
		case "ts":
			text = append(text, []byte(ts))
		case "url":
			text = append(text, []byte(s.sig.URL))
		case "header":
			value, err := one(h, part.Text)
			if err != nil {
				return nil, err
			}
			text = append(text, []byte(value))
		}
	}
	return text, nil
}

func (s *hmacScheme) sign(key *hmacLock, m Message) (http.Header, error) {
	h := http.Header{}
	ts := ""
	if s.sig.TimestampHeader != "" {
		ts = writeTime(m.At, s.sig.TimestampFormat)
		h.Set(s.sig.TimestampHeader, ts)
	}
	text, err := s.text(m.Header, ts, m.Body)
	if err != nil {
		return nil, err
	}
	h.Set(s.sig.Header, s.sig.Prefix+encode(key.mac(nil, text), s.sig.Encoding))
	return h, nil
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
