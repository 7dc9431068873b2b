package verify

import (
	"errors"
	"time"

	"hookledger/schema"
)

// UncheckedError says that a signature cannot be checked again, and why: the secret was
// rotated away, or the scheme leaves nothing to check. That is no finding.
type UncheckedError struct {
	// Why is one of few phrases; records are counted by it.
	Why string
}

// Error returns why.
func (e *UncheckedError) Error() string { return "signature not checked: " + e.Why }

// schemeImport is the scheme of events that an operator filled in, not a provider.
const schemeImport = "import"

// maxSuspects bounds how many signatures that do not hold are remembered of one key.
const maxSuspects = 10_000

// signatures is what came of checking them again.
type signatures struct {
	held      int64
	imported  finding
	unchecked map[string]*finding
	keys      map[keyUse]*keySpan
}

// keyUse is a secret as records name it.
type keyUse struct{ source, id, scheme string }

// keySpan is when a secret, as it is configured today, certainly was in use: between
// two records whose signatures it made. A signature that does not hold within is wrong.
// One before or after may have been made by another secret of the same name: secrets
// are replaced under their name, and a configuration may be older than the receivers'.
type keySpan struct {
	first, last time.Time
	suspects    []suspect
}

type suspect struct {
	at   time.Time
	id   string
	name string
}

// check checks the signature of one record's event.
func (s *signatures) check(e *schema.Event, check func(*schema.Event) error, name func() string) {
	if e.Scheme == schemeImport {
		s.imported.add(e.ID, name())
		return
	}
	if check == nil {
		return
	}
	err := check(e)
	var unchecked *UncheckedError
	if errors.As(err, &unchecked) {
		s.pass(unchecked.Why, e.ID, name())
		return
	}
	use := keyUse{e.Source, e.KeyID, e.Scheme}
	k := s.key(use)
	if err == nil {
		s.held++
		k.hold(e.ReceivedAt)
		return
	}
	if len(k.suspects) < maxSuspects {
		k.suspects = append(k.suspects, suspect{e.ReceivedAt, e.ID, name() + " (" + label(err.Error()) + ")"})
	} else {
		s.pass(whyTooMany, e.ID, name())
	}
}

const (
	whyReplaced = "made by no secret of today: the secret was replaced under its name, or its bytes were never signed"
	whyTooMany  = "too many signatures of one secret do not hold to tell each"
)

func (s *signatures) key(use keyUse) *keySpan {
	if s.keys == nil {
		s.keys = make(map[keyUse]*keySpan)
	}
	k := s.keys[use]
	if k == nil {
		k = &keySpan{}
		s.keys[use] = k
	}
	return k
}

func (s *signatures) pass(why, id, name string) { s.passed(why).add(id, name) }

func (s *signatures) passed(why string) *finding {
	if s.unchecked == nil {
		s.unchecked = make(map[string]*finding)
	}
	if s.unchecked[why] == nil {
		s.unchecked[why] = &finding{}
	}
	return s.unchecked[why]
}

func (k *keySpan) hold(at time.Time) {
	if k.first.IsZero() || at.Before(k.first) {
		k.first = at
	}
	if at.After(k.last) {
		k.last = at
	}
}

func (s *signatures) merge(o *signatures) {
	s.held += o.held
	s.imported.merge(o.imported)
	for why, f := range o.unchecked {
		s.passed(why).merge(*f)
	}
	for use, k := range o.keys {
		mine := s.key(use)
		if !k.first.IsZero() {
			mine.hold(k.first)
			mine.hold(k.last)
		}
		mine.suspects = append(mine.suspects, k.suspects...)
	}
}

// judge tells wrong signatures from those that nobody can check any more.
func (s *signatures) judge() (wrong finding) {
	for _, k := range s.keys {
		for _, one := range k.suspects {
			if !k.first.IsZero() && one.at.After(k.first.Add(clockSlack)) && one.at.Before(k.last.Add(-clockSlack)) {
				wrong.add(one.id, one.name)
			} else {
				s.pass(whyReplaced, one.id, one.name)
			}
		}
		k.suspects = nil
	}
	return wrong
}
