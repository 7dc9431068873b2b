package signature

import (
	"errors"
	"fmt"
)

// Reason is a stable word for why a delivery is not believed.
type Reason string

// Reasons of a Rejection.
const (
	// MissingHeader: a header of the scheme is not there, or empty.
	MissingHeader Reason = "missing_header"
	// DuplicateHeader: a header of the scheme is there twice; two readers would differ.
	DuplicateHeader Reason = "duplicate_header"
	// Malformed: a header of the scheme cannot be read.
	Malformed Reason = "malformed"
	// UnknownVersion: there are signatures, none in a version the scheme accepts.
	UnknownVersion Reason = "unknown_version"
	// NoMatch: no signature matches any secret that is valid now.
	NoMatch Reason = "no_match"
	// NoSecret: no secret is valid now; not_before and not_after leave a gap.
	NoSecret Reason = "no_valid_secret"
	// UnknownKey: the provider has no key of the name that the delivery gives, or it is
	// not one to be believed.
	UnknownKey Reason = "unknown_key"
	// Address: the sender's address is not among those of the provider.
	Address Reason = "address"
	// Stale and Future: the signature is right and its time is not.
	Stale  Reason = "stale"
	Future Reason = "future"
)

// ErrUnavailable says that a key of the provider could not be fetched, so nothing is known
// of the signature.
var ErrUnavailable = errors.New("key of the provider is not available")

// Rejection says why a delivery is not believed.
type Rejection struct {
	Reason Reason
	// Detail is for the log: names of headers, counts and ages; never a signature, a
	// secret or what was expected.
	Detail string
}

// Error returns reason and detail.
func (r *Rejection) Error() string {
	return "verify signature: " + string(r.Reason) + ": " + r.Detail
}

func reject(reason Reason, format string, args ...any) *Rejection {
	return &Rejection{Reason: reason, Detail: fmt.Sprintf(format, args...)}
}
