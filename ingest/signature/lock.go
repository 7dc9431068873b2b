package signature

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rsa"
	"crypto/sha512"
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
	l.states.New = func() any { return &macState{hash: hmac.New(l.newHash, l.key)} }
	return l, nil
}

// macState is what one MAC is computed with. Its array is part of it because what is
// given to an interface's method is allocated.
type macState struct {
	hash hash.Hash
	sum  [sha512.Size]byte
}

func (s *macState) mac(text [][]byte) []byte {
	s.hash.Reset()
	for _, piece := range text {
		s.hash.Write(piece)
	}
	return s.hash.Sum(s.sum[:0])
}

func (l *hmacLock) scheme() string { return l.name }

// matches compares decoded bytes in constant time. It stops at the first match, which
// only a holder of the secret can produce.
func (l *hmacLock) matches(c *claim) bool {
	state := l.states.Get().(*macState)
	defer l.states.Put(state)
	// fresh says that sum is of the claim's text, which mostly all signatures share.
	var sum []byte
	fresh := false
	for i := range c.signatures {
		s := &c.signatures[i]
		if s.version != l.version {
			continue
		}
		switch {
		case s.text != nil:
			sum, fresh = state.mac(s.text), false
		case !fresh:
			sum, fresh = state.mac(c.text), true
		}
		if hmac.Equal(s.value, sum) {
			return true
		}
	}
	return false
}

func (l *hmacLock) mac(text [][]byte) []byte {
	state := l.states.Get().(*macState)
	defer l.states.Put(state)
	return bytes.Clone(state.mac(text))
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
