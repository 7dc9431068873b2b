package books

import (
	"bytes"
	"errors"
	"net/http"
	"strings"

	"github.com/rs/zerolog"

	"hookledger/ingest/signature"
	"hookledger/internal/config"
	"hookledger/internal/verify"
	"hookledger/schema"
	"hookledger/schema/provider"
	"hookledger/schema/source"
)

// todaysMeaning is the mapping of the configuration, or none where it has no sources.
func todaysMeaning(cfg *config.Loaded) func(*schema.Event) (schema.Meaning, error) {
	set, err := provider.NewSet(cfg.Sources)
	if err != nil || len(cfg.Sources) == 0 {
		return nil
	}
	return set.Map
}

// Why a signature is not checked again. Records are counted by these words.
const (
	whyUnknown = "their source is not configured here"
	whySecrets = "the secrets of their source cannot be read here"
	whyStatic  = "their scheme is a static token or an address, and a credential is not stored"
	whyFetched = "the provider's key would have to be fetched"
	whyPart    = "they are items of a batch, and the whole was signed"
	whyExpired = "no secret of today was valid when they were received"
)

// signatures verifies stored events again, with the receiver's own code and the secrets
// of today, as of when they were received.
type signatures struct {
	sources map[string]recheck
}

// recheck is one source; why says that nothing can be checked.
type recheck struct {
	source   *source.Source
	verifier *signature.Verifier
	why      string
}

func newSignatures(cfg *config.Loaded) *signatures {
	s := &signatures{sources: make(map[string]recheck)}
	for _, c := range cfg.Sources {
		src, err := provider.New(c)
		if err != nil {
			continue // whoever reads the configuration says so
		}
		s.sources[src.Key()] = newRecheck(src)
	}
	return s
}

func newRecheck(src *source.Source) recheck {
	switch src.Signature().Scheme {
	case source.SchemeToken, source.SchemeNetworks, source.SchemeNone:
		return recheck{why: whyStatic}
	case source.SchemePayPal, source.SchemePlaid:
		return recheck{why: whyFetched}
	}
	// Not logged: the receivers say what is odd about a secret.
	ring, err := signature.NewKeyring(src, zerolog.Nop())
	if err != nil {
		return recheck{why: whySecrets}
	}
	verifier, err := signature.New(src.Signature(), ring)
	if err != nil {
		return recheck{why: whySecrets}
	}
	return recheck{source: src, verifier: verifier}
}

// check is verify.Options.CheckSignature.
func (s *signatures) check(e *schema.Event) error {
	r, ok := s.sources[e.Source]
	if !ok {
		return &verify.UncheckedError{Why: whyUnknown}
	}
	if r.why != "" {
		return &verify.UncheckedError{Why: r.why}
	}
	request := stored(e)
	_, err := r.verifier.Verify(request)
	if err != nil && r.source.Allows(http.MethodGet) {
		get := request
		get.Method, get.Query, get.Body = http.MethodGet, string(e.Body), nil
		if _, again := r.verifier.Verify(get); again == nil {
			err = nil
		}
	}
	var no *signature.Rejection
	switch {
	case err == nil:
		return nil
	case errors.Is(err, signature.ErrUnavailable):
		return &verify.UncheckedError{Why: whyFetched}
	case errors.As(err, &no) && (no.Reason == signature.Stale || no.Reason == signature.Future):
		return nil // a secret made it; the tolerance of then is not that of today
	case errors.As(err, &no) && no.Reason == signature.NoSecret:
		return &verify.UncheckedError{Why: whyExpired}
	case r.part(e, request):
		return &verify.UncheckedError{Why: whyPart}
	}
	return err
}

// part tells whether the event is less than what was signed.
func (r recheck) part(e *schema.Event, request signature.Request) bool {
	items, err := r.source.Identify(source.Delivery{Method: request.Method, Header: request.Header, Body: e.Body})
	return err != nil || len(items) != 1 || !bytes.Equal(items[0].Body, e.Body)
}

// keptQuery is the header of a record that keeps the query of a delivery, where a
// signature covers it: see schema/TOPIC.md.
const keptQuery = "hl_query"

// stored is the delivery of an event, as far as its record keeps it.
func stored(e *schema.Event) signature.Request {
	r := signature.Request{Method: http.MethodPost, Header: http.Header{}, Body: e.Body, At: e.ReceivedAt}
	if e.ContentType != "" {
		r.Header.Set("Content-Type", e.ContentType)
	}
	for _, h := range e.SignatureHeaders {
		switch {
		case h.Key == keptQuery:
			r.Query = string(h.Value)
		case !strings.HasPrefix(h.Key, "hl_"):
			r.Header.Add(h.Key, string(h.Value))
		}
	}
	return r
}
