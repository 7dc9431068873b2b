package signature

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"hookledger/schema/source"
)

// prodamusScheme reads the header Sign: an HMAC-SHA256 of the form's fields as PHP reads
// them (a[0][b] is nested), sorted by name at every level, all values texts, written by
// json_encode with JSON_UNESCAPED_UNICODE: no blanks, Cyrillic as it is, / as \/.
// Source: the provider's Hmac class as quoted in public repositories, 2026-11.
type prodamusScheme struct{ sig source.Signature }

func (s prodamusScheme) headers() []string { return []string{s.sig.Header} }

func (s prodamusScheme) lock(secret []byte) (lock, error) {
	return newHMACLock("prodamus-hmac-sha256", "", sha256.New, secret)
}

func (s prodamusScheme) read(r Request) ([]claim, error) {
	text, err := one(r.Header, s.sig.Header)
	if err != nil {
		return nil, err
	}
	value, err := decode(text, "hex", sha256.Size)
	if err != nil {
		return nil, reject(Malformed, "header %s: %v", s.sig.Header, err)
	}
	signed, err := prodamusText(r)
	if err != nil {
		return nil, err
	}
	return []claim{{signatures: []signature{{value: value}}, text: [][]byte{signed}}}, nil
}

func prodamusText(r Request) ([]byte, error) {
	fields, err := formFields(r)
	if err != nil {
		return nil, err
	}
	root := &phpArray{}
	for _, f := range fields {
		if !root.set(f.Name, f.Value) {
			return nil, reject(Malformed, "the fields of the form contradict each other, or nest deeper than %d", maxPHPDepth)
		}
	}
	root.remove("signature", "sign", "_payform_sign")
	if len(root.keys) == 0 {
		return nil, reject(Malformed, "there is no field that could be signed")
	}
	return root.append(nil), nil
}

func (s prodamusScheme) sign(l lock, m *Message) error {
	key, err := hmacKey(l)
	if err != nil {
		return err
	}
	text, err := prodamusText(m.request())
	if err != nil {
		return err
	}
	m.Header.Set(s.sig.Header, hex.EncodeToString(key.mac([][]byte{text})))
	return nil
}

// phpArray is an array of PHP: a list or a map, or nil items and a text at its leaves.
type phpArray struct {
	text string
	keys []string
	// items has nil-keyed leaves as arrays without keys.
	items map[string]*phpArray
	leaf  bool
	next  int
}

// maxPHPDepth is max_input_nesting_level of PHP's defaults.
const maxPHPDepth = 64

// set stores value under a name such as products[0][name]. It fails where a text and an
// array would have one name.
func (a *phpArray) set(name, value string) bool {
	base, rest, nested := strings.Cut(name, "[")
	path := []string{phpName(base)}
	for nested {
		key, more, closed := strings.Cut(rest, "]")
		if !closed {
			return false
		}
		path = append(path, key)
		rest, nested = strings.CutPrefix(more, "[")
	}
	if base == "" || len(path) > maxPHPDepth {
		return false
	}
	at := a
	for i, key := range path {
		if at.leaf {
			return false
		}
		if i > 0 && key == "" {
			key = strconv.Itoa(at.next)
		}
		item := at.items[key]
		if item == nil {
			item = at.add(key)
		} else if i == len(path)-1 {
			return false // there twice
		}
		at = item
	}
	if len(at.keys) > 0 {
		return false
	}
	at.leaf, at.text = true, value
	return true
}

func (a *phpArray) add(key string) *phpArray {
	if a.items == nil {
		a.items = make(map[string]*phpArray)
	}
	if n, ok := phpInt(key); ok && n >= a.next {
		a.next = n + 1
	}
	item := &phpArray{}
	a.keys, a.items[key] = append(a.keys, key), item
	return item
}

func (a *phpArray) remove(names ...string) {
	a.keys = slices.DeleteFunc(a.keys, func(k string) bool { return slices.Contains(names, k) })
}

// phpName is what PHP makes of the name of a field: blanks before it are dropped, dots
// and blanks in it become underscores.
func phpName(name string) string {
	return strings.NewReplacer(".", "_", " ", "_").Replace(strings.TrimLeft(name, " "))
}

// phpInt tells whether PHP takes a key for a number: decimal, without leading zeros.
func phpInt(key string) (int, bool) {
	n, err := strconv.Atoi(key)
	return n, err == nil && strconv.Itoa(n) == key
}

// append writes a as PHP's json_encode does after ksort.
func (a *phpArray) append(out []byte) []byte {
	if a.leaf {
		return appendPHPString(out, a.text)
	}
	keys := slices.Clone(a.keys)
	slices.SortStableFunc(keys, comparePHP)
	if isPHPList(keys) {
		out = append(out, '[')
		for i, key := range keys {
			if i > 0 {
				out = append(out, ',')
			}
			out = a.items[key].append(out)
		}
		return append(out, ']')
	}
	out = append(out, '{')
	for i, key := range keys {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(appendPHPString(out, key), ':')
		out = a.items[key].append(out)
	}
	return append(out, '}')
}

// comparePHP orders keys as ksort of PHP 8: numbers by value, anything else as text.
func comparePHP(a, b string) int {
	n, aok := phpInt(a)
	m, bok := phpInt(b)
	if aok && bok {
		return n - m
	}
	return strings.Compare(a, b)
}

func isPHPList(keys []string) bool {
	for i, key := range keys {
		if key != strconv.Itoa(i) {
			return false
		}
	}
	return true
}

const lowerHex = "0123456789abcdef"

// appendPHPString writes a text with the escapes of json_encode and
// JSON_UNESCAPED_UNICODE; the two line separators stay escaped (PHP 7.1 and later).
func appendPHPString(out []byte, s string) []byte {
	out = append(out, '"')
	for _, r := range s {
		switch r {
		case '"', '\\', '/':
			out = append(out, '\\', byte(r))
		case '\b':
			out = append(out, `\b`...)
		case '\f':
			out = append(out, `\f`...)
		case '\n':
			out = append(out, `\n`...)
		case '\r':
			out = append(out, `\r`...)
		case '\t':
			out = append(out, `\t`...)
		case '\u2028':
			out = append(out, `\u2028`...)
		case '\u2029':
			out = append(out, `\u2029`...)
		default:
			if r < 0x20 {
				out = append(out, '\\', 'u', '0', '0', lowerHex[r>>4], lowerHex[r&15])
				continue
			}
			out = append(out, string(r)...)
		}
	}
	return append(out, '"')
}
