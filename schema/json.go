package schema

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Limits bounds what one JSON text may cost to read. Zero means the default.
// Strings are bounded by the limit on the body.
type Limits struct {
	// MaxDepth is how deep arrays and objects may nest; default DefaultMaxDepth.
	MaxDepth int
	// MaxTokens is how many tokens (values, keys, brackets) the text may hold;
	// default DefaultMaxTokens.
	MaxTokens int
}

// Defaults of Limits. The deepest documented webhook nests 12 levels; 10,000 tokens
// are an order of several hundred line items.
const (
	DefaultMaxDepth  = 64
	DefaultMaxTokens = 10_000
)

// ErrJSON is wrapped by every error of ParseJSON. The errors name a place, never
// the text that stands there.
var ErrJSON = errors.New("not acceptable JSON")

// Kind is the type of a JSON value.
type Kind byte

// Kinds of a JSON value.
const (
	KindNull Kind = iota
	KindBool
	KindNumber
	KindString
	KindArray
	KindObject
)

// Value is a JSON value and where it stands in the text it was read from. It is
// safe for concurrent reading.
type Value struct {
	kind Kind
	// text is the decoded string, or the literal of a number or bool.
	text string
	raw  []byte
	// members are those of an array or object that has any.
	members *members
}

// members are the values of an array, or of an object beside their keys.
type members struct {
	keys  []string
	items []*Value
}

// ParseJSON reads one JSON text strictly. It refuses bytes that are not UTF-8,
// lone surrogates, duplicate keys (compared as text and by simple case folding:
// readers that fold case would see another value), anything behind the value, and
// texts beyond limits. The value refers to body, which must not change.
func ParseJSON(body []byte, limits Limits) (*Value, error) {
	if limits.MaxDepth == 0 {
		limits.MaxDepth = DefaultMaxDepth
	}
	if limits.MaxTokens == 0 {
		limits.MaxTokens = DefaultMaxTokens
	}
	if len(body) == 0 {
		return nil, fmt.Errorf("%w: the body is empty", ErrJSON)
	}
	p := parsers.Get().(*parser)
	defer p.release()
	p.reset(body, limits)
	v, err := p.value(0)
	if err != nil {
		return nil, err
	}
	if _, err := p.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: there is more behind the value, at byte %d", ErrJSON, p.dec.InputOffset())
	}
	return v, nil
}

// parser reads one text after another. The library checks the grammar, UTF-8 and
// duplicate keys; the tree is made here, in few pieces. Measured (profile of `make bench
// ONLY=accept`): with an allocation for each value, and a map for the keys of each large
// object, reading was 21 % of the receiver's processor time and 62 % of the bytes that it
// allocated, and is 12 % and 45 % now; BenchmarkParseJSON went from 92 allocations to 5.
type parser struct {
	body   []byte
	text   string // body, so that texts share one copy
	limits Limits
	dec    *jsontext.Decoder
	in     *bytes.Buffer
	tokens int

	// items and keys are those of containers that are still open.
	items []*Value
	keys  []string
	// What a text is made of; each is the rest of a piece.
	values  []Value
	places  []*Value
	names   []string
	holders []members
}

var parsers = sync.Pool{New: func() any {
	in := bytes.NewBuffer(nil)
	return &parser{in: in, dec: jsontext.NewDecoder(in)}
}}

func (p *parser) reset(body []byte, limits Limits) {
	p.body, p.text, p.limits, p.tokens = body, string(body), limits, 0
	*p.in = *bytes.NewBuffer(body)
	p.dec.Reset(p.in)
}

// maxKept is how many open values a parser keeps room for between two texts.
const maxKept = 1024

// release gives p back, with nothing of the text that it read.
func (p *parser) release() {
	in, dec, items, keys := p.in, p.dec, p.items, p.keys
	*in = bytes.Buffer{}
	dec.Reset(in)
	if cap(items) > maxKept || cap(keys) > maxKept {
		return // with room for the largest body, for ever
	}
	clear(items[:cap(items)])
	clear(keys[:cap(keys)])
	*p = parser{in: in, dec: dec, items: items[:0], keys: keys[:0]}
	parsers.Put(p)
}

// newValue returns room for a value. The first piece is as large as the text suggests:
// a value stands before a comma or the end of what holds it.
func (p *parser) newValue() *Value {
	if len(p.values) == 0 {
		n := 64
		if p.tokens <= 2 {
			n = min(bytes.Count(p.body, []byte{','})+bytes.Count(p.body, []byte{'{'})+bytes.Count(p.body, []byte{'['})+1, 256)
		}
		p.values = make([]Value, n)
	}
	v := &p.values[0]
	p.values = p.values[1:]
	return v
}

// hold returns what was read since an array or object began as its members.
func (p *parser) hold(items, keys int) *members {
	n, k := len(p.items)-items, len(p.keys)-keys
	if n == 0 {
		return nil
	}
	if len(p.holders) == 0 {
		p.holders = make([]members, 8)
	}
	m := &p.holders[0]
	p.holders = p.holders[1:]
	m.items, p.places = cut(p.places, p.items[items:])
	m.keys, p.names = cut(p.names, p.keys[keys:])
	p.items, p.keys = p.items[:len(p.items)-n], p.keys[:len(p.keys)-k]
	return m
}

// cut copies list into piece, or into a new one if it is too small, and returns the copy
// and the rest.
func cut[T any](piece, list []T) (copied, rest []T) {
	n := len(list)
	if n == 0 {
		return nil, piece
	}
	if len(piece) < n {
		piece = make([]T, max(n, 64))
	}
	copy(piece, list)
	return piece[:n:n], piece[n:]
}

// count counts a token that is about to be read.
func (p *parser) count() error {
	p.tokens++
	if p.tokens > p.limits.MaxTokens {
		return fmt.Errorf("%w: more than %d tokens", ErrJSON, p.limits.MaxTokens)
	}
	return nil
}

// explain says where the text is wrong, and never what stands there: the library's
// messages quote the text, which belongs in no log.
func (p *parser) explain(err error) error {
	why := "syntax error"
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		why = "the text ends too early"
	case errors.Is(err, jsontext.ErrDuplicateName):
		why = "duplicate key"
	case strings.Contains(err.Error(), "UTF-8"), strings.Contains(err.Error(), "surrogate"):
		why = "not UTF-8, or a lone surrogate"
	}
	return fmt.Errorf("%w: %s, near byte %d", ErrJSON, why, p.dec.InputOffset())
}

// bracket reads one that opens or closes.
func (p *parser) bracket() error {
	if err := p.count(); err != nil {
		return err
	}
	if _, err := p.dec.ReadToken(); err != nil {
		return p.explain(err)
	}
	return nil
}

// scalar reads a value that is neither array nor object, or a key, and returns where it
// stands.
func (p *parser) scalar() (start, end int64, err error) {
	if err := p.count(); err != nil {
		return 0, 0, err
	}
	raw, err := p.dec.ReadValue()
	if err != nil {
		return 0, 0, p.explain(err)
	}
	end = p.dec.InputOffset()
	return end - int64(len(raw)), end, nil
}

// unquote returns the text of the string that stands there.
func (p *parser) unquote(start, end int64) (string, error) {
	inner := p.text[start+1 : end-1]
	if strings.IndexByte(inner, '\\') < 0 {
		return inner, nil
	}
	text, err := jsontext.AppendUnquote(nil, p.body[start:end])
	if err != nil {
		return "", p.explain(err)
	}
	return string(text), nil
}

func (p *parser) value(depth int) (*Value, error) {
	kind := p.dec.PeekKind()
	if kind == '{' || kind == '[' {
		return p.container(kind, depth+1)
	}
	start, end, err := p.scalar()
	if err != nil {
		return nil, err
	}
	v := p.newValue()
	switch kind {
	case 'n':
		v.kind = KindNull
	case 't', 'f':
		v.kind = KindBool
	case '0':
		v.kind = KindNumber
	default:
		v.kind = KindString
		v.text, err = p.unquote(start, end)
		return v, err
	}
	v.raw = p.body[start:end:end]
	if v.kind != KindNull {
		v.text = p.text[start:end]
	}
	return v, nil
}

func (p *parser) container(open jsontext.Kind, depth int) (*Value, error) {
	if err := p.bracket(); err != nil {
		return nil, err
	}
	if depth > p.limits.MaxDepth {
		return nil, fmt.Errorf("%w: nested deeper than %d", ErrJSON, p.limits.MaxDepth)
	}
	start := p.dec.InputOffset() - 1
	v := p.newValue()
	v.kind = KindArray
	if open == '{' {
		v.kind = KindObject
	}
	items, keys := len(p.items), len(p.keys)
	for kind := p.dec.PeekKind(); kind != '}' && kind != ']'; kind = p.dec.PeekKind() {
		if open == '{' {
			from, to, err := p.scalar()
			if err != nil {
				return nil, err
			}
			key, err := p.unquote(from, to)
			if err != nil {
				return nil, err
			}
			p.keys = append(p.keys, key)
		}
		item, err := p.value(depth)
		if err != nil {
			return nil, err
		}
		p.items = append(p.items, item)
	}
	if err := p.bracket(); err != nil {
		return nil, err
	}
	if foldedTwice(p.keys[keys:]) {
		return nil, fmt.Errorf("%w: two keys differ by case alone, before byte %d", ErrJSON, p.dec.InputOffset())
	}
	end := p.dec.InputOffset()
	v.raw = p.body[start:end:end]
	v.members = p.hold(items, keys)
	return v, nil
}

// foldedTwice tells whether two of keys are equal under simple case folding.
func foldedTwice(keys []string) bool {
	if len(keys) < 2 {
		return false
	}
	if len(keys) > maxFolded/2 {
		return foldedTwiceOfMany(keys)
	}
	// A table of the keys by hash, each at the first free place from there on: no
	// allocation, where a map made half of the time of an object.
	var table [maxFolded]uint8 // index of the key + 1
	for i, k := range keys {
		at := foldHash(k) % maxFolded
		for table[at] != 0 {
			if strings.EqualFold(keys[table[at]-1], k) {
				return true
			}
			at = (at + 1) % maxFolded
		}
		table[at] = uint8(i + 1)
	}
	return false
}

const maxFolded = 128

// foldHash is equal for keys that are equal under simple case folding.
func foldHash(k string) uint32 {
	for i := range len(k) {
		if k[i] >= utf8.RuneSelf {
			k = fold(k)
			break
		}
	}
	h := uint32(2166136261) // FNV-1a
	for i := range len(k) {
		c := k[i]
		if 'a' <= c && c <= 'z' {
			c -= 'a' - 'A' // what fold makes of it
		}
		h = (h ^ uint32(c)) * 16777619
	}
	return h
}

func foldedTwiceOfMany(keys []string) bool {
	seen := make(map[string]struct{}, len(keys))
	for _, k := range keys {
		k = fold(k)
		if _, twice := seen[k]; twice {
			return true
		}
		seen[k] = struct{}{}
	}
	return false
}

// fold maps every character to the smallest of those it folds to, so that texts
// which strings.EqualFold holds equal become the same text.
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, s)
}

// Kind returns the value's type.
func (v *Value) Kind() Kind { return v.kind }

// Text returns a string's text, and false for any other kind.
func (v *Value) Text() (string, bool) { return v.text, v.kind == KindString }

// Number returns a number's literal as it stands in the text, and false for any
// other kind.
func (v *Value) Number() (string, bool) { return v.text, v.kind == KindNumber }

// Literal returns the text of a string, number or bool, and false for any other.
func (v *Value) Literal() (string, bool) {
	return v.text, v.kind == KindString || v.kind == KindNumber || v.kind == KindBool
}

// Items returns the values of an array or object, in the order of the text.
func (v *Value) Items() []*Value {
	if v.members == nil {
		return nil
	}
	return v.members.items
}

// Keys returns the keys of an object, in the order of the text.
func (v *Value) Keys() []string {
	if v.members == nil {
		return nil
	}
	return v.members.keys
}

// Raw returns the bytes of an object, array, number, bool or null as they stand in
// the text; nil for a string.
func (v *Value) Raw() []byte { return v.raw }

// Get returns the value of an object's key, nil if there is none.
func (v *Value) Get(key string) *Value {
	for i, k := range v.Keys() {
		if k == key {
			return v.members.items[i]
		}
	}
	return nil
}

// With returns a copy of an object in which key leads to value, whatever it led to
// before; v itself if it is not an object. The copy has the bytes of v.
func (v *Value) With(key string, value *Value) *Value {
	if v.kind != KindObject {
		return v
	}
	with := *v
	with.members = &members{append([]string{key}, v.Keys()...), append([]*Value{value}, v.Items()...)}
	return &with
}

// At returns the value that path leads to, and false if there is none.
func (v *Value) At(path Path) (*Value, bool) {
	for _, step := range path.steps {
		switch v.kind {
		case KindObject:
			v = v.Get(step.key)
		case KindArray:
			if items := v.Items(); step.index >= 0 && step.index < len(items) {
				v = items[step.index]
			} else {
				return nil, false
			}
		default:
			return nil, false
		}
		if v == nil {
			return nil, false
		}
	}
	return v, true
}
