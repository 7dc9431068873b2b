package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

func TestParseJSON_RefusesWhatTwoReadersMayReadDifferently(t *testing.T) {
	t.Parallel()
	nine := `"k1":1,"k2":1,"k3":1,"k4":1,"k5":1,"k6":1,"k7":1,"k8":1`
	for name, body := range map[string]string{
		"empty":                     ``,
		"blank":                     `  `,
		"two values":                `{} {}`,
		"trailing text":             `{}x`,
		"trailing NUL":              "{}\x00",
		"duplicate key":             `{"a":1,"a":2}`,
		"duplicate by escape":       `{"a":1,"\u0061":2}`,
		"folded key":                `{"amount":1,"Amount":2}`,
		"folded long s":             "{\"status\":1,\"\u017ftatus\":2}",
		"folded Kelvin sign":        "{\"key\":1,\"\u212aey\":2}",
		"folded among many":         `{` + nine + `,"K3":2}`,
		"folded deep inside":        `{"a":[{"b":{"c":1,"C":2}}]}`,
		"bad UTF-8":                 "{\"a\":\"\xff\"}",
		"bad UTF-8 in key":          "{\"\xfe\":1}",
		"lone surrogate":            `{"a":"\ud800"}`,
		"truncated":                 `{"a":`,
		"comment":                   `{"a":1 /* x */}`,
		"trailing comma":            `{"a":1,}`,
		"single quotes":             `{'a':1}`,
		"leading zero":              `{"a":01}`,
		"NaN":                       `{"a":NaN}`,
		"control character":         "{\"a\":\"x\ny\"}",
		"byte order mark":           "\ufeff{}",
		"array closed as an object": `[1}`,
	} {
		if v, err := ParseJSON([]byte(body), Limits{}); !errors.Is(err, ErrJSON) {
			t.Errorf("%s: got %v, %v, want ErrJSON", name, v, err)
		}
	}
}

func TestParseJSON_ErrorsDoNotQuoteTheBody(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{"card":4242424242424242x`, `{"4242424242424242":1,"4242424242424242":2}`, "4242424242424242\xff"} {
		if _, err := ParseJSON([]byte(body), Limits{}); err == nil || strings.Contains(err.Error(), "4242") {
			t.Errorf("body %q: got error %v, want one that does not quote it", body, err)
		}
	}
}

func TestParseJSON_HoldsItsLimits(t *testing.T) {
	t.Parallel()
	nest := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	list := func(n int) []byte { return []byte("[" + strings.Repeat("0,", n-1) + "0]") }
	for _, c := range []struct {
		name string
		body []byte
		ok   bool
	}{
		{"depth 64", nest(64), true},
		{"depth 65", nest(65), false},
		{"depth 9,999", nest(9999), false},
		{"10,000 tokens", list(9998), true},
		{"10,001 tokens", list(9999), false},
		{"a million elements", list(1_000_000), false},
	} {
		if _, err := ParseJSON(c.body, Limits{}); (err == nil) != c.ok {
			t.Errorf("%s: got error %v, want accepted %v", c.name, err, c.ok)
		}
	}
	var keys strings.Builder
	for i := range 1_000_000 {
		fmt.Fprintf(&keys, `,"k%d":0`, i)
	}
	if _, err := ParseJSON([]byte("{"+keys.String()[1:]+"}"), Limits{}); err == nil {
		t.Error("a million keys: accepted")
	}
}

func TestValue_RawIsTheItemsOwnBytes(t *testing.T) {
	t.Parallel()
	body := `{ "events" : [ {"id":"a", "n": 1.50} , {"id":"b"} ], "x": true }`
	v, err := ParseJSON([]byte(body), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	items := v.Get("events").Items()
	if got, want := string(items[0].Raw()), `{"id":"a", "n": 1.50}`; got != want {
		t.Errorf("raw: got %s, want %s", got, want)
	}
	if got, want := string(v.Raw()), body; got != want {
		t.Errorf("raw: got %s, want %s", got, want)
	}
	if n, ok := items[0].Get("n").Number(); n != "1.50" || !ok || string(items[0].Get("n").Raw()) != "1.50" {
		t.Errorf("number: got %q %v, want its literal 1.50", n, ok)
	}
	if string(v.Get("x").Raw()) != "true" {
		t.Errorf("bool: got %s", v.Get("x").Raw())
	}
}

func TestPath(t *testing.T) {
	t.Parallel()
	v, err := ParseJSON([]byte(`{"a":{"b":[{"c":"x"},{"c":"y"}]},"d.e":"z","[":"w","1":"one","n":null,"m":[["q"]]}`), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"a.b.1.c": "y", "a.b[0].c": "x", `d\.e`: "z", `\[`: "w", "1": "one", "m[0][0]": "q",
		"a.x": "", "a.b.2.c": "", "a.b.-1.c": "", "a.b.c": "", "d.e": "", "n.x": "",
	} {
		got := ""
		if at, ok := v.At(MustPath(path)); ok {
			got, _ = at.Text()
		}
		if got != want {
			t.Errorf("path %s: got %q, want %q", path, got, want)
		}
	}
	for _, bad := range []string{"", ".", "a.", ".a", "a..b", "a[", "a[]", "a[x]", `a\`, `a\n`, "a[0]."} {
		if p, err := ParsePath(bad); err == nil {
			t.Errorf("path %q: got %v, want an error", bad, p.Steps())
		}
	}
}

// FuzzParseJSON compares with two libraries: what a strict one accepts we accept, but for
// our limits and keys that differ by case, and nothing else; what we accept the standard
// one reads to the same strings and literals.
func FuzzParseJSON(f *testing.F) {
	for _, s := range jsonTexts() {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if err := compareJSON(body); err != nil {
			t.Fatal(err)
		}
	})
}

func TestParseJSON_AgreesWithTwoLibraries(t *testing.T) {
	t.Parallel()
	texts := jsonTexts()
	// Whatever one byte does to a text: cut off there, left out, or another one.
	for _, s := range jsonTexts() {
		for i := range s {
			texts = append(texts, s[:i], s[:i]+s[i+1:])
			for _, c := range []byte("\x00\t \"\\{}[],:0-+.eE1aftnu/x\x1f\x7f\x80\xbf\xc3\xed\xef\xf4\xff") {
				texts = append(texts, s[:i]+string([]byte{c})+s[i+1:], s[:i]+string([]byte{c})+s[i:])
			}
		}
	}
	for _, s := range texts {
		if err := compareJSON([]byte(s)); err != nil {
			t.Errorf("%q: %v", s, err)
		}
	}
}

// jsonTexts hold every form that the grammar has.
func jsonTexts() []string {
	return []string{
		`{}`, `[]`, `""`, ` [ ] `, `{ "a" : { } , "b" : [ [ ] , { } ] }`,
		`{"a":[1,2.50,-0,1e9,"\u00e9",null,true,false]}`, `{"a":1,"A":2}`, `"\ud83d\ude00"`, "[\"\xff\"]",
		`{"id":"evt_1","data":{"object":{"amount":100}}}`,
		`[0,-1,10,0.0,1E+2,1e-07,-0.5e0,123456789012345678901234567890]`,
		`["\"\\\/\b\f\n\r\t","\u0000\uFFFF\uFfFd","\ud800\udc00x\udbff\udfff"]`,
		"[\"\u00e9\u20ac\U0001f600\ufeff\u2028\",\"a\u00e9\\n\"]",
		"\t{\r\n\"k\" :\n\"v\"\r}\n",
	}
}

func compareJSON(body []byte) error {
	v, err := ParseJSON(body, Limits{})
	var lent error
	if bad := WithJSON(body, Limits{}, func(l *Value) { lent = equal(v, l) }); (bad == nil) != (err == nil) || lent != nil {
		return fmt.Errorf("lent: %w, %w, want as ParseJSON does: %w", bad, lent, err)
	}
	strict := jsontext.NewDecoder(bytes.NewReader(body))
	_, want := strict.ReadValue()
	if want == nil {
		if _, more := strict.ReadToken(); !errors.Is(more, io.EOF) {
			want = errors.New("there is more behind the value")
		}
	}
	if err != nil {
		ours := strings.Contains(err.Error(), "by case") || strings.Contains(err.Error(), "tokens") || strings.Contains(err.Error(), "deeper")
		if want == nil && !ours {
			return fmt.Errorf("refused what is strict JSON: %w", err)
		}
		return nil
	}
	if want != nil {
		return fmt.Errorf("accepted what is no strict JSON: %w", want)
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var std any
	if err := dec.Decode(&std); err != nil {
		return fmt.Errorf("accepted what encoding/json refuses: %w", err)
	}
	if raw := v.Raw(); v.Kind() != KindString && string(raw) != strings.Trim(string(body), " \t\r\n") {
		return fmt.Errorf("raw: got %q", raw)
	}
	return same(v, std)
}

// equal compares two readings of one text.
func equal(a, b *Value) error {
	if a == nil || a.kind != b.kind || a.text != b.text || !slices.Equal(a.Keys(), b.Keys()) || len(a.Items()) != len(b.Items()) {
		return fmt.Errorf("%+v and %+v differ", a, b)
	}
	for i := range a.Items() {
		if err := equal(&a.Items()[i], &b.Items()[i]); err != nil {
			return err
		}
	}
	return nil
}

func same(v *Value, std any) error {
	switch s := std.(type) {
	case string:
		if got, ok := v.Text(); !ok || got != s {
			return fmt.Errorf("string: got %q, want %q", got, s)
		}
	case json.Number:
		if got, ok := v.Number(); !ok || got != s.String() {
			return fmt.Errorf("number: got %q, want %q", got, s)
		}
	case nil:
		if v.Kind() != KindNull {
			return fmt.Errorf("got kind %d, want null", v.Kind())
		}
	case bool:
		if got, ok := v.Literal(); !ok || v.Kind() != KindBool || got != fmt.Sprint(s) {
			return fmt.Errorf("bool: got %q, want %v", got, s)
		}
	case []any:
		if v.Kind() != KindArray || len(v.Items()) != len(s) {
			return fmt.Errorf("array: got %d items, want %d", len(v.Items()), len(s))
		}
		for i, item := range s {
			if err := same(&v.Items()[i], item); err != nil {
				return err
			}
		}
	case map[string]any:
		if v.Kind() != KindObject || len(v.Keys()) != len(s) {
			return fmt.Errorf("object: got %d keys, want %d", len(v.Keys()), len(s))
		}
		for key, item := range s {
			if v.Get(key) == nil {
				return fmt.Errorf("object: key %q is missing", key)
			}
			if err := same(v.Get(key), item); err != nil {
				return err
			}
		}
	}
	return nil
}

func BenchmarkParseJSON(b *testing.B) {
	body := []byte(`{"id":"evt_1PqRsT","object":"event","api_version":"2026-01-28","created":1764400000,"type":"payment_intent.succeeded","livemode":false,"data":{"object":{"id":"pi_3PqRsT","amount":2000,"amount_received":2000,"currency":"eur","metadata":{"account_id":"acct_42"},"note":"` + strings.Repeat("x", 600) + `"}}}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseJSON(body, Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}
