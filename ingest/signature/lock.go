package signature

import (
	"crypto"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rsa"
	"errors"
	"hash"
	"sync"
)

// lock is a secret in the form in which it checks claims.
type lock interface {
	// matches tells whether any signature of the claim was made with the secret.
	matches(*claim) bool
	// scheme names scheme and version, such as stripe-v1.
	scheme() string
}

var errEmptySecret = errors.New("the secret is empty")

// hmacLock checks MACs. States keyed with the secret are reused: computing one costs
// two blocks of the hash, a third of the whole MAC of a body of 256 bytes.
type hmacLock struct {
	name    string
	version string
	newHash func() hash.Hash
	key     []byte
	states  sync.Pool
}

func newHMACLock(name, version string, newHash func() hash.Hash, key []byte) (*hmacLock, error) {
	// Anybody can compute a MAC with an empty key.
	if len(key) == 0 {
		return nil, errEmptySecret
	}
	l := &hmacLock{name: name, version: version, newHash: newHash, key: key}
	l.states.New = func() any { return hmac.New(l.newHash, l.key) }
	return l, nil
}

func (l *hmacLock) scheme() string { return l.name }

// matches compares decoded bytes in constant time. It stops at the first match, which
// only a holder of the secret can produce.
func (l *hmacLock) matches(c *claim) bool {
	var space, own [64]byte
	var sum []byte
	for i := range c.signatures {
		s := &c.signatures[i]
		if s.version != l.version {
			continue
		}
		want := sum
		switch {
		case s.text != nil:
			want = l.mac(own[:0], s.text)
		case sum == nil:
			sum = l.mac(space[:0], c.text)
			want = sum
		}
		if hmac.Equal(s.value, want) {
			return true
		}
	}
	return false
}

func (l *hmacLock) mac(into []byte, text [][]byte) []byte {
	h := l.states.Get().(hash.Hash)
	h.Reset()
	for _, piece := range text {
		h.Write(piece)
	}
	sum := h.Sum(into)
	l.states.Put(h)
	return sum
}

// hashLock checks hashes of a text that the secret is a part of.
type hashLock struct {
	name    string
	newHash func() hash.Hash
	key     []byte
}

func newHashLock(name string, newHash func() hash.Hash, key []byte) (*hashLock, error) {
	if len(key) == 0 {
		return nil, errEmptySecret
	}
	return &hashLock{name: name, newHash: newHash, key: key}, nil
}

func (l *hashLock) scheme() string { return l.name }

func (l *hashLock) matches(c *claim) bool {
	sum := l.sum(c.text)
	for i := range c.signatures {
		if hmac.Equal(c.signatures[i].value, sum) {
			return true
		}
	}
	return false
}

func (l *hashLock) sum(text [][]byte) []byte {
	h := l.newHash()
	for _, piece := range text {
		if piece == nil {
			piece = l.key
		}
		h.Write(piece)
	}
	return h.Sum(nil)
}

// rsaLock checks RSA signatures (PKCS #1 v1.5) against a public key.
type rsaLock struct {
	name string
	hash crypto.Hash
	key  *rsa.PublicKey
}

func (l *rsaLock) scheme() string { return l.name }

func (l *rsaLock) matches(c *claim) bool {
	h := l.hash.New()
	for _, piece := range c.text {
		h.Write(piece)
	}
	sum := h.Sum(nil)
	for i := range c.signatures {
		if rsa.VerifyPKCS1v15(l.key, l.hash, sum, c.signatures[i].value) == nil {
			return true
		}
	}
	return false
}

// ed25519Lock checks signatures against a public key.
type ed25519Lock struct {
	name    string
	version string
	key     ed25519.PublicKey
}

func (l *ed25519Lock) scheme() string { return l.name }

func (l *ed25519Lock) matches(c *claim) bool {
	var message []byte
	for _, s := range c.signatures {
		if s.version != l.version || len(s.value) != ed25519.SignatureSize {
			continue
		}
		if message == nil {
			for _, piece := range c.text {
				message = append(message, piece...)
			}
		}
		if ed25519.Verify(l.key, message, s.value) {
			return true
		}
	}
	return false
}
