package source

import (
	"fmt"
	"io"
	"time"
)

// Config is one configured source. Which keys apply depends on the provider; New
// refuses those that do not.
type Config struct {
	// Name is the last part of the source's URL: ^[a-z][a-z0-9_-]{0,62}$.
	Name string `yaml:"name"`
	// Key is the source's immutable identity in the topic and the ledger. Empty: the
	// name. Whoever renames a source sets it to the old name, so nobody is paid twice.
	Key string `yaml:"key,omitempty"`
	// Provider names the definition: see Names.
	Provider string `yaml:"provider"`

	// Secrets sign for the source. All of those valid at the time are tried.
	Secrets []SecretConfig `yaml:"secrets"`
	// Account is the path of the account in an event, or several: the first that
	// leads to a value counts.
	Account []string `yaml:"account,omitempty"`
	// Currency is the currency of events that do not say one, such as EUR. Empty: they go
	// to quarantine.
	Currency string `yaml:"currency,omitempty"`
	// Trust says, where the signature does not cover the whole body, what money may be
	// taken from: signed_fields_only (default), or body, for who checks otherwise.
	Trust string `yaml:"trust,omitempty"`
	// Livemode is any (default), live or test: which events count where the provider
	// marks them. The others are ignored.
	Livemode string `yaml:"livemode,omitempty"`

	Signature SignatureConfig `yaml:"signature,omitempty"`
	Event     EventConfig     `yaml:"event,omitempty"`
	Success   SuccessConfig   `yaml:"success,omitempty"`
	Postings  []PostingConfig `yaml:"postings,omitempty"`
	Statuses  []StatusConfig  `yaml:"statuses,omitempty"`
}

// SecretConfig says where one secret of a source is. Exactly one of Env, File and
// Value is set.
type SecretConfig struct {
	// ID stands for the secret in records, metrics and logs. Empty: the name of the
	// variable, the base name of the file, or value-N with N its place in the list.
	ID string `yaml:"id,omitempty"`
	// Env is the name of an environment variable. Its text is taken as it is.
	Env string `yaml:"env,omitempty"`
	// File is a path. One line feed at the end of the file is not part of the secret;
	// nothing else is stripped.
	File string `yaml:"file,omitempty"`
	// Value is the secret itself, for development.
	Value Secret `yaml:"value,omitempty"`
	// NotBefore and NotAfter bound, inclusively, when the secret is valid. Zero: no bound.
	NotBefore time.Time `yaml:"not_before,omitempty"`
	NotAfter  time.Time `yaml:"not_after,omitempty"`
}

// redacted is what every way of printing a Secret shows.
const redacted = "[secret]"

// Secret is a text that does not print itself: not by fmt, not as JSON or YAML.
// string(s) is the one way to it.
type Secret string

// String hides the secret.
func (Secret) String() string { return redacted }

// Format hides the secret from every verb, %x and %#v among them.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// MarshalText hides the secret from encoders of text: JSON, YAML and others.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// MarshalJSON hides the secret.
func (Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// MarshalYAML hides the secret.
func (Secret) MarshalYAML() (any, error) { return redacted, nil }

// SignatureConfig are the knobs of a signature scheme. The generic provider takes
// all but Headers; the others those their documentation leaves open.
type SignatureConfig struct {
	// Header carries the signature.
	Header string `yaml:"header,omitempty"`
	// Algorithm is hmac-sha256 (default), hmac-sha512 or hmac-sha1; the prefix hmac-
	// may be left out.
	Algorithm string `yaml:"algorithm,omitempty"`
	// Encoding of the signature is hex (default, either case), base64 (padded) or
	// base64url (padded or not).
	Encoding string `yaml:"encoding,omitempty"`
	// Prefix stands before the signature in its header, such as sha256=.
	Prefix string `yaml:"prefix,omitempty"`
	// SecretEncoding is how the secret becomes the key: as it is (default), hex or base64.
	SecretEncoding string `yaml:"secret_encoding,omitempty"`
	// Template is the signed text, made of literals and {body}, {ts} (the text of
	// TimestampHeader), {url} (the text of URL) and {header:NAME}. Default: {body}, or
	// {ts}.{body} where TimestampHeader is set. {body} must stand in it once.
	Template string `yaml:"template,omitempty"`
	// TimestampHeader carries the time of signing; then the template must sign it.
	TimestampHeader string `yaml:"timestamp_header,omitempty"`
	// TimestampFormat is unix (default, seconds), unix_ms or rfc3339.
	TimestampFormat string `yaml:"timestamp_format,omitempty"`
	// Tolerance is how far the time of signing may lie from now, either way,
	// inclusively. Zero: DefaultTolerance.
	Tolerance time.Duration `yaml:"tolerance,omitempty"`
	// URL is the address registered with the provider, byte by byte, where it is signed.
	URL string `yaml:"url,omitempty"`
	// Headers is the family of header names of Standard Webhooks: webhook (default) or svix.
	Headers string `yaml:"headers,omitempty"`
	// Pairs is how a header of several parts is read, such as ts=1764417600;h1=5f0c….
	Pairs PairsConfig `yaml:"pairs,omitempty"`
	// WebhookID is the ID of the webhook at the provider, where it is signed (PayPal).
	WebhookID string `yaml:"webhook_id,omitempty"`
	// PublicKey is the public half of the merchant's API key (Braintree).
	PublicKey string `yaml:"public_key,omitempty"`
	// ClientID is the name under which keys are fetched from the provider (Plaid).
	ClientID string `yaml:"client_id,omitempty"`
	// TerminalKey is the terminal that notifications must be for (T-Bank). Empty: any.
	TerminalKey string `yaml:"terminal_key,omitempty"`
	// Environment is production (default) or sandbox: whose keys are believed.
	Environment string `yaml:"environment,omitempty"`
	// Networks are the addresses deliveries may come from, in place of those the provider
	// publishes: 192.0.2.1 or 192.0.2.0/24.
	Networks []string `yaml:"networks,omitempty"`
}

// PairsConfig is a header of name=value parts, one of them a time, some of them
// signatures. Other parts are ignored. The time is {ts} in the template.
type PairsConfig struct {
	// Separator stands between parts: "," or ";".
	Separator string `yaml:"separator,omitempty"`
	// Time and Signature are the names of the parts.
	Time      string `yaml:"time,omitempty"`
	Signature string `yaml:"signature,omitempty"`
}

// EventConfig says where identity, type and time of an event are.
type EventConfig struct {
	// Body is how the delivery's body is read: json (default), form (also multipart), or
	// any, by its content type.
	Body string `yaml:"body,omitempty"`
	// Items is the path of the list whose items are the events, where one delivery
	// carries several. The other paths then start at an item.
	Items string `yaml:"items,omitempty"`
	// ID is a path, a header, derived from fields, {derive: [a, b]}, or made of them,
	// {join: [a, b]}.
	ID Locator `yaml:"id,omitempty"`
	// Type is a path, a header or a constant.
	Type Locator `yaml:"type,omitempty"`
	// Time is a path.
	Time Locator `yaml:"time,omitempty"`
	// TimeFormat is rfc3339, unix (seconds), unix_ms or datetime (2006-01-02 15:04:05,
	// UTC). Empty: a text is RFC 3339, a
	// number is unix seconds.
	TimeFormat string `yaml:"time_format,omitempty"`
}

// SuccessConfig is the answer that the provider counts as success.
type SuccessConfig struct {
	// Status is 200 (default) to 299.
	Status int `yaml:"status,omitempty"`
	// Body is sent as text/plain unless ContentType says otherwise. Empty: no body.
	Body        string `yaml:"body,omitempty"`
	ContentType string `yaml:"content_type,omitempty"`
}

// Locator says where a text of a delivery is. In configuration it is a path, or one
// of {path: p}, {header: h}, {query: q}, {const: c}, {derive: [p, q]}, {join: [p, q]}.
type Locator struct {
	Path   string `yaml:"path,omitempty"`
	Header string `yaml:"header,omitempty"`
	// Query is the name of a parameter of the delivery's URL.
	Query string `yaml:"query,omitempty"`
	Const string `yaml:"const,omitempty"`
	// Derive makes a hash of the values at paths, Join their text with colons between
	// them (Separator, if set): safe only where no value can hold the separator.
	Derive    []string `yaml:"derive,omitempty"`
	Join      []string `yaml:"join,omitempty"`
	Separator string   `yaml:"separator,omitempty"`
	// PerDelivery appends the ID of the delivery: where an event names only what is to
	// be fetched, two of them are never one.
	PerDelivery bool `yaml:"per_delivery,omitempty"`
	// Or are tried in order where this leads to nothing.
	Or []Locator `yaml:"or,omitempty"`
}

// IsZero tells whether the locator was left out.
func (l Locator) IsZero() bool {
	return l.Path == "" && l.Header == "" && l.Query == "" && l.Const == "" && len(l.Derive) == 0 && len(l.Join) == 0
}

// UnmarshalYAML reads the short form, a path, or the long one.
func (l *Locator) UnmarshalYAML(unmarshal func(any) error) error {
	var path string
	if unmarshal(&path) == nil {
		*l = Locator{Path: path}
		return nil
	}
	type plain Locator
	if err := unmarshal((*plain)(l)); err != nil {
		return fmt.Errorf("is a path, or one of {path: p}, {header: h}, {query: q}, {const: c}, {derive: [p, q]}, {join: [p, q]}: %w", err)
	}
	return nil
}

// MarshalYAML writes what UnmarshalYAML reads, the short form where it can.
func (l Locator) MarshalYAML() (any, error) {
	if l.Path != "" && !l.PerDelivery && len(l.Or) == 0 || l.IsZero() {
		return l.Path, nil
	}
	type plain Locator
	return plain(l), nil
}
