package signature

import (
	"fmt"
	"net/http"
	"time"

	"hookledger/schema/source"
)

// Message is what Sign signs. Header holds the headers that the signature covers,
// such as Webhook-Id: source.Source.Compose sets them.
type Message struct {
	Header http.Header
	Body   []byte
	At     time.Time
}

// Sign returns the headers of a delivery signed as sig says, the way the provider
// would. It is for trying sources out: `send`, `dev` and tests. It fails for a secret
// that cannot sign, such as a public key.
func Sign(sig source.Signature, secret source.Secret, m Message) (http.Header, error) {
	s, key, err := signer(sig, secret)
	if err != nil {
		return nil, err
	}
	h, err := s.sign(key, m)
	if err != nil {
		return nil, fmt.Errorf("sign message: %w", err)
	}
	return h, nil
}

func signer(sig source.Signature, secret source.Secret) (scheme, *hmacLock, error) {
	s, err := newScheme(sig)
	if err != nil {
		return nil, nil, err
	}
	l, err := s.lock([]byte(secret))
	if err != nil {
		return nil, nil, fmt.Errorf("sign message: %w", err)
	}
	key, ok := l.(*hmacLock)
	if !ok {
		return nil, nil, fmt.Errorf("sign message: the secret is a public key; it checks signatures and makes none")
	}
	return s, key, nil
}
