package payments

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"hookledger/internal/ledger/transfer"
	"hookledger/schema"
)

// keyHeader carries the identity of a request.
// Source: The Idempotency-Key HTTP Header Field, IETF draft -07 of 2025-10-15.
const keyHeader = "Idempotency-Key"

// Bounds of an idempotency key, in bytes, and of a reference.
const (
	maxKeyBytes       = 255
	maxReferenceBytes = 255
)

// parseKey returns the key in a request's headers. The draft writes it as a quoted
// string of RFC 8941; many clients send it bare, and both name the same key. In quotes
// \" and \\ stand for the second character, and nothing may follow them.
func parseKey(h http.Header) (string, error) {
	values := h[http.CanonicalHeaderKey(keyHeader)]
	switch {
	case len(values) == 0:
		return "", errors.New("the header Idempotency-Key is missing: send a new one with each payment, and the same one with each retry")
	case len(values) > 1:
		return "", errors.New("the header Idempotency-Key is there twice")
	}
	key := values[0]
	if strings.HasPrefix(key, `"`) {
		var ok bool
		if key, ok = unquote(key); !ok {
			return "", errors.New("the header Idempotency-Key begins with a quote and is not a quoted string")
		}
	}
	if len(key) < 1 || len(key) > maxKeyBytes {
		return "", fmt.Errorf("the header Idempotency-Key has %d bytes: send 1 to %d", len(key), maxKeyBytes)
	}
	for i := range len(key) {
		if key[i] < ' ' || key[i] > '~' {
			return "", errors.New("the header Idempotency-Key holds a character that is not printable ASCII")
		}
	}
	return key, nil
}

func unquote(s string) (string, bool) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			return b.String(), i == len(s)-1
		case '\\':
			i++
			if i == len(s) || s[i] != '"' && s[i] != '\\' {
				return "", false
			}
		}
		b.WriteByte(s[i])
	}
	return "", false
}

// order is what a client asks for.
type order struct {
	from, to  string
	amount    int64
	currency  string
	reference string
}

var orderFields = []string{"from", "to", "amount", "currency", "reference"}

// bodyLimits bound the cost of a body: one flat object.
var bodyLimits = schema.Limits{MaxDepth: 4, MaxTokens: 64}

// parseOrder reads a body strictly. Its errors are for the client: they name fields and
// never repeat what stands in them.
func parseOrder(body []byte) (order, error) {
	var o order
	v, err := schema.ParseJSON(body, bodyLimits)
	if err != nil {
		return o, err
	}
	if v.Kind() != schema.KindObject {
		return o, errors.New("the body is not a JSON object")
	}
	for _, k := range v.Keys() {
		if !isOrderField(k) {
			return o, errors.New("the body has an unknown field: it may have from, to, amount, currency and reference")
		}
	}
	for _, f := range []struct {
		name string
		into *string
	}{{"from", &o.from}, {"to", &o.to}, {"currency", &o.currency}, {"reference", &o.reference}} {
		item := v.Get(f.name)
		if item == nil {
			return o, fmt.Errorf("%s is missing", f.name)
		}
		var ok bool
		if *f.into, ok = item.Text(); !ok {
			return o, fmt.Errorf("%s is not a string", f.name)
		}
	}
	if o.amount, err = parseAmount(v.Get("amount")); err != nil {
		return o, err
	}
	return o, o.check()
}

func isOrderField(name string) bool {
	for _, f := range orderFields {
		if f == name {
			return true
		}
	}
	return false
}

func parseAmount(v *schema.Value) (int64, error) {
	if v == nil {
		return 0, errors.New("amount is missing")
	}
	text, ok := v.Number()
	if !ok {
		return 0, errors.New("amount is not a number: write an integer, in minor units")
	}
	n, err := schema.ParseAmount(text, 0)
	switch {
	case errors.Is(err, schema.ErrAmountRange):
		return 0, fmt.Errorf("amount is beyond %d", int64(schema.MaxAmount))
	case err != nil || n <= 0:
		return 0, errors.New("amount is not a positive integer, in minor units")
	}
	return n, nil
}

// check refuses what no ledger may hold, and what is no payment.
func (o *order) check() error {
	currency, err := schema.NormalizeCurrency(o.currency)
	if err != nil {
		return errors.New("currency is not a currency code")
	}
	if _, known := schema.Exponent(currency); !known {
		return errors.New("currency is not a code of ISO 4217")
	}
	o.currency = currency
	for _, f := range []struct{ name, account string }{{"from", o.from}, {"to", o.to}} {
		if !isAccount(f.account) {
			return fmt.Errorf("%s is not an account: it is empty, longer than %d bytes, begins with %s, or holds control characters", f.name, schema.MaxAccountBytes, schema.ExternalPrefix)
		}
	}
	if o.from == o.to {
		return errors.New("from and to are the same account")
	}
	if len(o.reference) > maxReferenceBytes {
		return fmt.Errorf("reference has %d bytes, the most is %d", len(o.reference), maxReferenceBytes)
	}
	for _, r := range o.reference {
		if unicode.IsControl(r) || r == utf8.RuneError {
			return errors.New("reference holds control characters")
		}
	}
	return nil
}

// isAccount tells whether a ledger may hold an account of that name.
func isAccount(id string) bool {
	t := transfer.Transfer{From: id, To: id, Amount: 1, Currency: "EUR"}
	return t.Check() == nil
}

// fingerprint identifies a request: SHA-256 over method, path and the canonical form of
// its JSON (RFC 8785: members sorted, numbers and strings written one way, no white
// space), each with its length before it. It fails only for what ParseJSON refuses.
func fingerprint(method, path string, body []byte) ([sha256.Size]byte, error) {
	canonical := jsontext.Value(append([]byte(nil), body...))
	if err := canonical.Canonicalize(); err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("%w: it has no canonical form", schema.ErrJSON)
	}
	return hashOf(method, path, string(canonical)), nil
}

// hashOf hashes texts, each with its length before it, so that ("ab", "c") is not
// ("a", "bc").
func hashOf(texts ...string) [sha256.Size]byte {
	h := sha256.New()
	for _, t := range texts {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(t)))
		_, _ = h.Write(n[:])
		_, _ = h.Write([]byte(t))
	}
	return [sha256.Size]byte(h.Sum(nil))
}
