package payments

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"hookledger/schema"
)

// FuzzParseKey checks that a key is printable and short, and that quoted it is the same.
func FuzzParseKey(f *testing.F) {
	for _, s := range []string{"k", `"k"`, `"a\"b\\c"`, `"`, `""`, `"a"b`, `"\x"`, strings.Repeat("k", 256), "k\n", " k"} {
		f.Add(s)
	}
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	f.Fuzz(func(t *testing.T, value string) {
		key, err := parseKey(http.Header{keyHeader: {value}})
		if err != nil {
			return
		}
		if len(key) < 1 || len(key) > maxKeyBytes || strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Fatalf("%q: got key %q", value, key)
		}
		again, err := parseKey(http.Header{keyHeader: {`"` + quote.Replace(key) + `"`}})
		if err != nil || again != key {
			t.Fatalf("%q: got %q %v when its key is quoted, want %q", value, again, err, key)
		}
	})
}

// FuzzParseOrder compares with the standard library: what we accept it reads to the same
// values, and nothing is left over.
func FuzzParseOrder(f *testing.F) {
	for _, s := range []string{
		`{"from":"shop:1","to":"user_1","amount":1250,"currency":"EUR","reference":"order 1"}`,
		`{"from":"a","to":"b","amount":1e2,"currency":"eur","reference":""}`,
		`{"from":"a","to":"b","amount":"1","currency":"EUR","reference":""}`,
		`{"from":"a","From":"c","to":"b","amount":1,"currency":"EUR","reference":""}`,
		`{"from":"a","from":"c","to":"b","amount":1,"currency":"EUR","reference":""}`, `[]`, ``,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := parseOrder(body)
		if err != nil {
			return
		}
		var want map[string]any
		decoder := json.NewDecoder(strings.NewReader(string(body)))
		decoder.UseNumber()
		if err := decoder.Decode(&want); err != nil {
			t.Fatalf("accepted what encoding/json refuses: %v", err)
		}
		if len(want) != len(orderFields) || want["from"] != got.from || want["to"] != got.to || want["reference"] != got.reference {
			t.Fatalf("got %+v, the library says %v", got, want)
		}
		if c, _ := want["currency"].(string); !strings.EqualFold(c, got.currency) {
			t.Fatalf("currency: got %q, the library says %v", got.currency, want["currency"])
		}
		if n, _ := want["amount"].(json.Number); got.amount <= 0 || got.amount > schema.MaxAmount || !isAmount(n, got.amount) {
			t.Fatalf("amount: got %d, the library says %v", got.amount, want["amount"])
		}
		if err := got.check(); err != nil {
			t.Fatalf("accepted and refused when checked again: %v", err)
		}
	})
}

// isAmount tells whether a whole number is this amount; other ways to write it are
// compared where amounts are read.
func isAmount(text json.Number, amount int64) bool {
	n, err := text.Int64()
	return err != nil || n == amount
}
