package signature

import (
	"bytes"
	"errors"
	"time"
)

// Steps of an Explanation, in their order.
const (
	StepRead  = "read"  // the headers or fields of the signature
	StepKey   = "key"   // a key that is valid, or fetched
	StepMatch = "match" // a signature that the key made over these bytes
	StepTime  = "time"  // the time of signing
)

// Explanation says how far a delivery came. It holds nothing of what would have matched.
type Explanation struct {
	// Failed is the step that failed; empty if none did.
	Failed string
	// Reason and Detail are those of the rejection.
	Reason Reason
	Detail string
	// KeyID is the ID of the key that matched, Scheme the scheme that held, also where
	// the time of signing then did not.
	KeyID  string
	Scheme string
	// SignedAt is the time of signing, zero if there is none or it could not be read.
	SignedAt time.Time
	// Hints are what was tried and would have matched, as sentences.
	Hints []string
}

// Explain verifies r as Verify does, counts nothing, and says which step failed. Where no
// signature matches it tries what usually happens to bodies and secrets on their way.
func (v *Verifier) Explain(r Request) Explanation {
	if c, ok := v.scheme.(challenging); ok && r.Method == "GET" {
		_, err := v.answer(c, r)
		return explained(err)
	}
	k, signedAt, err := v.matching(r)
	e := explained(err)
	if err == nil {
		e.KeyID, e.Scheme, e.SignedAt = k.id, k.lock.scheme(), signedAt
		if late := v.checkTime(signedAt, r.At); late != nil {
			e.Failed, e.Reason, e.Detail = StepTime, reasonIn(late), detailIn(late)
			e.Hints = append(e.Hints, "the secret is right; look at clocks, at queues before the receiver, and at signature.tolerance")
		}
		return e
	}
	if e.Failed == StepMatch || e.Reason == NoSecret {
		e.Hints = v.hints(r)
	}
	return e
}

func explained(err error) Explanation {
	e := Explanation{Reason: reasonIn(err), Detail: detailIn(err)}
	switch e.Reason {
	case "":
		if err != nil {
			e.Failed = StepKey // not available
		}
	case NoSecret, UnknownKey:
		e.Failed = StepKey
	case NoMatch:
		e.Failed = StepMatch
	case Stale, Future:
		e.Failed = StepTime
	default:
		e.Failed = StepRead
	}
	return e
}

func reasonIn(err error) Reason {
	var r *Rejection
	if errors.As(err, &r) {
		return r.Reason
	}
	return ""
}

func detailIn(err error) string {
	var r *Rejection
	switch {
	case errors.As(err, &r):
		return r.Detail
	case err != nil:
		return err.Error()
	}
	return ""
}

// hints tries other bodies, other times and other forms of the secrets.
func (v *Verifier) hints(r Request) []string {
	var out []string
	for _, change := range bodyChanges {
		for _, body := range change.make(r.Body) {
			if bytes.Equal(body, r.Body) {
				continue
			}
			other := r
			other.Body = body
			if _, _, err := v.matching(other); err == nil {
				out = append(out, change.hint)
				break
			}
		}
	}
	claims, err := v.scheme.read(r)
	if err != nil || len(claims) == 0 {
		return out
	}
	for _, k := range v.keys.current() {
		if !k.validAt(r.At) && allMatch(k.lock, claims) {
			out = append(out, "the secret "+k.id+" matches and is not valid at this time: see its not_before and not_after")
		}
		if l, ok := k.lock.(*hmacLock); ok {
			trimmed, err := newHMACLock(l.name, l.version, l.newHash, bytes.TrimSpace(l.key))
			if err == nil && len(trimmed.key) != len(l.key) && allMatch(trimmed, claims) {
				out = append(out, "the secret "+k.id+" matches without the white space at its ends: configure it without")
			}
		}
	}
	return out
}

func allMatch(l lock, claims []claim) bool {
	for i := range claims {
		if !l.matches(&claims[i]) {
			return false
		}
	}
	return true
}
