package source

import (
	"slices"
	"strings"

	"hookledger/schema"
)

// Words of Config.Trust.
const (
	TrustSigned = "signed_fields_only"
	TrustBody   = "body"
)

// newTrust returns whether money may be taken from signed fields alone.
func newTrust(trust string, sig *Signature, p *Problems) (signedOnly bool) {
	if trust == "" {
		return !sig.BodyAuthenticated
	}
	p.OneOf("trust", trust, TrustSigned, TrustBody)
	if sig.BodyAuthenticated {
		p.Add("trust", "has no meaning here: the signature covers the whole body; remove the key")
	}
	return trust == TrustSigned
}

// Unsigned returns what of a rule of the provider decides about money and is not signed: a
// source that does not trust the body puts its events into quarantine. Rules that are unclear
// do so anyway, and have none.
func (d *Definition) Unsigned(c PostingConfig) []string {
	if d.Signature.BodyAuthenticated || c.Unclear != "" {
		return nil
	}
	s := &Source{def: d, signature: d.Signature, signedOnly: true, key: "x"}
	s.event.typ = locator{constant: "x"}
	r := newPosting("", s, c, nil, &Problems{})
	return r.unsigned
}

// BodyAuthenticated tells whether the source's scheme covers the whole body.
func (s *Source) BodyAuthenticated() bool { return s.signature.BodyAuthenticated }

// SignedOnly tells whether money is taken from signed fields alone, and events whose
// money stands elsewhere go to quarantine.
func (s *Source) SignedOnly() bool { return s.signedOnly }

// believes tells whether money may be taken from path.
func (s *Source) believes(path schema.Path) bool {
	if !s.signedOnly || path.IsZero() {
		return true
	}
	steps := path.Steps()
	for _, pattern := range s.signature.Covers {
		if covers(strings.Split(pattern, "."), steps) {
			return true
		}
	}
	return false
}

func covers(pattern, steps []string) bool {
	if len(pattern) != len(steps) {
		return false
	}
	for i, want := range pattern {
		prefix, rest := strings.CutSuffix(want, "*")
		if rest && strings.HasPrefix(steps[i], prefix) || want == steps[i] {
			continue
		}
		return false
	}
	return true
}

// unsigned returns the paths of a rule that decide about money and are not signed. Which
// of several accounts counts is known only when an event is read.
func (s *Source) unsigned(r *postingRule) []string {
	paths := []schema.Path{r.less, r.currency.path, r.direction.path, r.movementIf}
	paths = slices.Concat(paths, r.amounts, r.movement)
	for _, c := range r.when {
		paths = append(paths, c.path)
	}
	var out []string
	for _, path := range paths {
		if !s.believes(path) {
			out = append(out, path.String())
		}
	}
	return out
}
