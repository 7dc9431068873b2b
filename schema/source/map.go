package source

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"hookledger/schema"
)

// Map returns what ev means in money. Without a rule for its type, or when the
// source's livemode leaves it out, the meaning is empty: the event is ignored. It
// fails with a *schema.MappingError when a rule is for the event and cannot read it.
func (s *Source) Map(ev *schema.Event) (schema.Meaning, error) {
	var postings []*postingRule
	for i := range s.postings {
		if isFor(s.postings[i].types, ev.Type) {
			postings = append(postings, &s.postings[i])
		}
	}
	var statuses []*statusRule
	for i := range s.statuses {
		if isFor(s.statuses[i].types, ev.Type) {
			statuses = append(statuses, &s.statuses[i])
		}
	}
	if len(postings) == 0 && len(statuses) == 0 {
		return schema.Meaning{}, nil
	}
	var m schema.Meaning
	var err error
	if bad := s.read(ev.ContentType, ev.Body, func(root *schema.Value) { m, err = s.meaning(ev, root, postings, statuses) }); bad != nil {
		return schema.Meaning{}, &schema.MappingError{Reason: schema.ReasonBodyUnreadable, Detail: bad.Error()}
	}
	return m, err
}

// meaning is what the rules make of the event.
func (s *Source) meaning(ev *schema.Event, root *schema.Value, postings []*postingRule, statuses []*statusRule) (schema.Meaning, error) {
	counts, unclear := s.live.judge(ev, root)
	if !counts {
		return schema.Meaning{}, nil
	}
	var m schema.Meaning
	for _, r := range postings {
		for _, at := range r.places(root) {
			if !holds(at, r.when) {
				continue
			}
			if r.unclear != "" {
				return schema.Meaning{}, mappingError(schema.ReasonUnclear, "%s", r.unclear)
			}
			posting, moves, err := s.posting(r, ev, at)
			if err != nil {
				return schema.Meaning{}, err
			}
			if moves && unclear != nil {
				return schema.Meaning{}, unclear
			}
			if moves {
				m.Postings = append(m.Postings, posting)
			}
		}
	}
	for _, r := range statuses {
		if !holds(root, r.when) {
			continue
		}
		status, err := r.read(ev, root)
		if err != nil && r.optional {
			continue
		}
		if err != nil {
			return schema.Meaning{}, err
		}
		m.Status, m.LatestWins = status, r.latestWins
		break
	}
	if err := m.Check(); err != nil {
		return schema.Meaning{}, err
	}
	return m, nil
}

func isFor(types []string, eventType string) bool {
	return len(types) == 0 || slices.Contains(types, eventType)
}

// places returns where the rule is read: the event, or for a rule with each, the event
// with one item of the list as its field item.
func (r *postingRule) places(root *schema.Value) []*schema.Value {
	if r.each.IsZero() {
		return []*schema.Value{root}
	}
	list, ok := root.At(r.each)
	if !ok || list.Kind() != schema.KindArray {
		return nil
	}
	var places []*schema.Value
	for i := range list.Items() {
		places = append(places, root.With(itemField, &list.Items()[i]))
	}
	return places
}

// itemField is the name under which a rule with each finds an item of its list.
const itemField = "item"

func holds(root *schema.Value, when []condition) bool {
	for _, c := range when {
		if !c.holds(root) {
			return false
		}
	}
	return true
}

func (c *condition) holds(root *schema.Value) bool {
	v, there := present(root, c.path)
	switch {
	case c.present:
		return there
	case c.absent:
		return !there
	case c.blank:
		if !there {
			return true
		}
		text, single := v.Literal()
		return single && text == ""
	case !there:
		return len(c.not) > 0
	}
	text, single := v.Literal()
	if len(c.not) > 0 {
		return !single || !slices.Contains(c.not, text)
	}
	return single && slices.Contains(c.is, text)
}

// posting applies a rule. It returns false for an amount of zero.
func (s *Source) posting(r *postingRule, ev *schema.Event, root *schema.Value) (schema.Posting, bool, error) {
	if len(r.unsigned) > 0 {
		return schema.Posting{}, false, unsignedError(r.unsigned)
	}
	currency, err := s.readCurrency(r, root)
	if err != nil {
		return schema.Posting{}, false, err
	}
	amount, err := s.readAmount(r, root, currency)
	if err != nil {
		return schema.Posting{}, false, err
	}
	amount, err = r.direction.apply(amount, root)
	if err != nil || amount == 0 {
		return schema.Posting{}, false, err
	}
	account, at, err := readAccount(root, r.accounts)
	if err != nil {
		return schema.Posting{}, false, err
	}
	if !s.believes(at) {
		return schema.Posting{}, false, unsignedError([]string{at.String()})
	}
	movement, err := r.readMovement(root, ev)
	if err != nil {
		return schema.Posting{}, false, err
	}
	return schema.Posting{
		Account: account, Contra: r.contra,
		Amount: amount, Currency: currency,
		Rule: r.ruleKey(ev.Type), Movement: movement,
	}, true, nil
}

func (s *Source) readCurrency(r *postingRule, root *schema.Value) (string, error) {
	if r.currency.constant != "" {
		return r.currency.constant, nil
	}
	v, ok := present(root, r.currency.path)
	if !ok && s.currency != "" {
		return s.currency, nil
	}
	if !ok {
		return "", mappingError(schema.ReasonBadCurrency, "there is nothing at %s", r.currency.path)
	}
	text, ok := v.Text()
	if !ok {
		return "", mappingError(schema.ReasonBadCurrency, "what stands at %s is not a string", r.currency.path)
	}
	code, err := schema.NormalizeCurrency(text)
	if err != nil {
		return "", mappingError(schema.ReasonBadCurrency, "%s: not a currency code", r.currency.path)
	}
	return code, nil
}

// readAmount returns the amount in minor units, less what the rule takes off.
func (s *Source) readAmount(r *postingRule, root *schema.Value, currency string) (int64, error) {
	path := r.amounts[0]
	for _, p := range r.amounts {
		if _, ok := present(root, p); ok {
			path = p
			break
		}
	}
	amount, err := s.readMoney(path, r.major, root, currency)
	if err != nil || r.less.IsZero() {
		return amount, err
	}
	less, err := s.readMoney(r.less, r.major, root, currency)
	if err != nil {
		return 0, err
	}
	return amount - less, nil
}

func (s *Source) readMoney(path schema.Path, major bool, root *schema.Value, currency string) (int64, error) {
	v, ok := present(root, path)
	if !ok {
		return 0, mappingError(schema.ReasonBadAmount, "there is nothing at %s", path)
	}
	text, ok := v.Literal()
	if !ok || v.Kind() == schema.KindBool {
		return 0, mappingError(schema.ReasonBadAmount, "what stands at %s is not a number", path)
	}
	shift, ok := s.shift(currency, major)
	if !ok {
		return 0, mappingError(schema.ReasonBadCurrency, "it is not known with how many decimals %s writes %s", s.def.Name, currency)
	}
	amount, err := schema.ParseAmount(text, shift)
	switch {
	case errors.Is(err, schema.ErrAmountRange):
		return 0, mappingError(schema.ReasonAmountRange, "%s: beyond the largest amount", path)
	case errors.Is(err, schema.ErrAmountInexact):
		return 0, mappingError(schema.ReasonBadAmount, "%s: not a whole number of minor units of %s", path, currency)
	case err != nil:
		return 0, mappingError(schema.ReasonBadAmount, "%s: not a decimal number", path)
	}
	return amount, nil
}

// readMovement returns the name of the movement. Colons within several parts are
// escaped, so that no two lists of parts make one name.
func (r *postingRule) readMovement(root *schema.Value, ev *schema.Event) (string, error) {
	if len(r.movement) == 0 {
		return ev.ID, nil
	}
	paths := r.movement
	if _, ok := present(root, r.movementIf); ok && !r.movementIf.IsZero() {
		paths = append(slices.Clone(paths), r.movementIf)
	}
	parts := make([]string, len(paths))
	for i, path := range paths {
		part, err := readName(root, path, schema.ReasonBadMovement)
		if err != nil {
			return "", err
		}
		if len(paths) > 1 {
			part = colonEscaper.Replace(part)
		}
		parts[i] = part
	}
	return strings.Join(parts, ":"), nil
}

var colonEscaper = strings.NewReplacer(`\`, `\\`, `:`, `\:`)

// apply gives an amount its sign. A negative amount has a meaning only where the
// direction is signed: elsewhere it would turn a credit into a debit.
func (d *direction) apply(amount int64, root *schema.Value) (int64, error) {
	always := d.always
	if !d.path.IsZero() {
		v, ok := present(root, d.path)
		if !ok {
			return 0, mappingError(schema.ReasonBadDirection, "there is nothing at %s", d.path)
		}
		text, ok := v.Literal()
		switch {
		case ok && slices.Contains(d.credit, text):
			always = Credit
		case ok && slices.Contains(d.debit, text):
			always = Debit
		default:
			return 0, mappingError(schema.ReasonBadDirection, "what stands at %s is in neither list", d.path)
		}
	}
	switch {
	case always == Signed:
		return amount, nil
	case amount < 0:
		return 0, mappingError(schema.ReasonBadAmount, "the amount is negative and the direction is %s", always)
	case always == Debit:
		return -amount, nil
	}
	return amount, nil
}

// readAccount returns what the first path leads to that leads to anything. A value of
// the wrong kind is an error, not a reason to look further.
func readAccount(root *schema.Value, paths []schema.Path) (string, schema.Path, error) {
	for _, path := range paths {
		v, ok := present(root, path)
		if !ok {
			continue
		}
		if text, ok := v.Text(); ok && text == "" {
			continue
		}
		name, err := readName(root, path, schema.ReasonBadAccount)
		return name, path, err
	}
	return "", schema.Path{}, mappingError(schema.ReasonMissingAccount, "there is nothing at %v", paths)
}

// readName returns the text of a string or of a whole number.
func readName(root *schema.Value, path schema.Path, reason string) (string, error) {
	v, ok := present(root, path)
	if !ok {
		return "", mappingError(reason, "there is nothing at %s", path)
	}
	if text, ok := v.Text(); ok {
		return text, nil
	}
	if text, ok := v.Number(); ok && isWhole(text) {
		return text, nil
	}
	return "", mappingError(reason, "what stands at %s is neither a string nor a whole number", path)
}

// isWhole tells whether the literal of a number is digits alone: 1.0 and 1e0 would be
// a second name of 1.
func isWhole(literal string) bool {
	for i := range len(literal) {
		if literal[i] < '0' || literal[i] > '9' {
			return false
		}
	}
	return true
}

func (r *statusRule) read(ev *schema.Event, root *schema.Value) (*schema.Status, error) {
	object, err := readName(root, r.object, schema.ReasonBadStatus)
	if err != nil {
		return nil, err
	}
	status := r.status.constant
	if status == "" {
		if status, err = readName(root, r.status.path, schema.ReasonBadStatus); err != nil {
			return nil, err
		}
	}
	rank, ok := r.ranks[status]
	if !ok {
		rank = r.rank
	}
	return &schema.Status{Object: object, Status: status, Rank: rank, OccurredAt: ev.OccurredAt}, nil
}

func unsignedError(paths []string) *schema.MappingError {
	return mappingError(schema.ReasonUnauthenticated, "the signature does not cover %s; look the amount up at the provider, or set trust: body", strings.Join(paths, ", "))
}

func mappingError(reason, format string, args ...any) *schema.MappingError {
	return &schema.MappingError{Reason: reason, Detail: fmt.Sprintf(format, args...)}
}
