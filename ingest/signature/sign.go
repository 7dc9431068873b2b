package signature

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"hookledger/schema/source"
)

// Message is a delivery to be signed. Header holds the headers that the signature
// covers, such as Webhook-Id: source.Source.Compose sets them.
type Message struct {
	Method string
	Query  string
	Header http.Header
	Body   []byte
	At     time.Time
}

// Sign returns m signed as sig says, the way the provider would: with more headers, or
// with another query or body where the signature stands there. It is for trying sources
// out: `send`, `dev` and tests. It fails for a secret that cannot sign, such as a public
// key, and for schemes that only the provider can sign.
func Sign(sig source.Signature, secret source.Secret, m Message) (Message, error) {
	s, err := newScheme(sig)
	if err != nil {
		return Message{}, err
	}
	signer, ok := s.(signing)
	if !ok {
		return Message{}, fmt.Errorf("sign message: scheme %s is signed by the provider alone", sig.Scheme)
	}
	if m.Header = m.Header.Clone(); m.Header == nil {
		m.Header = http.Header{}
	}
	var key lock
	if _, open := s.(keyless); !open {
		if key, err = s.lock([]byte(secret)); err != nil {
			return Message{}, fmt.Errorf("sign message: %w", err)
		}
	}
	if err := signer.sign(key, &m); err != nil {
		return Message{}, fmt.Errorf("sign message: %w", err)
	}
	return m, nil
}

var errPublicKey = errors.New("the secret is a public key; it checks signatures and makes none")

// hmacKey returns the lock of a secret that can sign.
func hmacKey(l lock) (*hmacLock, error) {
	key, ok := l.(*hmacLock)
	if !ok {
		return nil, errPublicKey
	}
	return key, nil
}

// timedMAC is a MAC and the time it covers, as text.
type timedMAC struct {
	ts  string
	sum []byte
}

// macOf signs the text of m at its time.
func macOf(l lock, text func(ts string) [][]byte, m *Message, format string) (timedMAC, error) {
	key, err := hmacKey(l)
	if err != nil {
		return timedMAC{}, err
	}
	ts := writeTime(m.At, format)
	return timedMAC{ts, key.mac(text(ts))}, nil
}
