package schema

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// MaxAccountBytes is the longest account ID accepted, in bytes.
const MaxAccountBytes = 255

// ExternalPrefix begins the names of what is not an account of ours, such as
// external:stripe. Nobody has an account of such a name, whatever an event says.
const ExternalPrefix = "external:"

// ErrUnknownSource says that an event's source is not configured here. The event
// is good; a program with the right configuration can apply it.
var ErrUnknownSource = errors.New("source is not configured here")

// Meaning is what an event means. Without postings and status it means nothing
// to the ledger, and the event is ignored.
type Meaning struct {
	Postings []Posting
	Status   *Status
	// LatestWins says what happens when the event's ID arrives again with another
	// meaning. False, the default: the first one stands and the other is a
	// conflict. True (status events): the later status stands; money never moves.
	LatestWins bool
}

// Posting is one movement of money that an event tells of.
type Posting struct {
	// Account is the account of ours, Contra names the other side as text
	// (external:stripe).
	Account string
	Contra  string
	// Amount is in minor units of Currency: positive credits Account, negative
	// debits it. Never zero, never beyond MaxAmount.
	Amount   int64
	Currency string
	// Rule is the immutable key of the mapping rule that made the posting.
	Rule string
	// Movement names one movement of money, never an order or a cumulative object.
	Movement string
}

// Status is what a status event says of an object, such as a payment.
type Status struct {
	Object string
	Status string
	// Rank orders statuses that occurred at the same time.
	Rank       int
	OccurredAt time.Time
}

// MeaningHash identifies a meaning: two bodies with equal hashes say the same.
type MeaningHash [16]byte

// EffectKey is the identity of a money movement.
type EffectKey [16]byte

// Hash returns the identity of what m says. Policy is not part of it.
func (m *Meaning) Hash() MeaningHash {
	parts := make([]string, 0, 6*len(m.Postings)+6)
	parts = append(parts, strconv.Itoa(len(m.Postings)))
	for _, p := range m.Postings {
		parts = append(parts, p.Account, p.Contra, strconv.FormatInt(p.Amount, 10), p.Currency, p.Rule, p.Movement)
	}
	if s := m.Status; s != nil {
		parts = append(parts, "status", s.Object, s.Status, strconv.Itoa(s.Rank), formatTime(s.OccurredAt))
	}
	return MeaningHash(hash128(parts...))
}

// EffectKeys returns the effect key of each posting, in order: (source key, rule,
// movement, nth), where nth counts the postings of this meaning that share rule
// and movement, from 0.
func (m *Meaning) EffectKeys(source string) []EffectKey {
	keys := make([]EffectKey, len(m.Postings))
	for i, p := range m.Postings {
		nth := 0
		for _, q := range m.Postings[:i] {
			if q.Rule == p.Rule && q.Movement == p.Movement {
				nth++
			}
		}
		keys[i] = EffectKey(hash128("effect", source, p.Rule, p.Movement, strconv.Itoa(nth)))
	}
	return keys
}

// MappingError says that an event should mean something but cannot: its fields do
// not fit the mapping, or the mapping does not fit the event. The event goes to
// quarantine with Reason; after a fix it can be retried.
type MappingError struct {
	// Reason is a stable word, one of the Reason… constants.
	Reason string
	// Detail tells a person which field and why. It may name paths and literals of
	// numbers, never secrets.
	Detail string
}

// Reasons of a MappingError.
const (
	ReasonBodyUnreadable  = "body_unreadable"
	ReasonMissingAccount  = "missing_account"
	ReasonBadAccount      = "bad_account"
	ReasonBadAmount       = "bad_amount"
	ReasonAmountRange     = "amount_out_of_range"
	ReasonBadCurrency     = "bad_currency"
	ReasonBadMovement     = "bad_movement"
	ReasonBadDirection    = "bad_direction"
	ReasonBadStatus       = "bad_status"
	ReasonUnauthenticated = "unauthenticated_amount"
	// ReasonUnclear: money moved, and how much cannot be told from the event.
	ReasonUnclear = "unclear_movement"
)

// Error returns reason and detail.
func (e *MappingError) Error() string { return "map event: " + e.Reason + ": " + e.Detail }

// Check returns a *MappingError for the first posting or status that no ledger
// may hold. Mappings call it last, so that nothing unchecked reaches the ledger.
func (m *Meaning) Check() error {
	for i, p := range m.Postings {
		if err := p.check(); err != nil {
			err.Detail = fmt.Sprintf("posting %d (%s): %s", i, p.Rule, err.Detail)
			return err
		}
	}
	if s := m.Status; s != nil {
		if err := checkText(s.Object); err != nil {
			return &MappingError{ReasonBadStatus, "object: " + err.Error()}
		}
		if err := checkText(s.Status); err != nil {
			return &MappingError{ReasonBadStatus, "status: " + err.Error()}
		}
	}
	return nil
}

func (p *Posting) check() *MappingError {
	if err := checkText(p.Account); err != nil {
		return &MappingError{ReasonBadAccount, err.Error()}
	}
	if strings.HasPrefix(p.Account, ExternalPrefix) {
		return &MappingError{ReasonBadAccount, "it begins with " + ExternalPrefix + ", as names do that are not accounts here"}
	}
	if err := checkText(p.Contra); err != nil {
		return &MappingError{ReasonBadAccount, "contra: " + err.Error()}
	}
	if err := checkText(p.Rule); err != nil {
		return &MappingError{ReasonBadMovement, "rule: " + err.Error()}
	}
	if err := checkText(p.Movement); err != nil {
		return &MappingError{ReasonBadMovement, err.Error()}
	}
	if !isCurrency(p.Currency) {
		return &MappingError{ReasonBadCurrency, "currency is not in upper-case letters"}
	}
	if p.Amount == 0 {
		return &MappingError{ReasonBadAmount, "amount is zero"}
	}
	if p.Amount > MaxAmount || p.Amount < -MaxAmount {
		return &MappingError{ReasonAmountRange, fmt.Sprintf("%d is beyond ±%d", p.Amount, int64(MaxAmount))}
	}
	return nil
}

// checkText refuses what a column or a terminal could trip over.
func checkText(s string) error {
	switch {
	case s == "":
		return errors.New("is empty")
	case len(s) > MaxAccountBytes:
		return fmt.Errorf("has %d bytes, the most is %d", len(s), MaxAccountBytes)
	case !utf8.ValidString(s):
		return errors.New("is not UTF-8")
	}
	if strings.TrimSpace(s) == "" {
		return errors.New("is blank")
	}
	for _, r := range s {
		if unicode.IsControl(r) || r == utf8.RuneError {
			return fmt.Errorf("holds the character %U", r)
		}
	}
	return nil
}
