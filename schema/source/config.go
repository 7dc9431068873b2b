package source

import (
	"fmt"
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
}

// EventConfig says where identity, type and time of an event are.
type EventConfig struct {
	// Body is json (default) or form: how the delivery's body is read.
	Body string `yaml:"body,omitempty"`
	// Items is the path of the list whose items are the events, where one delivery
	// carries several. The other paths then start at an item.
	Items string `yaml:"items,omitempty"`
	// ID is a path, a header, or derived from fields: {derive: [a, b]}.
	ID Locator `yaml:"id,omitempty"`
	// Type is a path, a header or a constant.
	Type Locator `yaml:"type,omitempty"`
	// Time is a path.
	Time Locator `yaml:"time,omitempty"`
	// TimeFormat is rfc3339, unix (seconds) or unix_ms. Empty: a text is RFC 3339, a
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

// PostingConfig is a rule that makes at most one posting of an event.
type PostingConfig struct {
	// Key is the immutable key of the rule. Empty: the event's type. Two event types
	// that tell of one movement carry the same key.
	Key string `yaml:"key,omitempty"`
	// Type lists the event types the rule is for, compared exactly. Empty: all; then
	// Key is needed.
	Type []string `yaml:"type,omitempty"`
	// When lists further conditions; all must hold.
	When []ConditionConfig `yaml:"when,omitempty"`
	// Account overrides the source's.
	Account []string `yaml:"account,omitempty"`
	// Amount is the path of a number or of a decimal number in a string. An amount of
	// zero makes no posting.
	Amount string `yaml:"amount"`
	// Unit is minor (cents) or major (units of the currency, with decimals).
	Unit string `yaml:"unit"`
	// Currency is a path, or {const: EUR}.
	Currency Locator `yaml:"currency"`
	// Direction is credit, debit, signed (a negative amount debits), or by a field:
	// {path: kind, credit: [in], debit: [out]}.
	Direction Direction `yaml:"direction"`
	// Movement is the path of what names this one movement of money: a text or a whole
	// number. Empty: the event ID.
	Movement string `yaml:"movement,omitempty"`
	// Contra names the other side. Empty: external: and the source's key.
	Contra string `yaml:"contra,omitempty"`
}

// ConditionConfig holds when the value at Path is one of Is. Numbers and booleans
// are compared as they are written in the event.
type ConditionConfig struct {
	Path string   `yaml:"path"`
	Is   []string `yaml:"is"`
}

// StatusConfig is a rule that reads the status of an object.
type StatusConfig struct {
	Type []string          `yaml:"type,omitempty"`
	When []ConditionConfig `yaml:"when,omitempty"`
	// Object is the path of what has the status, such as a payment's ID.
	Object string `yaml:"object"`
	// Status is a path, or {const: paid}.
	Status Locator `yaml:"status"`
	// Rank orders statuses that occurred at the same time. Ranks gives it by status
	// and goes before Rank.
	Rank  int            `yaml:"rank,omitempty"`
	Ranks map[string]int `yaml:"ranks,omitempty"`
	// LatestWins says that an event of this type that arrives again with another
	// status is news, not a conflict. The type can then have no postings.
	LatestWins bool `yaml:"latest_wins,omitempty"`
}

// Locator says where a text of a delivery is. In configuration it is a path, or one
// of {path: p}, {header: h}, {const: c}, {derive: [p, q]}.
type Locator struct {
	Path   string   `yaml:"path,omitempty"`
	Header string   `yaml:"header,omitempty"`
	Const  string   `yaml:"const,omitempty"`
	Derive []string `yaml:"derive,omitempty"`
}

// IsZero tells whether the locator was left out.
func (l Locator) IsZero() bool {
	return l.Path == "" && l.Header == "" && l.Const == "" && len(l.Derive) == 0
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
		return fmt.Errorf("is a path, or one of {path: p}, {header: h}, {const: c}, {derive: [p, q]}: %w", err)
	}
	return nil
}

// MarshalYAML writes what UnmarshalYAML reads, the short form where it can.
func (l Locator) MarshalYAML() (any, error) {
	if l.Header == "" && l.Const == "" && len(l.Derive) == 0 {
		return l.Path, nil
	}
	type plain Locator
	return plain(l), nil
}

// Direction says whether a posting credits or debits. In configuration it is
// credit, debit or signed, or {path: p, credit: [values], debit: [values]}.
type Direction struct {
	// Always is credit, debit or signed; empty if a field decides.
	Always string   `yaml:"-"`
	Path   string   `yaml:"path,omitempty"`
	Credit []string `yaml:"credit,omitempty"`
	Debit  []string `yaml:"debit,omitempty"`
}

// UnmarshalYAML reads a word or the long form.
func (d *Direction) UnmarshalYAML(unmarshal func(any) error) error {
	var word string
	if unmarshal(&word) == nil {
		*d = Direction{Always: word}
		return nil
	}
	type plain Direction
	if err := unmarshal((*plain)(d)); err != nil {
		return fmt.Errorf("is credit, debit, signed, or {path: p, credit: [values], debit: [values]}: %w", err)
	}
	return nil
}

// MarshalYAML writes what UnmarshalYAML reads.
func (d Direction) MarshalYAML() (any, error) {
	if d.Always != "" {
		return d.Always, nil
	}
	type plain Direction
	return plain(d), nil
}
