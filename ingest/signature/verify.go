package signature

import (
	"net/http"
	"net/netip"
	"strings"
	"time"

	"hookledger/schema"
	"hookledger/schema/source"
)

// Request is what a signature is checked against.
type Request struct {
	// Method is GET or, also if empty, POST. Query is the query of the URL as it was sent.
	Method string
	Query  string
	Header http.Header
	// Body is the whole raw body.
	Body []byte
	// Remote is the address of the sender, for schemes that know nothing else.
	Remote netip.Addr
	// At is when the body had been read: the time that times of signing are compared with.
	At time.Time
}

// Verified is a delivery whose signature holds. Only Verify makes one.
type Verified struct {
	body   []byte
	scheme string
	keyID  string
	covers bool
	reply  string

	request Request
	by      scheme
}

// Body is the raw body that was verified.
func (v Verified) Body() []byte { return v.body }

// Scheme names the scheme and version that held, such as stripe-v1.
func (v Verified) Scheme() string { return v.scheme }

// KeyID is the ID of the secret that matched.
func (v Verified) KeyID() string { return v.keyID }

// Headers are the headers with which the body can be verified again at Request.At.
// Names are lower case.
func (v Verified) Headers() []schema.Header {
	if v.by == nil {
		return nil
	}
	return kept(v.by, v.request)
}

// BodyAuthenticated tells whether the signature covers the body.
func (v Verified) BodyAuthenticated() bool { return v.covers }

// Reply is the answer to a challenge, by which a provider checks that the address is
// ours. Such a delivery holds no event. Empty: it is none.
func (v Verified) Reply() string { return v.reply }

// Verifier checks deliveries of one source. It is safe for concurrent use.
type Verifier struct {
	sig    source.Signature
	scheme scheme
	keys   *Keyring
}

// New returns a verifier with the secrets of keys, which was made for the same
// signature. Options say whom to trust where keys are fetched.
func New(sig source.Signature, keys *Keyring, options ...Option) (*Verifier, error) {
	s, err := newScheme(sig)
	if err != nil {
		return nil, err
	}
	if remote, ok := s.(fetching); ok {
		t := newTrust(sig)
		for _, option := range options {
			if err := option(t); err != nil {
				return nil, err
			}
		}
		remote.trust(t)
	}
	return &Verifier{sig: sig, scheme: s, keys: keys}, nil
}

// Verify checks r: every signature it carries against every secret valid at r.At. Of a
// delivery whose items are signed one by one, each must hold. The time of signing is
// looked at last, so that Stale and Future say that the secret is right and a clock or a
// queue is not. It fails with a *Rejection, or with an error that wraps ErrUnavailable if
// a key cannot be fetched: then nothing is known, and the delivery shall come again.
func (v *Verifier) Verify(r Request) (Verified, error) {
	if c, ok := v.scheme.(challenging); ok && r.Method == http.MethodGet {
		return v.answer(c, r)
	}
	first, signedAt, err := v.matching(r)
	if err != nil {
		return Verified{}, err
	}
	if err := v.checkTime(signedAt, r.At); err != nil {
		return Verified{}, err
	}
	first.uses.count(r.At)
	return Verified{
		body: r.Body, scheme: first.lock.scheme(), keyID: first.id,
		covers: v.sig.BodyAuthenticated, request: r, by: v.scheme,
	}, nil
}

// matching returns the key that made r's signatures, or the first of those that did, and
// the time of signing.
func (v *Verifier) matching(r Request) (*key, time.Time, error) {
	claims, err := v.scheme.read(r)
	if err != nil {
		return nil, time.Time{}, err
	}
	keys, err := v.candidates(claims, r)
	if err != nil {
		return nil, time.Time{}, err
	}
	var first *key
	for i := range claims {
		k, err := v.match(&claims[i], keys, r)
		if err != nil {
			return nil, time.Time{}, err
		}
		if first == nil {
			first = k
		}
	}
	if first == nil {
		return nil, time.Time{}, reject(Malformed, "there is nothing that could be signed")
	}
	return first, claims[0].signedAt, nil
}

// candidates are the keys that may match: the configured ones, or the one that the
// delivery names and that is fetched.
func (v *Verifier) candidates(claims []claim, r Request) ([]*key, error) {
	configured := v.keys.current()
	remote, ok := v.scheme.(fetching)
	if !ok || len(claims) == 0 {
		return configured, nil
	}
	k, err := remote.fetch(&claims[0], configured, r.At)
	if err != nil {
		return nil, err
	}
	return []*key{k}, nil
}

func (v *Verifier) match(c *claim, keys []*key, r Request) (*key, error) {
	valid := 0
	for _, k := range keys {
		if !k.validAt(r.At) {
			continue
		}
		valid++
		if k.lock.matches(c) {
			return k, nil
		}
	}
	if valid == 0 {
		return nil, reject(NoSecret, "none of %d keys is valid at this time: see not_before and not_after", len(keys))
	}
	return nil, reject(NoMatch, "%d signatures, %d valid keys, a body of %d bytes", len(c.signatures), valid, len(r.Body))
}

// answer replies to a challenge with the first secret that is valid.
func (v *Verifier) answer(c challenging, r Request) (Verified, error) {
	text, err := c.challenge(r)
	if err != nil {
		return Verified{}, err
	}
	for _, k := range v.keys.current() {
		if k.validAt(r.At) {
			return Verified{scheme: k.lock.scheme(), keyID: k.id, reply: c.reply(k.lock, text)}, nil
		}
	}
	return Verified{}, reject(NoSecret, "no secret is valid at this time: see not_before and not_after")
}

func (v *Verifier) checkTime(signedAt, at time.Time) error {
	if signedAt.IsZero() {
		return nil
	}
	// Times are compared, not their difference: beyond 292 years that is the least Duration,
	// and has no opposite. A time in milliseconds, read as seconds, is so far away.
	switch {
	case signedAt.Before(at.Add(-v.sig.Tolerance)):
		return reject(Stale, "signed %s ago, the tolerance is %s", at.Sub(signedAt).Round(time.Second), v.sig.Tolerance)
	case signedAt.After(at.Add(v.sig.Tolerance)):
		return reject(Future, "signed %s ahead of this clock, the tolerance is %s", signedAt.Sub(at).Round(time.Second), v.sig.Tolerance)
	}
	return nil
}

// Names of headers of the record under which what is not a header of the delivery is
// kept, because it is needed to verify again.
const (
	keptQuery  = "hl_query"
	keptRemote = "hl_remote"
)

// kept returns what is needed to verify again. A query or an address that no header of a
// record could hold was refused before.
func kept(s scheme, r Request) []schema.Header {
	names := s.headers()
	out := make([]schema.Header, 0, len(names)+1)
	for _, name := range names {
		for _, value := range r.Header[name] {
			out = append(out, schema.Header{Key: strings.ToLower(name), Value: []byte(trimOWS(value))})
		}
	}
	if more, ok := s.(keeping); ok {
		out = append(out, more.keep(r)...)
	}
	return out
}
