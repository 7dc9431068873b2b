package signature

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"hookledger/schema"
	"hookledger/schema/source"
)

const (
	// fetchTimeout leaves a provider's delivery, which waits up to ten seconds, time for
	// the rest.
	fetchTimeout = 3 * time.Second
	// freshFor is how long a fetched key is used without asking again; staleFor is how
	// long it is used when asking fails.
	freshFor = 10 * time.Minute
	staleFor = 24 * time.Hour
	// absentFor is how long a name is not asked for again after the provider said that
	// there is no such key.
	absentFor = time.Minute
	// retryAfter is how long after a failure nobody asks again: those who wait would wait
	// one after the other.
	retryAfter = 5 * time.Second
	// maxKeys bounds what is remembered. Providers use one key at a time, two when they
	// rotate.
	maxKeys = 64
	// maxKeyBytes bounds a downloaded key; a chain of certificates has some 8 KiB.
	maxKeyBytes = 64 << 10
	// Names come with deliveries that nobody has verified. At most fetchBurst are asked
	// for within fetchPeriod, so that nobody can make us trouble the provider.
	fetchBurst  = 30
	fetchPeriod = time.Minute
)

// errNoKey says that the provider has no key of a name, or one that is not to be believed.
var errNoKey = errors.New("the provider has no such key")

// Trust says whom schemes believe whose keys are fetched.
type Trust struct {
	client       *http.Client
	roots        *x509.CertPool // nil: the system's
	certificates []byte
	jwks         []schema.Value
	now          func() time.Time

	mu      sync.Mutex
	secrets []*key
	asked   []time.Time
}

// Option changes a Trust.
type Option func(*Trust) error

func newTrust(source.Signature) *Trust {
	return &Trust{now: time.Now, client: &http.Client{
		Timeout:   fetchTimeout,
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute, TLSHandshakeTimeout: fetchTimeout},
		// A redirect could lead anywhere; keys stand where they are named.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// WithRoots believes certificates that chain to roots in place of the system's.
func WithRoots(roots *x509.CertPool) Option {
	return func(t *Trust) error { t.roots = roots; return nil }
}

// WithTransport fetches keys through transport. Where they may come from stays the same.
func WithTransport(transport http.RoundTripper) Option {
	return func(t *Trust) error { t.client.Transport = transport; return nil }
}

// WithCertificates takes certificates in PEM for the provider's, whatever address a
// delivery names, and fetches none.
func WithCertificates(text []byte) Option {
	return func(t *Trust) error {
		t.certificates, t.roots = text, x509.NewCertPool()
		if !t.roots.AppendCertsFromPEM(text) {
			return errors.New("trust certificates: there is none in PEM")
		}
		return nil
	}
}

// WithJWKS takes a set of keys (RFC 7517) for the provider's, and fetches none.
func WithJWKS(text []byte) Option {
	return func(t *Trust) error {
		v, err := schema.ParseJSON(text, schema.Limits{})
		if err != nil {
			return fmt.Errorf("trust keys: %w", err)
		}
		if v.Get("keys") == nil {
			return errors.New("trust keys: it is not a set of keys ({\"keys\": […]})")
		}
		t.jwks = append([]schema.Value{}, v.Get("keys").Items()...)
		return nil
	}
}

// get downloads what stands at an address that was checked. It fails with errNoKey if the
// provider says that there is nothing, else with an error that wraps ErrUnavailable.
func (t *Trust) get(method, address string, body []byte) ([]byte, error) {
	if !t.mayAsk() {
		return nil, fmt.Errorf("%w: more than %d keys were asked for within %s", ErrUnavailable, fetchBurst, fetchPeriod)
	}
	// Not the context of a delivery: others wait for the same key.
	ctx, cancel := context.WithTimeout(context.Background(), fetchTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return nil, errNoKey
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := t.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusBadRequest, http.StatusNotFound, http.StatusGone:
		return nil, errNoKey
	default:
		return nil, fmt.Errorf("%w: the provider answered %d", ErrUnavailable, response.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxKeyBytes+1))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if len(text) > maxKeyBytes {
		return nil, fmt.Errorf("%w: the answer has more than %d bytes", ErrUnavailable, maxKeyBytes)
	}
	return text, nil
}

// mayAsk counts questions within the last fetchPeriod.
func (t *Trust) mayAsk() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	for len(t.asked) > 0 && now.Sub(t.asked[0]) > fetchPeriod {
		t.asked = t.asked[1:]
	}
	if len(t.asked) >= fetchBurst {
		return false
	}
	t.asked = append(t.asked, now)
	return true
}

// cache remembers fetched keys by name. Deliveries that wait for one key share one fetch.
type cache[T any] struct {
	now      func() time.Time
	download func(name string) (T, error)

	mu      sync.Mutex
	entries map[string]*entry[T]
}

// entry is what is known of one name. Its mutex is held while fetching.
type entry[T any] struct {
	mu      sync.Mutex
	value   T
	known   bool // value is the provider's
	absent  bool // the provider has none
	asked   time.Time
	fetched time.Time
	failed  time.Time
	failure error
}

func newCache[T any](t *Trust, download func(string) (T, error)) *cache[T] {
	return &cache[T]{now: t.now, download: download, entries: make(map[string]*entry[T])}
}

// get returns the key of a name. It fails with a *Rejection if there is none, else with
// an error that wraps ErrUnavailable.
func (c *cache[T]) get(name string) (T, error) {
	e := c.entry(name)
	e.mu.Lock()
	defer e.mu.Unlock()
	now := c.now()
	age := now.Sub(e.asked)
	var none T
	switch {
	case e.known && age < freshFor:
		return e.value, nil
	case e.absent && age < absentFor:
		return none, noSuchKey()
	case e.failure != nil && now.Sub(e.failed) < retryAfter:
		return e.last(now)
	}
	value, err := c.download(name)
	e.failure = nil
	switch {
	case err == nil:
		e.value, e.known, e.absent, e.asked, e.fetched = value, true, false, now, now
		return value, nil
	case errors.Is(err, errNoKey):
		e.value, e.known, e.absent, e.asked = none, false, true, now
		return none, noSuchKey()
	}
	e.failed, e.failure = c.now(), err
	return e.last(now)
}

// last returns what is known although asking failed.
func (e *entry[T]) last(now time.Time) (T, error) {
	if e.known && now.Sub(e.fetched) < staleFor {
		return e.value, nil
	}
	var none T
	return none, e.failure
}

func noSuchKey() error {
	return reject(UnknownKey, "the provider has no key of the name that the delivery gives, or none to be believed")
}

// entry returns the entry of a name, and makes room for it.
func (c *cache[T]) entry(name string) *entry[T] {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entries[name]; e != nil {
		return e
	}
	for other, e := range c.entries {
		if len(c.entries) < maxKeys {
			break
		}
		// What is known stays as long as there is anything else.
		if e.mu.TryLock() {
			known := e.known
			e.mu.Unlock()
			if !known {
				delete(c.entries, other)
			}
		}
	}
	for other := range c.entries {
		if len(c.entries) < maxKeys {
			break
		}
		delete(c.entries, other)
	}
	e := &entry[T]{}
	c.entries[name] = e
	return e
}
