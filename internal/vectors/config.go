package vectors

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"hookledger/ingest/signature"
	"hookledger/schema/provider"
	"hookledger/schema/source"
)

// unused stands where a receiver needs a value that a case has no use for, such as what
// keys are fetched with.
const unused = "unused-by-the-case"

// config is the source that the case is a delivery of.
func (c *Case) config() source.Config {
	out := source.Config{Name: "case", Provider: c.provider(), Account: []string{"account"}}
	d, err := provider.Definition(out.Provider)
	if err == nil && d.Postings == nil && d.Statuses == nil && d.NonEffect == "" {
		// What it means in money plays no part here, but a source without a meaning is none.
		out.Postings = []source.PostingConfig{{
			Key: "case", Amount: "amount", Unit: source.UnitMinor,
			Currency: source.Locator{Const: "EUR"}, Direction: source.Direction{Always: source.Credit},
		}}
	}
	for _, secret := range c.secrets() {
		out.Secrets = append(out.Secrets, source.SecretConfig{Value: source.Secret(secret)})
	}
	knobs := &out.Signature
	if err == nil && c.ToleranceS != nil && slices.Contains(d.Knobs, "tolerance") {
		knobs.Tolerance = time.Duration(*c.ToleranceS) * time.Second
	}
	switch out.Provider {
	case "generic":
		knobs.Header, knobs.Algorithm, knobs.Encoding, knobs.Prefix = c.Header, c.Algorithm, c.Encoding, c.Prefix
		knobs.Template, knobs.TimestampHeader, knobs.TimestampFormat = c.Template, c.TimestampHeader, c.TimestampFormat
		knobs.URL = c.URL
		if knobs.TimestampHeader == "" {
			knobs.Tolerance = 0
		}
		out.Event.ID = source.Locator{Path: "id"}
	case "standardwebhooks":
		if c.has("svix-id") && !c.has("webhook-id") {
			knobs.Headers = "svix"
		}
	case "square":
		knobs.URL = c.URL
	case "paypal":
		knobs.WebhookID = c.WebhookID
		// Which of the two a source is for, its owner knows; a case says it by the host.
		if strings.Contains(c.get("paypal-cert-url"), "sandbox") {
			knobs.Environment = source.Sandbox
		}
	case "plaid":
		knobs.ClientID = unused
	case "braintree":
		knobs.PublicKey = c.MerchantPublicKey
	case "tbank":
		knobs.TerminalKey = c.TerminalKey
	case "robokassa":
		knobs.Algorithm = c.Hash
	case "sberbank":
		if c.CertPEM != "" {
			knobs.Algorithm = "rsa-sha512"
		}
	}
	return out
}

// provider names the definition: of some providers there are two, by scheme.
func (c *Case) provider() string {
	switch {
	case c.Provider == "adyen" && !strings.Contains(c.Scheme, "standard"):
		return "adyen-platform"
	case c.Provider == "flutterwave" && (strings.Contains(c.Scheme, "v3") || strings.Contains(c.Scheme, "verif-hash")):
		return "flutterwave-v3"
	case c.Provider == "flutterwave":
		return "flutterwave-v4"
	case c.Provider == "mollie" && strings.Contains(c.Scheme, "classic"):
		return "mollie-classic"
	}
	return c.Provider
}

// secrets are those of the source: a public key where that is what one configures, none
// where nobody has one.
func (c *Case) secrets() []string {
	switch c.provider() {
	case "paypal", "yookassa", "mollie-classic":
		return nil
	case "plaid":
		return []string{unused}
	case "wise":
		return []string{c.PublicKey}
	case "sberbank":
		if c.CertPEM != "" {
			return []string{c.CertPEM}
		}
	}
	if len(c.Secrets) > 0 {
		return c.Secrets
	}
	if c.Secret == nil {
		return []string{""}
	}
	return []string{*c.Secret}
}

// options make the case's own keys the trusted ones, and keep from fetching any.
func (c *Case) options() []signature.Option {
	options := []signature.Option{signature.WithTransport(offline{})}
	if c.CertPEM != "" {
		options = append(options, signature.WithCertificates([]byte(c.CertPEM)))
	}
	if len(c.JWKS) > 0 && string(c.JWKS) != "null" {
		options = append(options, signature.WithJWKS(c.JWKS))
	}
	return options
}

type offline struct{}

func (offline) RoundTrip(*http.Request) (*http.Response, error) { return nil, http.ErrServerClosed }

func (c *Case) has(name string) bool { return c.get(name) != "" }

func (c *Case) get(name string) string {
	for key, values := range c.Headers {
		if strings.EqualFold(key, name) && len(values) > 0 {
			return values[0]
		}
	}
	return ""
}
