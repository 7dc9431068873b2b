package signature

import (
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"hookledger/schema"
	"hookledger/schema/source"
)

// scheme is one family of signatures. Its files know headers and texts; how bytes are
// compared and secrets are tried is the same for all, in verify.go and lock.go.
type scheme interface {
	// read returns what the delivery claims, or a *Rejection. All claims must hold.
	read(Request) ([]claim, error)
	// lock returns what a secret can check, or why it cannot be a secret.
	lock(secret []byte) (lock, error)
	// headers are the canonical names of the headers with which a delivery can be
	// verified again. One that is itself the credential is not among them.
	headers() []string
}

// signing is a scheme with which `send` and tests can sign.
type signing interface {
	// sign makes m one that read accepts: it sets headers, and the query or the body
	// where the signature stands there.
	sign(key lock, m *Message) error
}

// scripting is a scheme for which a shell can sign.
type scripting interface {
	// snippet returns the lines of a shell that compute the same headers as sign.
	snippet(m shellMessage) (shellSignature, error)
}

// keyless is a scheme that needs no secret: what it checks is the same for everybody, or
// fetched.
type keyless interface {
	// open returns the lock that stands in for secrets, with a name for it; nil if locks
	// are fetched.
	open() (id string, l lock)
}

// fetching is a scheme whose deliveries name a key of the provider to be fetched.
type fetching interface {
	trust(*Trust)
	fetch(c *claim, configured []*key, at time.Time) (*key, error)
}

// challenging is a scheme whose provider asks by GET whether the address is ours.
type challenging interface {
	challenge(Request) (text string, err error)
	reply(l lock, text string) string
}

// keeping is a scheme that needs more than headers to verify again.
type keeping interface {
	keep(Request) []schema.Header
}

// claim is what a delivery says of itself, still to be checked.
type claim struct {
	// signatures are those in versions that the scheme accepts, decoded. Any may match.
	signatures []signature
	// text is the signed text in pieces. A nil piece stands for the secret.
	text [][]byte
	// signedAt is the time of signing; zero if the scheme has none.
	signedAt time.Time
	// keyName names the key to be fetched.
	keyName string
	// remote is the sender's address.
	remote netip.Addr
}

// signature is one decoded signature. version is empty where the scheme has one alone;
// text is its own where it is not the claim's.
type signature struct {
	version string
	value   []byte
	text    [][]byte
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
	case source.SchemeAdyenItems:
		return adyenScheme{sig}, nil
	case source.SchemePayPal:
		return &paypalScheme{sig: sig}, nil
	case source.SchemePlaid:
		return &plaidScheme{sig: sig}, nil
	case source.SchemeRSA:
		return rsaScheme{sig}, nil
	case source.SchemeMercadoPago:
		return mercadoPagoScheme{sig}, nil
	case source.SchemeBraintree:
		return braintreeScheme{sig}, nil
	case source.SchemeCloudPayments:
		return cloudPaymentsScheme{sig}, nil
	case source.SchemeTBank:
		return tbankScheme{sig}, nil
	case source.SchemeRobokassa:
		return newRobokassaScheme(sig)
	case source.SchemeProdamus:
		return prodamusScheme{sig}, nil
	case source.SchemeSberbank:
		return newSberbankScheme(sig)
	case source.SchemeToken:
		return tokenScheme{sig}, nil
	case source.SchemeNetworks:
		return networksScheme{sig}, nil
	case source.SchemeNone:
		return noneScheme{}, nil
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
	return printable(values[0], name)
}

func printable(value, name string) (string, error) {
	value = trimOWS(value)
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

// readTime reads a time of signing. Digits alone are a number: no sign, no blank, and no
// zeros before it, which the providers' libraries do not sign either: they print it anew.
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
	if len(text) > 1 && text[0] == '0' {
		return time.Time{}, reject(Malformed, "%s begins with a zero", name)
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
