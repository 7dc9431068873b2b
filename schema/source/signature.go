package source

import (
	"fmt"
	"math"
	"net/netip"
	"net/textproto"
	"slices"
	"strings"
	"time"
)

// DefaultTolerance is how far a time of signing may lie from now unless configured.
// Source: the libraries of Stripe and of Standard Webhooks, 2026-11.
const DefaultTolerance = 300 * time.Second

// NoTolerance is the Tolerance of a provider whose times of signing are not judged unless
// configured.
const NoTolerance = time.Duration(math.MaxInt64)

// Schemes of a Signature. Package ingest/signature knows how each is computed.
const (
	SchemeHMAC             = "hmac"
	SchemeStripe           = "stripe"
	SchemeStandardWebhooks = "standardwebhooks"
	// SchemeAdyenItems: a MAC of eight fields inside each item of the body.
	SchemeAdyenItems = "adyen"
	// SchemePayPal: RSA over identity and checksum, with a certificate to fetch.
	SchemePayPal = "paypal"
	// SchemePlaid: a JWT with the body's hash, with a key to fetch.
	SchemePlaid = "plaid"
	// SchemeRSA: RSA in a header, over the body; the secrets are public keys.
	SchemeRSA = "rsa"
	// SchemeMercadoPago: a MAC of the ID in the URL, the request ID and the time.
	SchemeMercadoPago = "mercadopago"
	// SchemeBraintree: a MAC of one field of a form, and challenges.
	SchemeBraintree = "braintree"
	// SchemeCloudPayments: a MAC of body or query, as sent or decoded.
	SchemeCloudPayments = "cloudpayments"
	// SchemeTBank, SchemeRobokassa: hashes of fields and the secret.
	SchemeTBank     = "tbank"
	SchemeRobokassa = "robokassa"
	// SchemeProdamus: a MAC of the form's fields written as JSON by PHP.
	SchemeProdamus = "prodamus"
	// SchemeSberbank: a MAC or RSA signature of the sorted parameters.
	SchemeSberbank = "sberbank"
	// SchemeToken: a header that is the secret itself.
	SchemeToken = "token"
	// SchemeNetworks: nothing but the sender's address.
	SchemeNetworks = "networks"
	// SchemeNone: nothing at all.
	SchemeNone = "none"
)

// Signature says how a source's deliveries are signed, as plain data. Header names
// are canonical (X-Signature). Which fields are set depends on Scheme.
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

	// Algorithm is hmac-sha256, hmac-sha512 or hmac-sha1 for SchemeHMAC, and what the
	// other schemes offer a choice of; Encoding of the signature is hex, base64 or
	// base64url; Prefix stands before it; Template is the signed text, with URL in it.
	Algorithm string
	Encoding  string
	Prefix    string
	Template  string
	URL       string
	// PrefixOptional accepts signatures without Prefix, Repeated several lines of Header,
	// each with a signature of its own. Both are Mollie's.
	PrefixOptional bool
	Repeated       bool
	// Pairs is set where Header consists of parts; the time among them is {ts}.
	Pairs PairsConfig
	// KeyEncoding is how the secret becomes the key: empty (as it is), hex or base64.
	KeyEncoding string

	// WebhookID, PublicKey, ClientID, TerminalKey and Environment are as configured.
	WebhookID   string
	PublicKey   string
	ClientID    string
	TerminalKey string
	Environment string
	// KeyHosts are the only hosts that keys and certificates are fetched from.
	KeyHosts []string
	// Networks are the addresses that SchemeNetworks believes.
	Networks []netip.Prefix

	// SecretPrefixes are the beginnings a secret of this provider has. A secret with
	// another one draws a warning. Empty: nothing is known.
	SecretPrefixes []string
	// BodyAuthenticated says that the scheme covers the body. Where it does not, Covers
	// are the paths it does cover; a * stands for the rest of one step.
	BodyAuthenticated bool
	Covers            []string
}

// Secretless tells whether the scheme knows no secret.
func (s *Signature) Secretless() bool {
	return s.Scheme == SchemeNetworks || s.Scheme == SchemeNone || s.Scheme == SchemePayPal
}

// newSignature applies what is configured to the definition's own knobs.
func newSignature(def *Definition, c SignatureConfig, p *Problems) Signature {
	sig := def.Signature
	set := map[string]bool{
		"header": c.Header != "", "algorithm": c.Algorithm != "", "encoding": c.Encoding != "", "prefix": c.Prefix != "",
		"template": c.Template != "", "timestamp_header": c.TimestampHeader != "", "timestamp_format": c.TimestampFormat != "",
		"tolerance": c.Tolerance != 0, "url": c.URL != "", "headers": c.Headers != "", "pairs": c.Pairs != PairsConfig{},
		"webhook_id": c.WebhookID != "", "public_key": c.PublicKey != "", "client_id": c.ClientID != "",
		"terminal_key": c.TerminalKey != "", "environment": c.Environment != "", "networks": len(c.Networks) > 0, "secret_encoding": c.SecretEncoding != "",
	}
	for _, knob := range knobOrder {
		if set[knob] && !slices.Contains(def.Knobs, knob) {
			p.Add("signature."+knob, "provider %s does not take this key; it takes %s", def.Name, knobList(def))
		}
	}
	switch {
	case c.Tolerance < 0 || c.Tolerance > 24*time.Hour:
		p.Add("signature.tolerance", "is %s; it lies between 1s and 24h", c.Tolerance)
	case c.Tolerance > 0:
		sig.Tolerance = c.Tolerance
	case sig.Tolerance == 0:
		sig.Tolerance = DefaultTolerance
	}
	sig.WebhookID, sig.PublicKey, sig.ClientID, sig.TerminalKey = c.WebhookID, c.PublicKey, c.ClientID, c.TerminalKey
	sig.Environment = c.Environment
	if sig.Environment == "" {
		sig.Environment = Production
	}
	if c.Environment != "" {
		p.OneOf("signature.environment", c.Environment, Production, Sandbox)
	}
	if len(c.Networks) > 0 {
		sig.Networks = readNetworks(c.Networks, p)
	}
	if def.Tune != nil {
		def.Tune(&sig, c, p)
	}
	return sig
}

var knobOrder = []string{"header", "algorithm", "encoding", "prefix", "secret_encoding", "template", "timestamp_header", "timestamp_format", "tolerance", "url", "headers", "pairs", "webhook_id", "public_key", "client_id", "terminal_key", "environment", "networks"}

func knobList(def *Definition) string {
	if len(def.Knobs) == 0 {
		return "none"
	}
	return strings.Join(def.Knobs, ", ")
}

// Values of SignatureConfig.Environment.
const (
	Production = "production"
	Sandbox    = "sandbox"
)

// readNetworks reads addresses and networks. Host bits must be zero: 192.0.2.1/24 is more
// often a slip than a wish.
func readNetworks(texts []string, p *Problems) []netip.Prefix {
	var out []netip.Prefix
	for i, text := range texts {
		key := fmt.Sprintf("signature.networks[%d]", i)
		if addr, err := netip.ParseAddr(text); err == nil && addr.Zone() == "" {
			addr = addr.Unmap()
			out = append(out, netip.PrefixFrom(addr, addr.BitLen()))
			continue
		}
		prefix, err := netip.ParsePrefix(text)
		if err != nil || prefix != prefix.Masked() {
			p.Add(key, "is %.60q; it is an address or a network, such as 192.0.2.0/24", text)
			continue
		}
		out = append(out, prefix)
	}
	return out
}

// HeaderName checks and canonicalizes the name of an HTTP header that will be kept
// in the record.
func HeaderName(key, name string, p *Problems) string {
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
