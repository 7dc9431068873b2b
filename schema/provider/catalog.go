package provider

import (
	"fmt"
	"slices"
	"strings"

	"hookledger/schema/source"
)

// Effect is what one rule does with events of one type.
type Effect struct {
	// Type is empty for a rule that is for all types.
	Type string
	// Does is credit, debit, credit or debit (a field or the sign decides), quarantine (it
	// cannot be told how much), status, or ignored.
	Does string
	// Rule, Unit, Amount and Movement are those of a rule that moves money.
	Rule     string
	Unit     string
	Amount   string
	Movement string
	// When are the further conditions, or why the type is ignored.
	When string
}

// Words of Effect.Does.
const (
	DoesStatus     = "status"
	DoesIgnored    = "ignored"
	DoesQuarantine = "quarantine"
	doesEither     = "credit or debit"
)

// Effects lists what the events of a source mean: the provider's own rules, then those of
// the configuration. Types that are not listed are ignored. It fails where the provider is
// not known.
func Effects(c source.Config) ([]Effect, error) {
	d, err := Definition(c.Provider)
	if err != nil {
		return nil, fmt.Errorf("provider %w", err)
	}
	var out []Effect
	for _, r := range slices.Concat(d.Postings, c.Postings) {
		for _, t := range typesOf(r.Type) {
			if r.Unclear != "" {
				out = append(out, Effect{Type: t, Does: DoesQuarantine, When: strings.TrimPrefix(conditions(r.When)+": "+r.Unclear, ": ")})
				continue
			}
			if unsigned := d.Unsigned(r); len(unsigned) > 0 && c.Trust != source.TrustBody {
				out = append(out, Effect{Type: t, Does: DoesQuarantine, When: strings.TrimPrefix(conditions(r.When)+": ", ": ") + "not signed: " + strings.Join(unsigned, ", ") + "; see trust"})
				continue
			}
			e := Effect{Type: t, Does: does(r.Direction), Rule: r.Key, Unit: r.Unit, When: conditions(r.When)}
			if e.Rule == "" {
				e.Rule = t
			}
			e.Amount = r.Amount
			if r.Less != "" {
				e.Amount += " less " + r.Less
			}
			e.Movement = strings.Join(append([]string{r.Movement}, r.MovementAnd...), ":")
			if r.MovementIf != "" {
				e.Movement += ":" + r.MovementIf + " if there"
			}
			if e.Movement == "" {
				e.Movement = "event ID"
			}
			out = append(out, e)
		}
	}
	for _, r := range slices.Concat(c.Statuses, d.Statuses) {
		for _, t := range typesOf(r.Type) {
			out = append(out, Effect{Type: t, Does: DoesStatus, When: conditions(r.When)})
		}
	}
	for _, note := range d.Ignored {
		for _, t := range note.Types {
			out = append(out, Effect{Type: t, Does: DoesIgnored, When: note.Why})
		}
	}
	return out, nil
}

func typesOf(types []string) []string {
	if len(types) == 0 {
		return []string{""}
	}
	return types
}

func does(d source.Direction) string {
	switch {
	case d.Path != "" && len(d.Debit) == 0:
		return source.Credit
	case d.Path != "" && len(d.Credit) == 0:
		return source.Debit
	case d.Path != "", d.Always == source.Signed:
		return doesEither
	}
	return d.Always
}

// conditions writes conditions as a sentence would.
func conditions(when []source.ConditionConfig) string {
	var parts []string
	for _, c := range when {
		switch {
		case c.Present:
			parts = append(parts, c.Path+" is there")
		case c.Absent:
			parts = append(parts, c.Path+" is missing")
		case c.Blank:
			parts = append(parts, c.Path+" is missing or empty")
		case len(c.Not) > 0:
			parts = append(parts, c.Path+" is not "+strings.Join(c.Not, " or "))
		default:
			parts = append(parts, c.Path+" is "+strings.Join(c.Is, " or "))
		}
	}
	return strings.Join(parts, ", ")
}

// Summary is a provider in one row.
type Summary struct {
	Name string
	// Signature says header, algorithm and signed text; BodyAuthenticated that the whole
	// body is covered.
	Signature         string
	BodyAuthenticated bool
	// EventID says where the ID is; Answer what counts as success.
	EventID string
	Answer  string
	// Unit is minor or major, empty where the configuration says it or nothing moves.
	Unit string
	// Credits and Debits are the types that move money. Unsigned would, but their money is not
	// signed: quarantine, unless the body is trusted. Unclear go to quarantine always.
	// NonEffect says why none moves money.
	Credits, Debits, Unsigned, Unclear []string
	NonEffect                          string
	// Livemode says where events tell live from test, empty if they do not.
	Livemode string
	// Configured says that meaning is left to the configuration.
	Configured bool
}

// Summaries returns all providers, sorted by name.
func Summaries() []Summary {
	var out []Summary
	for _, name := range Names() {
		d := definitions[name]
		s := Summary{
			Name: name, Signature: signatureText(&d.Signature), BodyAuthenticated: d.Signature.BodyAuthenticated,
			EventID: locatorText(d.Event.ID), Answer: answerText(d), NonEffect: d.NonEffect,
			Configured: d.Postings == nil && d.Statuses == nil && d.NonEffect == "",
		}
		if d.ID != nil {
			s.EventID = "made of several fields"
		}
		s.Livemode = livemodeText(&d.Live)
		for _, r := range d.Postings {
			if r.Unclear != "" {
				s.Unclear = append(s.Unclear, typesOf(r.Type)...)
				continue
			}
			s.Unit = r.Unit
			if len(d.Unsigned(r)) > 0 {
				s.Unsigned = append(s.Unsigned, typesOf(r.Type)...)
				continue
			}
			if word := does(r.Direction); word != source.Debit {
				s.Credits = append(s.Credits, typesOf(r.Type)...)
			}
			if word := does(r.Direction); word != source.Credit {
				s.Debits = append(s.Debits, typesOf(r.Type)...)
			}
		}
		s.Credits, s.Debits, s.Unsigned = unique(s.Credits), unique(s.Debits), unique(s.Unsigned)
		// A type that moves money in other cases is not one that never does.
		moves := func(t string) bool { return slices.Contains(slices.Concat(s.Credits, s.Debits, s.Unsigned), t) }
		s.Unclear = slices.DeleteFunc(unique(s.Unclear), moves)
		out = append(out, s)
	}
	return out
}

func unique(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}

func signatureText(sig *source.Signature) string {
	switch {
	case sig.Scheme == source.SchemeHMAC && sig.Header == "":
		return "HMAC as configured"
	case sig.Scheme == source.SchemeHMAC:
		return fmt.Sprintf("`%s`: %s, %s, over `%s`", sig.Header, strings.ToUpper(sig.Algorithm), sig.Encoding, sig.Template)
	case sig.Header != "":
		return fmt.Sprintf("`%s`: %s", sig.Header, sig.Scheme)
	}
	return sig.Scheme
}

func locatorText(l source.Locator) string {
	parts := []string{}
	switch {
	case l.Path != "":
		parts = append(parts, "`"+l.Path+"`")
	case l.Header != "":
		parts = append(parts, "header `"+l.Header+"`")
	case l.Query != "":
		parts = append(parts, "parameter `"+l.Query+"`")
	case len(l.Join) > 0:
		parts = append(parts, "`"+strings.Join(l.Join, "` + `")+"`")
	case len(l.Derive) > 0:
		parts = append(parts, "hash of `"+strings.Join(l.Derive, "`, `")+"`")
	default:
		return "as configured"
	}
	for _, or := range l.Or {
		parts = append(parts, locatorText(or))
	}
	text := strings.Join(parts, " or ")
	if l.PerDelivery {
		text += " + delivery"
	}
	return text
}

func livemodeText(f *source.LiveFlag) string {
	switch {
	case f.IsZero():
		return ""
	case f.Header != "":
		return "header `" + f.Header + "`"
	case f.Delivery != "":
		return "`" + f.Delivery + "`"
	}
	return "`" + strings.Join(f.Paths, "` or `") + "`"
}

func answerText(d *source.Definition) string {
	status := d.Success.Status
	if status == 0 {
		status = 200
	}
	text := fmt.Sprint(status)
	if d.Success.Body != "" {
		text += " `" + d.Success.Body + "`"
	}
	if d.Answer != nil {
		text += ", made of the event"
	}
	if d.Deadline > 0 {
		text += fmt.Sprintf(" in %g s", d.Deadline.Seconds())
	}
	return text
}

// Markdown is the table of providers in the README.
func Markdown() string {
	var b strings.Builder
	b.WriteString("| provider | signature | whole body signed | event ID | amounts | credits | debits | quarantine | live or test | answer |\n")
	b.WriteString("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, s := range Summaries() {
		signed := "yes"
		if !s.BodyAuthenticated {
			signed = "**no**"
		}
		credits, debits, held, unit := code(s.Credits), code(s.Debits), code(s.Unclear), s.Unit
		if len(s.Unsigned) > 0 {
			held = code(s.Unsigned) + " unless `trust: body`"
			if len(s.Unclear) > 0 {
				held += "; " + code(s.Unclear)
			}
		}
		live := s.Livemode
		if live == "" {
			live = "not told"
		}
		switch {
		case s.Configured:
			credits, debits, held, unit = "as configured", "as configured", "as configured", "as configured"
		case s.NonEffect != "":
			credits, debits, held, unit = "none: "+s.NonEffect, "none", "none", "none"
		}
		cells := []string{s.Name, s.Signature, signed, s.EventID, unit, credits, debits, held, live, s.Answer}
		for i, cell := range cells {
			cells[i] = strings.ReplaceAll(cell, "|", `\|`)
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	return b.String()
}

func code(words []string) string {
	if len(words) == 0 {
		return "none"
	}
	return "`" + strings.Join(words, "` `") + "`"
}
