package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"hookledger/schema"
)

// Fact is what a composed delivery shall tell: one posting.
type Fact struct {
	EventID string
	// Movement names the movement of money. Empty: the event ID, with mv_ before it.
	Movement string
	Account  string
	// Amount is in minor units of Currency; negative debits.
	Amount     int64
	Currency   string
	OccurredAt time.Time
	// Live is the flag of providers that mark live events.
	Live bool
}

// Compose returns a delivery, not yet signed, that Identify and Map of this source
// read as fact: for trying a source out. It fails if no rule of the source can say
// that, such as a debit where all rules credit. Where the ID of an event is derived,
// fact.EventID goes into the fields it is derived from.
func (s *Source) Compose(fact Fact) (Delivery, error) {
	r, err := s.ruleFor(fact)
	if err != nil {
		return Delivery{}, err
	}
	if s.def.NumericIDs {
		fact.EventID = digits(fact.EventID)
		fact.Movement = fact.EventID
	}
	d := draft{fields: map[string]any{}}
	for _, c := range r.when {
		switch {
		case len(c.is) > 0:
			d.set(c.path, c.is[0])
		case c.present:
			d.set(c.path, map[string]any{})
		}
	}
	if !s.event.time.path.IsZero() && !fact.OccurredAt.IsZero() {
		d.set(s.event.time.path, s.writeTime(fact.OccurredAt))
	}
	header, query := http.Header{}, ""
	header.Set("Content-Type", mediaJSON)
	s.def.Live.compose(&d, header, fact.Live)
	if len(r.types) > 0 {
		switch typ := s.event.typ; {
		case s.def.ComposeType != nil:
			query = s.def.ComposeType(func(path string, value any) { d.set(schema.MustPath(path), value) }, r.types[0], fact.EventID)
		case typ.header != "":
			header.Set(typ.header, r.types[0])
		case typ.query != "":
			query = url.Values{typ.query: {r.types[0]}}.Encode()
		case !typ.path.IsZero():
			d.set(typ.path, r.types[0])
		}
	}
	amount := fact.Amount
	if !r.direction.path.IsZero() {
		words := r.direction.credit
		if amount < 0 {
			words = r.direction.debit
		}
		d.set(r.direction.path, words[0])
	}
	if amount < 0 && r.direction.always != Signed {
		amount = -amount
	}
	if r.currency.constant == "" {
		d.set(r.currency.path, strings.ToLower(fact.Currency))
	}
	if err := s.setAmount(&d, r, amount, fact.Currency); err != nil {
		return Delivery{}, err
	}
	d.set(r.accounts[0], fact.Account)
	for i, path := range r.movement {
		movement := fact.Movement
		if movement == "" {
			movement = "mv_" + fact.EventID
		}
		if i > 0 {
			d.setMissing(path, movement)
			continue
		}
		d.set(path, movement)
	}
	switch id := s.event.id; {
	case id.header != "":
		header.Set(id.header, fact.EventID)
	case len(id.derive) > 0 || len(id.join) > 0:
		for _, path := range slices.Concat(id.derive, id.join) {
			d.setMissing(path, fact.EventID)
		}
	case !id.path.IsZero():
		d.set(id.path, fact.EventID)
	}
	if item, ok := d.fields[itemField]; ok && !r.each.IsZero() {
		delete(d.fields, itemField)
		d.set(r.each, []any{item})
	}
	if d.err != nil {
		return Delivery{}, fmt.Errorf("compose delivery for source %s: %w", s.name, d.err)
	}
	body, err := s.encode(d.fields, fact.Live)
	if err != nil {
		return Delivery{}, fmt.Errorf("compose delivery for source %s: %w", s.name, err)
	}
	if s.event.format == BodyForm {
		header.Set("Content-Type", mediaForm)
	}
	return Delivery{Header: header, Query: query, Body: body}, nil
}

// digits makes a number of an ID, the same one each time.
func digits(id string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))
	return strconv.FormatUint(h.Sum64()>>1, 10)
}

// ruleFor returns the first rule that can say fact.
func (s *Source) ruleFor(fact Fact) (*postingRule, error) {
	for i := range s.postings {
		r := &s.postings[i]
		able := r.direction.always == Signed ||
			r.direction.always == Credit && fact.Amount > 0 ||
			r.direction.always == Debit && fact.Amount < 0 ||
			fact.Amount > 0 && len(r.direction.credit) > 0 ||
			fact.Amount < 0 && len(r.direction.debit) > 0
		if able && (r.currency.constant == "" || r.currency.constant == strings.ToUpper(fact.Currency)) {
			return r, nil
		}
	}
	return nil, fmt.Errorf("compose delivery for source %s: no posting rule says %d %s", s.name, fact.Amount, fact.Currency)
}

func (s *Source) setAmount(d *draft, r *postingRule, amount int64, currency string) error {
	code, err := schema.NormalizeCurrency(currency)
	if err != nil {
		return fmt.Errorf("compose delivery for source %s: %w", s.name, err)
	}
	shift, ok := s.shift(code, r.major)
	if !ok {
		return fmt.Errorf("compose delivery for source %s: the decimals of %s are not known", s.name, code)
	}
	if !r.less.IsZero() {
		d.set(r.less, 0)
	}
	switch text := decimalText(amount, shift); {
	case r.major:
		d.set(r.amounts[0], text)
	default:
		d.set(r.amounts[0], json.Number(text))
	}
	return nil
}

// decimalText writes amount × 10^-shift.
func decimalText(amount int64, shift int) string {
	sign, digits := "", strconv.FormatInt(amount, 10)
	if amount < 0 {
		sign, digits = "-", digits[1:]
	}
	if shift > 0 {
		digits = strings.Repeat("0", max(0, shift+1-len(digits))) + digits
		digits = digits[:len(digits)-shift] + "." + digits[len(digits)-shift:]
	}
	return sign + digits + strings.Repeat("0", max(0, -shift))
}

func (s *Source) writeTime(t time.Time) any {
	switch {
	case s.event.timeFormat == FormatUnix, s.event.timeFormat == "" && s.def.builtin():
		return t.Unix()
	case s.event.timeFormat == FormatUnixMS:
		return t.UnixMilli()
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// encode writes the fields as the source's bodies are written.
func (s *Source) encode(fields map[string]any, live bool) ([]byte, error) {
	if s.def.Write != nil {
		return s.def.Write(fields)
	}
	if s.event.format == BodyForm {
		form := url.Values{}
		for name, v := range fields {
			if _, nested := v.(map[string]any); nested {
				return nil, errors.New("a form has no nested fields")
			}
			form.Set(name, fmt.Sprint(v))
		}
		return []byte(form.Encode()), nil
	}
	var root any = fields
	if s.event.batch {
		d := draft{fields: map[string]any{}}
		d.set(s.event.items, []any{fields})
		if flag := &s.def.Live; flag.Delivery != "" {
			d.set(schema.MustPath(flag.Delivery), flag.word(live))
		}
		root = d.fields
	}
	return json.Marshal(root)
}

// draft is a JSON object under construction.
type draft struct {
	fields map[string]any
	err    error
}

func (d *draft) setMissing(path schema.Path, value any) {
	at := d.fields
	steps := path.Steps()
	for _, step := range steps[:len(steps)-1] {
		next, ok := at[step].(map[string]any)
		if !ok {
			d.set(path, value)
			return
		}
		at = next
	}
	if _, there := at[steps[len(steps)-1]]; !there {
		d.set(path, value)
	}
}

// set writes value at path. Indexes of arrays are written as keys, which paths read
// the same way.
func (d *draft) set(path schema.Path, value any) {
	at := d.fields
	steps := path.Steps()
	for i, step := range steps[:len(steps)-1] {
		next, ok := at[step]
		if !ok {
			next = map[string]any{}
			at[step] = next
		}
		if at, ok = next.(map[string]any); !ok {
			d.err = fmt.Errorf("path %s leads through a value at %s", path, strings.Join(slices.Clone(steps[:i+1]), "."))
			return
		}
	}
	at[steps[len(steps)-1]] = value
}
