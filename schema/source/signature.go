package source

import (
	"net/textproto"
	"slices"
	"strings"
	"time"
)

// DefaultTolerance is how far a time of signing may lie from now unless configured.
// Source: the libraries of Stripe and of Standard Webhooks, 2026-11.
const DefaultTolerance = 300 * time.Second

// Schemes of a Signature. Package ingest/signature knows how each is computed.
const (
	SchemeHMAC             = "hmac"
	SchemeStripe           = "stripe"
	SchemeStandardWebhooks = "standardwebhooks"
)

// Signature says how a source's deliveries are signed, as plain data. Header names
// are canonical (X-Signature).
type Signature struct {
	// Scheme is one of the Scheme… constants.
	Scheme string
	// Header carries the signature. IDHeader and TimestampHeader are signed with the
	// body where the scheme has them.
	Header          string
	IDHeader        string
	TimestampHeader string
	// TimestampFormat is unix, unix_ms or rfc3339.
	TimestampFormat string
	// Tolerance is how far the time of signing may lie from now, either way, inclusively.
	Tolerance time.Duration

	// Algorithm is hmac-sha256, hmac-sha512 or hmac-sha1; Encoding is hex, base64 or
	// base64url; Prefix stands before the signature; Template is the signed text. They
	// are set for SchemeHMAC alone.
	Algorithm string
	Encoding  string
	Prefix    string
	Template  string
	URL       string

	// SecretPrefixes are the beginnings a secret of this provider has. A secret with
	// another one draws a warning. Empty: nothing is known.
	SecretPrefixes []string
	// BodyAuthenticated says that the scheme covers the body.
	BodyAuthenticated bool
}

// newSignature applies what is configured to the definition's own knobs.
func newSignature(def *Definition, c SignatureConfig, p *Problems) Signature {
	sig := def.Signature
	set := map[string]bool{
		"header": c.Header != "", "algorithm": c.Algorithm != "", "encoding": c.Encoding != "", "prefix": c.Prefix != "",
		"template": c.Template != "", "timestamp_header": c.TimestampHeader != "", "timestamp_format": c.TimestampFormat != "",
		"tolerance": c.Tolerance != 0, "url": c.URL != "", "headers": c.Headers != "",
	}
	for _, knob := range knobOrder {
		if set[knob] && !slices.Contains(def.Knobs, knob) {
			p.Add("signature."+knob, "provider %s does not take this key; it takes %s", def.Name, strings.Join(def.Knobs, ", "))
		}
	}
	switch {
	case c.Tolerance < 0 || c.Tolerance > 24*time.Hour:
		p.Add("signature.tolerance", "is %s; it lies between 1s and 24h", c.Tolerance)
	case c.Tolerance > 0:
		sig.Tolerance = c.Tolerance
	default:
		sig.Tolerance = DefaultTolerance
	}
	if def.Tune != nil {
		def.Tune(&sig, c, p)
	}
	return sig
}

var knobOrder = []string{"header", "algorithm", "encoding", "prefix", "template", "timestamp_header", "timestamp_format", "tolerance", "url", "headers"}

// headerName checks and canonicalizes the name of an HTTP header that will be kept
// in the record.
func headerName(key, name string, p *Problems) string {
	name = textproto.CanonicalMIMEHeaderKey(name)
	lower := strings.ToLower(name)
	for i := range len(name) {
		c := name[i]
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			p.Add(key, "is not the name of an HTTP header")
			return name
		}
	}
	switch {
	case lower == "content-type", lower == "traceparent", strings.HasPrefix(lower, "ce_"), strings.HasPrefix(lower, "hl_"):
		p.Add(key, "%s has a meaning of its own in the record", name)
	case lower == "cookie", lower == "proxy-authorization":
		p.Add(key, "%s is a credential and is never kept", name)
	}
	return name
}
