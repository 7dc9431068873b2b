package source

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"hookledger/schema"
)

// Source is one configured source, checked and ready. It is immutable and safe for
// concurrent use.
type Source struct {
	name string
	key  string
	def  *Definition

	secrets   []SecretConfig
	signature Signature
	event     eventRules
	success   Answer

	currency   string
	signedOnly bool
	live       livemode
	postings   []postingRule
	statuses   []statusRule
}

var namePattern = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,62}$`)

// CheckName returns what is wrong with the name of a source.
func CheckName(name string) error {
	if !namePattern.MatchString(name) {
		return errors.New(nameRule)
	}
	return nil
}

const nameRule = "must match " + `^[a-z][a-z0-9_-]{0,62}$`

// Lookup returns the definition of a provider. Its error ends a sentence that begins with
// the key of the configuration, such as: is "x"; it is one of stripe, generic.
type Lookup func(provider string) (*Definition, error)

// New checks c and returns the source. It fails with all problems joined, each a
// *ConfigError whose key starts at the source.
func New(c Config, lookup Lookup) (*Source, error) {
	p := &Problems{}
	s := &Source{name: c.Name, key: c.Key, secrets: c.Secrets}
	if !namePattern.MatchString(c.Name) {
		p.Add("name", nameRule)
	}
	if s.key == "" {
		s.key = c.Name
	} else if !namePattern.MatchString(c.Key) {
		p.Add("key", nameRule)
	}
	def, err := lookup(c.Provider)
	if err != nil {
		p.Add("provider", "%v", err)
		return nil, p.err()
	}
	s.def = def
	checkSecrets(c.Secrets, p)
	s.signature = newSignature(def, c.Signature, p)
	s.event = newEvent(def, c.Event, &s.signature, p)
	s.success = newAnswer(def, c.Success, p)
	s.live = newLivemode(def, c.Livemode, p)
	s.signedOnly = newTrust(c.Trust, &s.signature, p)
	if c.Currency != "" {
		if s.currency, err = schema.NormalizeCurrency(c.Currency); err != nil {
			p.Add("currency", "%v", err)
		}
	}
	newMeaning(s, c, p)
	if err := p.err(); err != nil {
		return nil, err
	}
	return s, nil
}

// Format names the source for every verb: fmt does not ask unexported fields, such as
// configured secrets, how they print.
func (s *Source) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "source "+s.name) }

// Name is the last part of the source's URL.
func (s *Source) Name() string { return s.name }

// Key is the source's immutable identity.
func (s *Source) Key() string { return s.key }

// IDHeader is the header that names an event, empty where its body does.
func (s *Source) IDHeader() string { return s.event.id.header }

// Provider is the name of the source's definition.
func (s *Source) Provider() string { return s.def.Name }

// Signature says how the source's deliveries are signed.
func (s *Source) Signature() Signature { return s.signature }

// Secrets says where the source's secrets are.
func (s *Source) Secrets() []SecretConfig { return s.secrets }

func checkSecrets(secrets []SecretConfig, p *Problems) {
	for i, c := range secrets {
		key := fmt.Sprintf("secrets[%d]", i)
		set := 0
		for _, is := range []bool{c.Env != "", c.File != "", c.Value != ""} {
			if is {
				set++
			}
		}
		if set != 1 {
			p.Add(key, "needs exactly one of env, file, value, and not an empty one")
		}
		if c.ID != "" && !isLabel(c.ID) {
			p.Add(key+".id", "has up to 128 letters, digits and -_.:/ characters")
		}
		if !c.NotBefore.IsZero() && !c.NotAfter.IsZero() && c.NotAfter.Before(c.NotBefore) {
			p.Add(key+".not_after", "is before not_before")
		}
	}
}

// isLabel tells whether s may stand in headers, labels and logs as it is.
func isLabel(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && strings.IndexByte("-_.:/", c) < 0 {
			return false
		}
	}
	return len(s) > 0 && len(s) <= 128
}
