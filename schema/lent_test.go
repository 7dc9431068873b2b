package schema

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"
)

// randomJSON writes a random text and returns every text in it that a user may keep, in the
// order of keptTexts.
func randomJSON(rnd *rand.Rand, mark string) (body string, texts []string) {
	var b strings.Builder
	quote := func(s string) {
		texts = append(texts, s)
		quoted, err := json.Marshal(s)
		if err != nil {
			panic(err) // texts always encode
		}
		b.Write(quoted)
	}
	var value func(depth int)
	value = func(depth int) {
		kind := rnd.IntN(6)
		if depth == 0 {
			kind = 5
		} else if depth > 3 || len(texts) > 300 {
			kind = rnd.IntN(3)
		}
		switch kind {
		case 0:
			number := fmt.Sprintf("%d.%02d", rnd.IntN(1e6), rnd.IntN(100))
			texts = append(texts, number)
			b.WriteString(number)
		case 1: // with escapes, of which the text is made anew
			quote(fmt.Sprintf("%s \"%d\"\n\u00e9\u2028%s", mark, rnd.IntN(1e6), strings.Repeat("<", rnd.IntN(20))))
		case 2:
			quote(fmt.Sprintf("%s %d", mark, rnd.IntN(1e6)))
		case 3:
			b.WriteString("[")
			for i := range rnd.IntN(5) {
				if i > 0 {
					b.WriteString(" , ")
				}
				value(depth + 1)
			}
			b.WriteString("]")
		default:
			n := rnd.IntN(6)
			if depth == 0 && rnd.IntN(12) == 0 {
				n = 60 + rnd.IntN(60)
			}
			b.WriteString("{")
			for i := range n {
				if i > 0 {
					b.WriteString(",")
				}
				quote(fmt.Sprintf("%s_%d", mark, i))
				b.WriteString(":")
				value(depth + 1)
			}
			b.WriteString("}")
		}
	}
	value(0)
	return b.String(), texts
}

// keptTexts are the keys, strings and numbers of v, in the order of the text.
func keptTexts(v *Value, texts []string) []string {
	if text, ok := v.Literal(); ok {
		return append(texts, text)
	}
	for i := range v.Items() {
		if v.Kind() == KindObject {
			texts = append(texts, v.Keys()[i])
		}
		texts = keptTexts(&v.Items()[i], texts)
	}
	return texts
}

// What is kept of a body stays what it was, whatever is read afterwards into the same
// memory, by others at the same time, within the use of a value, and after texts that end
// in the middle or whose use panics.
func TestWithJSON_TextsThatAreKeptStay(t *testing.T) {
	t.Parallel()
	const readers, rounds = 8, 60
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	type kept struct {
		body        string
		texts, want []string
		raw         []byte
		// own is a value of ParseJSON, which stays whole.
		own *Value
	}
	errs := make([]error, readers)
	var wg sync.WaitGroup
	for n := range readers {
		rnd := rand.New(rand.NewPCG(seed, uint64(n)))
		wg.Go(func() { // ends after its rounds
			var all []kept
			for round := range rounds {
				mark := fmt.Sprintf("%d/%d", n, round)
				k := kept{}
				k.body, k.want = randomJSON(rnd, mark)
				keep := func(v *Value) {
					// The value is whole as long as it is used, even if others are read.
					if round%3 == 0 {
						inner, _ := randomJSON(rnd, mark+"inner")
						if err := WithJSON([]byte(inner), Limits{}, func(*Value) {}); err != nil {
							errs[n] = err
						}
					}
					k.texts, k.raw = keptTexts(v, nil), v.Raw()
				}
				if err := WithJSON([]byte(k.body), Limits{}, keep); err != nil {
					errs[n] = fmt.Errorf("%s: %w", k.body, err)
					return
				}
				switch round % 5 {
				case 0:
					if err := WithJSON([]byte(k.body[:len(k.body)-1]), Limits{}, keep); !errors.Is(err, ErrJSON) {
						errs[n] = fmt.Errorf("accepted what was cut off: %w", err)
					}
				case 1:
					func() {
						defer func() { _ = recover() }()
						_ = WithJSON([]byte(k.body), Limits{}, func(*Value) { panic("as the test wants") })
					}()
				case 2:
					var err error
					if k.own, err = ParseJSON([]byte(k.body), Limits{}); err != nil {
						errs[n] = err
					}
				}
				all = append(all, k)
			}
			for _, k := range all {
				if !slices.Equal(k.texts, k.want) || string(k.raw) != k.body {
					errs[n] = fmt.Errorf("kept\n%q\nof\n%s", k.texts, k.body)
				}
				if k.own != nil && !slices.Equal(keptTexts(k.own, nil), k.want) {
					errs[n] = fmt.Errorf("a value of its own became\n%q\nof\n%s", keptTexts(k.own, nil), k.body)
				}
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// Nothing of a body stays with the memory that is lent to the next one. Not parallel: a
// scanner that was released is anybody's.
func TestWithJSON_LeavesNothingBehind(t *testing.T) {
	for _, body := range []string{`{"a":[1,2,{"b":"secret"}],"c":"secret"}`, `{"a":[1,2,{"b":"secret"}`, `{"a":"secret","A":1}`, `["secret",[["secret"`} {
		s := new(scanner)
		s.reset(body, Limits{MaxDepth: 10, MaxTokens: 100}, true)
		_, _ = s.value(0)
		s.release()
		if s.text != "" || len(s.values)+len(s.names)+len(s.holders) > 0 {
			t.Errorf("%s: got %+v", body, s)
		}
		for _, v := range slices.Concat(s.lent.values, s.items[:cap(s.items)]) {
			if v != (Value{}) {
				t.Errorf("%s: left the value %+v", body, v)
			}
		}
		for _, name := range slices.Concat(s.lent.names, s.keys[:cap(s.keys)]) {
			if name != "" {
				t.Errorf("%s: left the key %q", body, name)
			}
		}
		for _, h := range s.lent.holders {
			if h.items != nil || h.keys != nil {
				t.Errorf("%s: left the members %+v", body, h)
			}
		}
	}
}

// Keys that fold to the same are found among any number of others, on both sides of where
// the way of looking changes, as comparing each with each finds them.
func TestFoldedTwice_FindsWhatComparingAllFinds(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	letters := []rune("aAkK\u212asS\u017fzZ_0\u00df\u1e9e\u00b5\u03bc\u03c3\u03c2\u03a3\u01c4\u01c5\u01c6iI\u0130\u0131[{@`")
	found, not := 0, 0
	for round := range 1000 {
		n, size := rnd.IntN(8), 3+rnd.IntN(9)
		if round%10 == 0 {
			n = rnd.IntN(2 * maxFolded)
		}
		keys := make([]string, n)
		for i := range keys {
			for range size {
				keys[i] += string(letters[rnd.IntN(len(letters))])
			}
		}
		if n > 1 && rnd.IntN(2) == 0 { // one of them again, each letter folded or not
			keys[n/3] = strings.Map(func(r rune) rune {
				for range rnd.IntN(3) {
					r = unicode.SimpleFold(r)
				}
				return r
			}, keys[n-1])
		}
		want := false
		for i := range keys {
			for j := range i {
				want = want || strings.EqualFold(keys[i], keys[j])
			}
		}
		a, b, got := foldedTwice(keys)
		if got != want || got && !strings.EqualFold(a, b) {
			t.Fatalf("%q: got %q, %q, %t, want %t", keys, a, b, got, want)
		}
		if got {
			found++
		} else {
			not++
		}
	}
	if found < 100 || not < 100 {
		t.Errorf("found %d, not %d: this tests one of them alone", found, not)
	}
}

// What folds to the same is refused, and nothing else, in objects of as many keys as are
// compared in one way and as in the other.
func TestParseJSON_RefusesFoldedKeysAmongMany(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, maxFolded/2 - 1, maxFolded / 2, maxFolded/2 + 1, maxFolded, 500} {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"key%d":%d,`, i, i)
		}
		if _, err := ParseJSON([]byte("{"+b.String()+`"other":1}`), Limits{}); err != nil {
			t.Errorf("%d keys: got %v", n, err)
		}
		for _, at := range []int{0, n / 2, n - 1} {
			for _, again := range []string{"key", "KEY", "\u212aEY", `\u212ae\u0079`} {
				if _, err := ParseJSON(fmt.Appendf(nil, `{%s"%s%d":1}`, b.String(), again, at), Limits{}); !errors.Is(err, ErrJSON) {
					t.Errorf("%d keys and %s%d: got %v, want ErrJSON", n, again, at, err)
				}
			}
		}
	}
}

// The values of headers share memory, and are apart: however long they are, each is what it
// is without the others, and stays so if one of them grows.
func TestHeaders_ValuesAreApart(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 40, 100, 255, 600, 5000} {
		long := func(c string) string { return strings.Repeat(c, n) }
		e := Event{
			Source: long("s"), ID: long("i"), Type: long("t"), OccurredAt: time.Unix(1795953600, 5), ReceivedAt: time.Unix(1795953601, 0),
			Scheme: long("h"), KeyID: long("k"), DeliveryID: long("d"), ContentType: long("c"), BodySHA256: [32]byte{0xab},
			BodyUnauthenticated: true, Livemode: "live", TraceParent: long("p"), SignatureHeaders: []Header{{"x-signature", []byte("00")}},
		}
		want := map[string]string{
			HeaderSpecVersion: "1.0", HeaderID: e.ID, HeaderSource: "/webhooks/" + e.Source, HeaderType: cmp.Or(e.Type, UnknownType),
			HeaderTime: "2026-11-29T12:00:00.000000005Z", HeaderContentType: e.ContentType, HeaderHLVersion: Version, HeaderHLSource: e.Source,
			HeaderHLReceivedAt: "2026-11-29T12:00:01.000000000Z", HeaderHLScheme: e.Scheme, HeaderHLKeyID: e.KeyID,
			HeaderHLBodySHA256: "ab" + strings.Repeat("00", 31), HeaderHLDeliveryID: e.DeliveryID, HeaderHLAuthenticated: "false",
			HeaderHLLivemode: "live", HeaderTraceParent: e.TraceParent, "x-signature": "00",
		}
		if n == 0 {
			delete(want, HeaderTraceParent)
		}
		headers := e.Headers()
		for i := range headers {
			_ = append(headers[i].Value, "grown"...)
		}
		if len(headers) != len(want) {
			t.Errorf("%d: got %d headers, want %d", n, len(headers), len(want))
		}
		for _, h := range headers {
			if text, ok := want[h.Key]; !ok || string(h.Value) != text || h.Value == nil {
				t.Errorf("%d: %s: got %q, want %q", n, h.Key, h.Value, text)
			}
		}
	}
}
