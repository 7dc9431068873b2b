package signature

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"hookledger/schema/source"
)

// scheme is one family of signatures. Its files know headers and texts; how bytes are
// compared and secrets are tried is the same for all, in verify.go and lock.go.
type scheme interface {
	// read returns what the headers claim, or a *Rejection.
	read(Request) (*claim, error)
	// lock returns what a secret can check, or why it cannot be a secret.
	lock(secret []byte) (lock, error)
	// headers are the canonical names of the headers that read uses.
	headers() []string
	// sign returns the headers of a message signed with key.
	sign(key *hmacLock, m Message) (http.Header, error)
	// snippet returns the lines of a shell that compute the same headers.
	snippet(key *hmacLock, m shellMessage) (shellSignature, error)
}

// claim is what a delivery says of itself, still to be checked.
type claim struct {
	// signatures are those in versions that the scheme accepts, decoded.
	signatures []signature
	// text is the signed text in pieces.
	text [][]byte
	// signedAt is the time of signing; zero if the scheme has none.
	signedAt time.Time
}

// signature is one decoded signature. version is empty where the scheme has one alone.
type signature struct {
	version string
	value   []byte
}

// maxSignatures bounds the work that one delivery can ask for. Providers send two
// during a rotation.
const maxSignatures = 32

func newScheme(sig source.Signature) (scheme, error) {
	switch sig.Scheme {
	case source.SchemeHMAC:
		return newHMACScheme(sig)
	case source.SchemeStripe:
		return stripeScheme{sig}, nil
	case source.SchemeStandardWebhooks:
		return standardScheme{sig}, nil
	}
	return nil, fmt.Errorf("signature scheme %q is not known", sig.Scheme)
}

// one returns the value of a header that must be there once. Optional white space
// around a field value is not part of it (RFC 9110, 5.5). Only printable ASCII is
// believed: the value will be a header of the record.
func one(h http.Header, name string) (string, error) {
	values := h[name]
	switch {
	case len(values) > 1:
		return "", reject(DuplicateHeader, "header %s is there %d times", name, len(values))
	case len(values) == 0:
		return "", reject(MissingHeader, "header %s is missing", name)
	}
	value := trimOWS(values[0])
	if value == "" {
		return "", reject(MissingHeader, "header %s is empty", name)
	}
	for i := range len(value) {
		if value[i] < 0x20 || value[i] > 0x7e {
			return "", reject(Malformed, "header %s holds bytes that are not printable ASCII", name)
		}
	}
	return value, nil
}

func trimOWS(s string) string { return strings.Trim(s, " \t") }

// readTime reads a time of signing. Digits alone are a number: no sign, no blank.
func readTime(name, text, format string) (time.Time, error) {
	if format == "rfc3339" {
		t, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			return time.Time{}, reject(Malformed, "%s is not an RFC 3339 time", name)
		}
		return t, nil
	}
	if len(text) == 0 || len(text) > 15 {
		return time.Time{}, reject(Malformed, "%s is not a time of up to 15 digits", name)
	}
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return time.Time{}, reject(Malformed, "%s is not digits alone", name)
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, reject(Malformed, "%s is not a number", name)
	}
	if format == "unix_ms" {
		return time.UnixMilli(n), nil
	}
	return time.Unix(n, 0), nil
}

// writeTime is the opposite of readTime.
func writeTime(t time.Time, format string) string {
	switch format {
	case "rfc3339":
		return t.UTC().Format(time.RFC3339)
	case "unix_ms":
		return strconv.FormatInt(t.UnixMilli(), 10)
	}
	return strconv.FormatInt(t.Unix(), 10)
}
