package source

import "fmt"

// PostingConfig is a rule that makes at most one posting of an event, or, with Each, of
// each item of a list in it.
type PostingConfig struct {
	// Key is the immutable key of the rule. Empty: the event's type. Two event types
	// that tell of one movement carry the same key.
	Key string `yaml:"key,omitempty"`
	// Type lists the event types the rule is for, compared exactly. Empty: all; then
	// Key is needed.
	Type []string `yaml:"type,omitempty"`
	// When lists further conditions; all must hold.
	When []ConditionConfig `yaml:"when,omitempty"`
	// Each is the path of a list: the rule is read once for each of its items, whose
	// fields are then under item, such as item.amount. A list that is missing is empty.
	Each string `yaml:"each,omitempty"`
	// Account overrides the source's.
	Account []string `yaml:"account,omitempty"`
	// Amount is the path of a number or of a decimal number in a string. An amount of
	// zero makes no posting.
	Amount string `yaml:"amount"`
	// AmountElse is read where there is nothing at Amount.
	AmountElse string `yaml:"amount_else,omitempty"`
	// Less is the path of a number in the same unit that is taken off the amount. So a
	// total that grows, with the total before it, tells of one movement. Missing: the
	// movement is not known, and the event goes to quarantine.
	Less string `yaml:"less,omitempty"`
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
	// MovementAnd are further paths whose values are part of that name, joined by colons.
	// All must be there.
	MovementAnd []string `yaml:"movement_and,omitempty"`
	// MovementIf is a further path whose value, if it is there, is the last part of that name.
	// It is for built-in rules.
	MovementIf string `yaml:"-"`
	// Unclear says why the movement cannot be told from the event, which then goes to
	// quarantine. The keys about money are left out. It is for built-in rules.
	Unclear string `yaml:"-"`
	// Contra names the other side. Empty: external: and the source's key.
	Contra string `yaml:"contra,omitempty"`
}

// ConditionConfig is about the value at Path; exactly one of the others is set. Numbers
// and booleans are compared as they are written in the event. What is null counts as
// missing.
type ConditionConfig struct {
	Path string `yaml:"path"`
	// Is lists the values for which the condition holds, Not those for which it does
	// not. Where there is nothing at Path, Is does not hold and Not does.
	Is  []string `yaml:"is,omitempty"`
	Not []string `yaml:"not,omitempty"`
	// Present holds if there is something at Path, Absent if there is nothing, Blank if there
	// is nothing or an empty text.
	Present bool `yaml:"present,omitempty"`
	Absent  bool `yaml:"absent,omitempty"`
	Blank   bool `yaml:"blank,omitempty"`
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
