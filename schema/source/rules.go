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
	path                   schema.Path
	is, not                []string
	present, absent, blank bool
}

type direction struct {
	always string
	path   schema.Path
	credit []string
	debit  []string
}

// postingRule is a checked PostingConfig.
type postingRule struct {
	// at is where the rule stands in the configuration.
	at        string
	key       string
	types     []string
	when      []condition
	each      schema.Path
	accounts  []schema.Path
	amounts   []schema.Path
	less      schema.Path
	major     bool
	currency  locator
	direction direction
	movement  []schema.Path
	// movementIf is a last part of the movement, where it is there.
	movementIf schema.Path
	contra     string
	unclear    string
	// unsigned are the paths of the rule that the source does not believe.
	unsigned []string
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
	// optional: an event without the status has none. What providers leave out of events
	// that move no money is no reason for quarantine.
	optional bool
}

// newMeaning sets the rules of s: the provider's own, then those of the configuration.
func newMeaning(s *Source, c Config, p *Problems) {
	builtin := s.def.builtin()
	if builtin && len(s.def.Postings)+len(c.Postings) > 0 && len(c.Account) == 0 {
		p.Add("account", "is missing; it is the path of the account in an event, such as data.object.metadata.account_id")
	}
	if !builtin && len(c.Postings) == 0 && len(c.Statuses) == 0 {
		p.Add("postings", "is missing; without postings or statuses no event of the source means anything")
	}
	accounts := newPaths("account", c.Account, p)
	for i, pc := range s.def.Postings {
		s.postings = append(s.postings, newPosting(fmt.Sprintf("provider.postings[%d]", i), s, pc, accounts, p))
	}
	for i, pc := range c.Postings {
		s.postings = append(s.postings, newPosting(fmt.Sprintf("postings[%d]", i), s, pc, accounts, p))
	}
	checkRuleKeys(s.postings, p)
	// The first status that fits is taken, so what is configured goes first.
	for i, sc := range c.Statuses {
		s.statuses = append(s.statuses, newStatus(fmt.Sprintf("statuses[%d]", i), s, sc, p))
	}
	for i, sc := range s.def.Statuses {
		r := newStatus(fmt.Sprintf("provider.statuses[%d]", i), s, sc, p)
		r.optional = true
		s.statuses = append(s.statuses, r)
	}
}

func newPosting(at string, s *Source, c PostingConfig, accounts []schema.Path, p *Problems) postingRule {
	r := postingRule{at: at, key: c.Key, types: c.Type, contra: c.Contra}
	s.checkTypes(at+".type", c.Type, p)
	switch {
	case c.Key != "" && !isWord(c.Key):
		p.Add(at+".key", "has up to 255 bytes and no control characters")
	case c.Key == "" && len(c.Type) != 1:
		p.Add(at+".key", "is missing; a rule for several or all types needs one")
	}
	r.when = newConditions(at+".when", c.When, p)
	if r.unclear = c.Unclear; r.unclear != "" {
		return r
	}
	if c.Each != "" {
		r.each = newPath(at+".each", c.Each, p)
	}
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
		r.amounts = append(r.amounts, newPath(at+".amount", c.Amount, p))
	}
	if c.AmountElse != "" {
		r.amounts = append(r.amounts, newPath(at+".amount_else", c.AmountElse, p))
	}
	if c.Less != "" {
		r.less = newPath(at+".less", c.Less, p)
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
		} else if _, known := s.decimals(code); r.major && !known {
			p.Add(at+".currency", "the decimals of %s are not known, so amounts in units of it cannot be converted; use unit: minor", code)
		}
		r.currency.constant = code
	}
	r.direction = newDirection(at+".direction", c.Direction, p)
	if c.Movement != "" {
		r.movement = append(r.movement, newPath(at+".movement", c.Movement, p))
	} else if len(c.MovementAnd) > 0 {
		p.Add(at+".movement_and", "needs movement")
	}
	r.movement = append(r.movement, newPaths(at+".movement_and", c.MovementAnd, p)...)
	if c.MovementIf != "" {
		r.movementIf = newPath(at+".movement_if", c.MovementIf, p)
	}
	if r.contra == "" {
		// The key, not the name: it stays when the source is renamed, and so does the
		// meaning of its events.
		r.contra = schema.ExternalPrefix + s.key
	} else if !isWord(r.contra) {
		p.Add(at+".contra", "has up to 255 bytes and no control characters")
	}
	r.unsigned = s.unsigned(&r)
	return r
}

// checkRuleKeys refuses two rules for one event type with one key, unless their
// conditions exclude each other. Their postings would be told apart by their order
// alone, and the first of them may be absent where its amount is zero.
func checkRuleKeys(rules []postingRule, p *Problems) {
	for i, r := range rules {
		for _, other := range rules[:i] {
			shared := len(r.types) == 0 || len(other.types) == 0
			for _, t := range r.types {
				shared = shared || slices.Contains(other.types, t)
			}
			if shared && r.ruleKey("") == other.ruleKey("") && !exclusive(r.when, other.when) {
				p.Add(r.at+".key", "%s is for the same event type and has the same key; give one of them a key of its own", other.at)
			}
		}
	}
}

// exclusive tells whether two lists of conditions can never hold both: they ask for
// different values at one path.
func exclusive(a, b []condition) bool {
	for _, x := range a {
		for _, y := range b {
			if x.path.String() != y.path.String() {
				continue
			}
			apart := len(x.is) > 0 && len(y.is) > 0 && !slices.ContainsFunc(x.is, func(w string) bool { return slices.Contains(y.is, w) })
			apart = apart || x.blank && len(y.is) > 0 && !slices.Contains(y.is, "") || y.blank && len(x.is) > 0 && !slices.Contains(x.is, "")
			if apart || x.absent && (y.present || len(y.is) > 0) || y.absent && (x.present || len(x.is) > 0) {
				return true
			}
		}
	}
	return false
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
	typed := s.event.typ.isSet() || s.def.Type != nil
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
		set := 0
		for _, is := range []bool{len(c.Is) > 0, len(c.Not) > 0, c.Present, c.Absent, c.Blank} {
			if is {
				set++
			}
		}
		if set != 1 {
			p.Add(at, "needs exactly one of is (the values for which the condition holds), not, present, absent and blank")
		}
		out = append(out, condition{path: newPath(at+".path", c.Path, p), is: c.Is, not: c.Not, present: c.Present, absent: c.Absent, blank: c.Blank})
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

// decimals returns the number of decimals with which the ledger keeps a currency: that
// of ISO 4217, so that accounts credited by several providers add up; for what is not
// in the standard, the provider's.
func (s *Source) decimals(currency string) (int, bool) {
	if n, ok := schema.Exponent(currency); ok {
		return n, true
	}
	n, ok := s.def.Exponents[currency]
	return n, ok && n != UnknownExponent
}

// shift returns the power of ten between an amount as the provider writes it and minor
// units as the ledger keeps them; false if it is not known.
func (s *Source) shift(currency string, major bool) (int, bool) {
	decimals, known := s.decimals(currency)
	if major {
		return decimals, known
	}
	theirs, differs := s.def.Exponents[currency]
	switch {
	case theirs == UnknownExponent:
		return 0, false
	case differs && known:
		return decimals - theirs, true
	}
	return 0, true
}
