package source

import (
	"errors"
	"fmt"
	"slices"

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
	root, err := s.read(ev.Body)
	if err != nil {
		return schema.Meaning{}, &schema.MappingError{Reason: schema.ReasonBodyUnreadable, Detail: err.Error()}
	}
	if counts, err := s.counts(root); err != nil || !counts {
		return schema.Meaning{}, err
	}
	var m schema.Meaning
	for _, r := range postings {
		if !holds(root, r.when) {
			continue
		}
		posting, moves, err := s.posting(r, ev, root)
		if err != nil {
			return schema.Meaning{}, err
		}
		if moves {
			m.Postings = append(m.Postings, posting)
		}
	}
	for _, r := range statuses {
		if !holds(root, r.when) {
			continue
		}
		status, err := r.read(ev, root)
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

// counts tells whether livemode lets the event through.
func (s *Source) counts(root *schema.Value) (bool, error) {
	if s.live == liveAny {
		return true, nil
	}
	v, ok := root.At(s.livePath)
	if !ok || v.Kind() != schema.KindBool {
		return false, mappingError(schema.ReasonBodyUnreadable, "there is no true or false at %s, and livemode is %s", s.livePath, s.live)
	}
	text, _ := v.Literal()
	return (text == "true") == (s.live == liveOnly), nil
}

func holds(root *schema.Value, when []condition) bool {
	for _, c := range when {
		v, ok := present(root, c.path)
		if !ok {
			return false
		}
		text, ok := v.Literal()
		if !ok || !slices.Contains(c.is, text) {
			return false
		}
	}
	return true
}

// posting applies a rule. It returns false for an amount of zero.
func (s *Source) posting(r *postingRule, ev *schema.Event, root *schema.Value) (schema.Posting, bool, error) {
	currency, err := r.readCurrency(root)
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
	account, err := readAccount(root, r.accounts)
	if err != nil {
		return schema.Posting{}, false, err
	}
	movement := ev.ID
	if !r.movement.IsZero() {
		if movement, err = readName(root, r.movement, schema.ReasonBadMovement); err != nil {
			return schema.Posting{}, false, err
		}
	}
	return schema.Posting{
		Account: account, Contra: r.contra,
		Amount: amount, Currency: currency,
		Rule: r.ruleKey(ev.Type), Movement: movement,
	}, true, nil
}

func (r *postingRule) readCurrency(root *schema.Value) (string, error) {
	if r.currency.constant != "" {
		return r.currency.constant, nil
	}
	v, ok := present(root, r.currency.path)
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

func (s *Source) readAmount(r *postingRule, root *schema.Value, currency string) (int64, error) {
	v, ok := present(root, r.amount)
	if !ok {
		return 0, mappingError(schema.ReasonBadAmount, "there is nothing at %s", r.amount)
	}
	text, ok := v.Literal()
	if !ok || v.Kind() == schema.KindBool {
		return 0, mappingError(schema.ReasonBadAmount, "what stands at %s is not a number", r.amount)
	}
	exponent := 0
	if r.major {
		if exponent, ok = s.exponent(currency); !ok {
			return 0, mappingError(schema.ReasonBadCurrency, "the decimals of %s are not known", currency)
		}
	}
	amount, err := schema.ParseAmount(text, exponent)
	switch {
	case errors.Is(err, schema.ErrAmountRange):
		return 0, mappingError(schema.ReasonAmountRange, "%s: beyond the largest amount", r.amount)
	case errors.Is(err, schema.ErrAmountInexact):
		return 0, mappingError(schema.ReasonBadAmount, "%s: not a whole number of minor units of %s", r.amount, currency)
	case err != nil:
		return 0, mappingError(schema.ReasonBadAmount, "%s: not a decimal number", r.amount)
	}
	return amount, nil
}

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
func readAccount(root *schema.Value, paths []schema.Path) (string, error) {
	for _, path := range paths {
		v, ok := present(root, path)
		if !ok {
			continue
		}
		if text, ok := v.Text(); ok && text == "" {
			continue
		}
		return readName(root, path, schema.ReasonBadAccount)
	}
	return "", mappingError(schema.ReasonMissingAccount, "there is nothing at %v", paths)
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

func mappingError(reason, format string, args ...any) *schema.MappingError {
	return &schema.MappingError{Reason: reason, Detail: fmt.Sprintf(format, args...)}
}
