package signature

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"time"

	"hookledger/schema"
	"hookledger/schema/source"
)

// plaidScheme reads a JWT (ES256) with the SHA-256 of the body, signed with a key that is
// fetched by its ID. The secret is that of the API, which fetching needs. Source:
// plaid.com/docs/api/webhooks/webhook-verification, 2026-11.
type plaidScheme struct {
	sig  source.Signature
	keys *cache[*jwk]
	t    *Trust
}

const maxTokenBytes = 4 << 10

func (s *plaidScheme) headers() []string { return []string{s.sig.Header} }

// plaidLock holds the API secret. It believes nothing by itself.
type plaidLock struct{ secret string }

func (*plaidLock) scheme() string      { return "plaid-es256" }
func (*plaidLock) matches(*claim) bool { return false }

func (s *plaidScheme) lock(secret []byte) (lock, error) {
	if len(secret) == 0 {
		return nil, errEmptySecret
	}
	return &plaidLock{string(secret)}, nil
}

func (s *plaidScheme) read(r Request) ([]claim, error) {
	token, err := one(r.Header, s.sig.Header)
	if err != nil {
		return nil, err
	}
	malformed := reject(Malformed, "header %s is not a JWT", s.sig.Header)
	parts := strings.Split(token, ".")
	if len(token) > maxTokenBytes || len(parts) != 3 {
		return nil, malformed
	}
	head, err1 := jwtPart(parts[0])
	claims, err2 := jwtPart(parts[1])
	value, err3 := strictBase64(base64.RawURLEncoding, parts[2])
	if errors.Join(err1, err2, err3) != nil {
		return nil, malformed
	}
	// The algorithm is the scheme's, never the sender's choice.
	if text(head.Get("alg")) != "ES256" || head.Get("crit") != nil {
		return nil, reject(UnknownVersion, "the JWT is not signed with ES256")
	}
	kid := text(head.Get("kid"))
	if !isKeyID(kid) {
		return nil, reject(UnknownKey, "the JWT names no key, or none that could be one")
	}
	if len(value) != 64 {
		return nil, reject(Malformed, "the signature of the JWT has %d bytes, not 64", len(value))
	}
	c := claim{keyName: kid, signatures: []signature{{value: value}}, text: [][]byte{[]byte(parts[0]), []byte("."), []byte(parts[1])}}
	iat := ""
	if v := claims.Get("iat"); v != nil {
		if number, ok := v.Number(); ok {
			iat = number
		}
	}
	if c.signedAt, err = readTime("iat of the JWT", iat, source.FormatUnix); err != nil {
		return nil, err
	}
	// The hash is public: it proves nothing until the signature of the JWT holds.
	sum := sha256.Sum256(r.Body)
	if subtle.ConstantTimeCompare([]byte(text(claims.Get("request_body_sha256"))), []byte(hex.EncodeToString(sum[:]))) != 1 {
		return nil, reject(NoMatch, "the JWT is for another body; this one has %d bytes", len(r.Body))
	}
	return []claim{c}, nil
}

func jwtPart(part string) (*schema.Value, error) {
	raw, err := strictBase64(base64.RawURLEncoding, part)
	if err != nil {
		return nil, err
	}
	v, err := schema.ParseJSON(raw, schema.Limits{MaxDepth: 4, MaxTokens: 100})
	if err == nil && v.Kind() != schema.KindObject {
		err = errors.New("not an object")
	}
	return v, err
}

// text returns a string's text, empty for what is none.
func text(v *schema.Value) string {
	if v == nil {
		return ""
	}
	s, _ := v.Text()
	return s
}

// isKeyID keeps what is sent to the provider, and becomes a label, to what IDs look like.
func isKeyID(s string) bool {
	return s != "" && len(s) <= 64 && strings.IndexFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	}) < 0
}

// jwk is a fetched key. expired is zero while the provider uses it.
type jwk struct {
	key     *key
	expired time.Time
}

func (s *plaidScheme) trust(t *Trust) { s.t = t }

func (s *plaidScheme) fetch(c *claim, configured []*key, at time.Time) (*key, error) {
	k, err := s.store(configured).get(c.keyName)
	if err != nil {
		return nil, err
	}
	if !k.expired.IsZero() && !at.Before(k.expired) {
		return nil, reject(UnknownKey, "the provider took the key %s out of use at %s", c.keyName, k.expired.UTC().Format(time.RFC3339))
	}
	return k.key, nil
}

// store returns the cache of keys; what it fetches with are the secrets of the moment.
func (s *plaidScheme) store(configured []*key) *cache[*jwk] {
	s.t.mu.Lock()
	defer s.t.mu.Unlock()
	s.t.secrets = configured
	if s.keys == nil {
		s.keys = newCache(s.t, s.download)
	}
	return s.keys
}

func (s *plaidScheme) download(kid string) (*jwk, error) {
	if s.t.jwks != nil {
		for _, v := range s.t.jwks {
			if text(v.Get("kid")) == kid {
				return readJWK(&v)
			}
		}
		return nil, errNoKey
	}
	s.t.mu.Lock()
	secrets := s.t.secrets
	s.t.mu.Unlock()
	now := s.t.now()
	err := errNoKey
	for _, k := range secrets {
		l, ok := k.lock.(*plaidLock)
		if !ok || !k.validAt(now) {
			continue
		}
		var found *jwk
		if found, err = s.ask(kid, l.secret); err == nil {
			return found, nil
		}
	}
	return nil, err
}

func (s *plaidScheme) ask(kid, secret string) (*jwk, error) {
	question, err := json.Marshal(map[string]string{"client_id": s.sig.ClientID, "secret": secret, "key_id": kid})
	if err != nil {
		return nil, fmt.Errorf("ask for key: %w", err)
	}
	answer, err := s.t.get(http.MethodPost, "https://"+s.sig.KeyHosts[0]+"/webhook_verification_key/get", question)
	if err != nil {
		return nil, err
	}
	v, err := schema.ParseJSON(answer, schema.Limits{})
	if err != nil || v.Get("key") == nil {
		return nil, fmt.Errorf("%w: the answer holds no key", ErrUnavailable)
	}
	if text(v.Get("key").Get("kid")) != kid {
		return nil, errNoKey
	}
	return readJWK(v.Get("key"))
}

// readJWK reads a key of P-256 (RFC 7517).
func readJWK(v *schema.Value) (*jwk, error) {
	if text(v.Get("kty")) != "EC" || text(v.Get("crv")) != "P-256" {
		return nil, errNoKey
	}
	if alg := text(v.Get("alg")); alg != "" && alg != "ES256" {
		return nil, errNoKey
	}
	x, errX := strictBase64(base64.RawURLEncoding, text(v.Get("x")))
	y, errY := strictBase64(base64.RawURLEncoding, text(v.Get("y")))
	if errX != nil || errY != nil || len(x) != 32 || len(y) != 32 {
		return nil, errNoKey
	}
	public, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), append(append([]byte{4}, x...), y...))
	if err != nil {
		return nil, errNoKey
	}
	k := &jwk{key: &key{id: text(v.Get("kid")), uses: &uses{}, lock: &es256Lock{public}}}
	if expired := v.Get("expired_at"); expired != nil && expired.Kind() != schema.KindNull {
		number, _ := expired.Number()
		at, err := readTime("expired_at", number, source.FormatUnix)
		if err != nil {
			return nil, errNoKey
		}
		k.expired = at
	}
	return k, nil
}

// es256Lock checks ECDSA signatures (P-256, SHA-256) of 64 bytes.
type es256Lock struct{ key *ecdsa.PublicKey }

func (*es256Lock) scheme() string { return "plaid-es256" }

func (l *es256Lock) matches(c *claim) bool {
	h := sha256.New()
	for _, piece := range c.text {
		h.Write(piece)
	}
	value := c.signatures[0].value
	return ecdsa.Verify(l.key, h.Sum(nil), new(big.Int).SetBytes(value[:32]), new(big.Int).SetBytes(value[32:]))
}
