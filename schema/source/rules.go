package source

import (
	"fmt"
	"slices"
	"unicode"
	"unicode/utf8"

	"hookledger/schema"
)

// Words of a posting rule.
const (
	UnitMinor = "minor"
	UnitMajor = "major"

	Credit = "credit"
	Debit  = "debit"
	Signed = "signed"
)

type condition struct {
	path schema.Path
	is   []string
}

type direction struct {
	always string
	path   schema.Path
	credit []string
	debit  []string
}

// postingRule is a checked PostingConfig.
type postingRule struct {
	key       string
	types     []string
	when      []condition
	accounts  []schema.Path
	amount    schema.Path
	major     bool
	currency  locator
	direction direction
	movement  schema.Path
	contra    string
}

// statusRule is a checked StatusConfig.
type statusRule struct {
	types      []string
	when       []condition
	object     schema.Path
	status     locator
	rank       int
	ranks      map[string]int
	latestWins bool
}

// newMeaning sets the rules of s.
func newMeaning(s *Source, c Config, p *Problems) {
	if s.def.builtin() {
		if c.Postings != nil || c.Statuses != nil {
			p.Add("postings", "provider %s says itself what its events mean; remove the keys postings and statuses", s.def.Name)
		}
		c.Postings, c.Statuses = s.def.Postings, s.def.Statuses
		if len(c.Postings) > 0 && len(c.Account) == 0 {
			p.Add("account", "is missing; it is the path of the account in an event, such as data.object.metadata.account_id")
		}
	} else if len(c.Postings) == 0 && len(c.Statuses) == 0 {
		p.Add("postings", "is missing; without postings or statuses no event of the source means anything")
	}
	accounts := newPaths("account", c.Account, p)
	for i, pc := range c.Postings {
		s.postings = append(s.postings, newPosting(fmt.Sprintf("postings[%d]", i), s, pc, accounts, p))
	}
	checkRuleKeys(s.postings, p)
	for i, sc := range c.Statuses {
		s.statuses = append(s.statuses, newStatus(fmt.Sprintf("statuses[%d]", i), s, sc, p))
	}
}

func newPosting(at string, s *Source, c PostingConfig, accounts []schema.Path, p *Problems) postingRule {
	r := postingRule{key: c.Key, types: c.Type, contra: c.Contra}
	s.checkTypes(at+".type", c.Type, p)
	switch {
	case c.Key != "" && !isWord(c.Key):
		p.Add(at+".key", "has up to 255 bytes and no control characters")
	case c.Key == "" && len(c.Type) != 1:
		p.Add(at+".key", "is missing; a rule for several or all types needs one")
	}
	r.when = newConditions(at+".when", c.When, p)
	r.accounts = accounts
	if len(c.Account) > 0 {
		r.accounts = newPaths(at+".account", c.Account, p)
	}
	if len(r.accounts) == 0 && !s.def.builtin() {
		p.Add(at+".account", "is missing; it is the path of the account in an event")
	}
	if c.Amount == "" {
		p.Add(at+".amount", "is missing; it is the path of the amount in an event")
	} else {
		r.amount = newPath(at+".amount", c.Amount, p)
	}
	p.OneOf(at+".unit", c.Unit, UnitMinor, UnitMajor)
	r.major = c.Unit == UnitMajor
	if c.Currency.IsZero() {
		p.Add(at+".currency", "is missing; it is a path or {const: EUR}")
	}
	r.currency = newLocator(at+".currency", c.Currency, p, "path", "const")
	if r.currency.constant != "" {
		code, err := schema.NormalizeCurrency(r.currency.constant)
		if err != nil {
			p.Add(at+".currency", "%v", err)
		} else if _, known := s.exponent(code); r.major && !known {
			p.Add(at+".currency", "the decimals of %s are not known, so amounts in units of it cannot be converted; use unit: minor", code)
		}
		r.currency.constant = code
	}
	r.direction = newDirection(at+".direction", c.Direction, p)
	if c.Movement != "" {
		r.movement = newPath(at+".movement", c.Movement, p)
	}
	if r.contra == "" {
		// The key, not the name: it stays when the source is renamed, and so does the
		// meaning of its events.
		r.contra = "external:" + s.key
	} else if !isWord(r.contra) {
		p.Add(at+".contra", "has up to 255 bytes and no control characters")
	}
	return r
}

// checkRuleKeys refuses two rules for one event type with one key. Their postings
// would be told apart by their order alone, and the first of them may be absent where
// its amount is zero.
func checkRuleKeys(rules []postingRule, p *Problems) {
	for i, r := range rules {
		for j, other := range rules[:i] {
			shared := len(r.types) == 0 || len(other.types) == 0
			for _, t := range r.types {
				shared = shared || slices.Contains(other.types, t)
			}
			if shared && r.ruleKey("") == other.ruleKey("") {
				p.Add(fmt.Sprintf("postings[%d].key", i), "postings[%d] is for the same event type and has the same key; give one of them a key of its own", j)
			}
		}
	}
}

// ruleKey returns the key of the rule for an event of a type.
func (r *postingRule) ruleKey(eventType string) string {
	switch {
	case r.key != "":
		return r.key
	case len(r.types) == 1:
		return r.types[0]
	}
	return eventType
}

func newStatus(at string, s *Source, c StatusConfig, p *Problems) statusRule {
	r := statusRule{types: c.Type, rank: c.Rank, ranks: c.Ranks, latestWins: c.LatestWins}
	s.checkTypes(at+".type", c.Type, p)
	r.when = newConditions(at+".when", c.When, p)
	if c.Object == "" {
		p.Add(at+".object", "is missing; it is the path of what has the status")
	} else {
		r.object = newPath(at+".object", c.Object, p)
	}
	if c.Status.IsZero() {
		p.Add(at+".status", "is missing; it is a path or {const: paid}")
	}
	r.status = newLocator(at+".status", c.Status, p, "path", "const")
	if c.LatestWins {
		for i, posting := range s.postings {
			if len(posting.types) == 0 || len(c.Type) == 0 || slices.ContainsFunc(c.Type, func(t string) bool { return slices.Contains(posting.types, t) }) {
				p.Add(at+".latest_wins", "postings[%d] moves money for the same event type, and money never follows the latest", i)
			}
		}
	}
	return r
}

func (s *Source) checkTypes(key string, types []string, p *Problems) {
	typed := s.event.typ.header != "" || s.event.typ.constant != "" || !s.event.typ.path.IsZero()
	if len(types) > 0 && !typed {
		p.Add(key, "needs event.type: where the type of an event is")
	}
	for _, t := range types {
		if t == "" || !isWord(t) {
			p.Add(key, "has up to 255 bytes and no control characters")
		}
	}
}

func newPaths(key string, texts []string, p *Problems) []schema.Path {
	var paths []schema.Path
	for _, t := range texts {
		paths = append(paths, newPath(key, t, p))
	}
	return paths
}

func newConditions(key string, list []ConditionConfig, p *Problems) []condition {
	var out []condition
	for i, c := range list {
		at := fmt.Sprintf("%s[%d]", key, i)
		if len(c.Is) == 0 {
			p.Add(at+".is", "is missing; it lists the values for which the condition holds")
		}
		out = append(out, condition{path: newPath(at+".path", c.Path, p), is: c.Is})
	}
	return out
}

func newDirection(key string, d Direction, p *Problems) direction {
	out := direction{always: d.Always, credit: d.Credit, debit: d.Debit}
	if d.Path == "" {
		p.OneOf(key, d.Always, Credit, Debit, Signed)
		return out
	}
	out.path = newPath(key+".path", d.Path, p)
	if len(d.Credit) == 0 && len(d.Debit) == 0 {
		p.Add(key, "lists for which values of %s a posting credits, and for which it debits", d.Path)
	}
	for _, word := range d.Credit {
		if slices.Contains(d.Debit, word) {
			p.Add(key, "%.40q both credits and debits", word)
		}
	}
	return out
}

// isWord tells whether a configured text can be kept by the ledger.
func isWord(s string) bool {
	if len(s) > schema.MaxAccountBytes || !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if unicode.IsControl(r) {
			return false
		}
	}
	return true
}

// exponent returns the decimals of a currency as this provider writes it.
func (s *Source) exponent(currency string) (int, bool) {
	if n, ok := s.def.Exponents[currency]; ok {
		return n, true
	}
	return schema.Exponent(currency)
}
