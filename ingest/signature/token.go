package signature

import (
	"crypto/sha256"
	"crypto/subtle"

	"hookledger/schema/source"
)

// tokenScheme is a header that is the secret itself. It proves that the sender knows it,
// and nothing about the body. The header is never kept.
type tokenScheme struct{ sig source.Signature }

func (s tokenScheme) headers() []string { return nil }

func (s tokenScheme) lock(secret []byte) (lock, error) {
	if len(secret) == 0 {
		return nil, errEmptySecret
	}
	return &tokenLock{sum: sha256.Sum256(secret), token: string(secret)}, nil
}

func (s tokenScheme) read(r Request) ([]claim, error) {
	token, err := one(r.Header, s.sig.Header)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(token))
	return []claim{{signatures: []signature{{value: sum[:]}}}}, nil
}

func (s tokenScheme) sign(l lock, m *Message) error { //nolint:unparam // As signing has it.
	m.Header.Set(s.sig.Header, l.(*tokenLock).token)
	return nil
}

// tokenLock compares hashes, so that not even the length of the secret can be measured.
type tokenLock struct {
	sum   [sha256.Size]byte
	token string
}

func (l *tokenLock) scheme() string { return "static-token" }

func (l *tokenLock) matches(c *claim) bool {
	return len(c.signatures) == 1 && subtle.ConstantTimeCompare(c.signatures[0].value, l.sum[:]) == 1
}
