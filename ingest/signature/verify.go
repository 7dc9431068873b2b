package signature

import (
	"net/http"
	"strings"
	"time"

	"hookledger/schema"
	"hookledger/schema/source"
)

// Request is what a signature is checked against.
type Request struct {
	Header http.Header
	// Body is the whole raw body.
	Body []byte
	// At is when the body had been read: the time that times of signing are compared with.
	At time.Time
}

// Verified is a delivery whose signature holds. Only Verify makes one.
type Verified struct {
	body   []byte
	scheme string
	keyID  string
	kept   []schema.Header
	covers bool
}

// Body is the raw body that was verified.
func (v Verified) Body() []byte { return v.body }

// Scheme names the scheme and version that held, such as stripe-v1.
func (v Verified) Scheme() string { return v.scheme }

// KeyID is the ID of the secret that matched.
func (v Verified) KeyID() string { return v.keyID }

// Headers are the headers with which the body can be verified again at Request.At.
// Names are lower case.
func (v Verified) Headers() []schema.Header { return v.kept }

// BodyAuthenticated tells whether the signature covers the body.
func (v Verified) BodyAuthenticated() bool { return v.covers }

// Verifier checks deliveries of one source. It is safe for concurrent use.
type Verifier struct {
	sig    source.Signature
	scheme scheme
	keys   *Keyring
}

// New returns a verifier with the secrets of keys, which was made for the same
// signature.
func New(sig source.Signature, keys *Keyring) (*Verifier, error) {
	s, err := newScheme(sig)
	if err != nil {
		return nil, err
	}
	return &Verifier{sig: sig, scheme: s, keys: keys}, nil
}

// Verify checks r: every signature it carries against every secret valid at r.At.
// The time of signing is looked at last, so that Stale and Future say that the
// secret is right and a clock or a queue is not. It fails with a *Rejection.
func (v *Verifier) Verify(r Request) (Verified, error) {
	c, err := v.scheme.read(r)
	if err != nil {
		return Verified{}, err
	}
	valid, tried := 0, v.keys.current()
	for _, k := range tried {
		if !k.validAt(r.At) {
			continue
		}
		valid++
		if !k.lock.matches(c) {
			continue
		}
		if err := v.checkTime(c, r.At); err != nil {
			return Verified{}, err
		}
		k.uses.count(r.At)
		return Verified{
			body: r.Body, scheme: k.lock.scheme(), keyID: k.id,
			kept: kept(r.Header, v.scheme.headers()), covers: v.sig.BodyAuthenticated,
		}, nil
	}
	if valid == 0 {
		return Verified{}, reject(NoSecret, "none of %d secrets is valid at this time: see not_before and not_after", len(tried))
	}
	return Verified{}, reject(NoMatch, "%d signatures, %d valid secrets, a body of %d bytes", len(c.signatures), valid, len(r.Body))
}

func (v *Verifier) checkTime(c *claim, at time.Time) error {
	if c.signedAt.IsZero() {
		return nil
	}
	switch age := at.Sub(c.signedAt); {
	case age > v.sig.Tolerance:
		return reject(Stale, "signed %s ago, the tolerance is %s", age.Round(time.Second), v.sig.Tolerance)
	case -age > v.sig.Tolerance:
		return reject(Future, "signed %s ahead of this clock, the tolerance is %s", (-age).Round(time.Second), v.sig.Tolerance)
	}
	return nil
}

func kept(h http.Header, names []string) []schema.Header {
	out := make([]schema.Header, 0, len(names))
	for _, name := range names {
		out = append(out, schema.Header{Key: strings.ToLower(name), Value: []byte(trimOWS(h[name][0]))})
	}
	return out
}
