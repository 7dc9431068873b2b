package schema

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

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
	text  string
	keys  []string
	items []*Value
	raw   []byte
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
	p := parser{body: body, limits: limits, dec: jsontext.NewDecoder(bytes.NewBuffer(body))}
	v, err := p.value(0)
	if err != nil {
		return nil, err
	}
	if _, err := p.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: there is more behind the value, at byte %d", ErrJSON, p.dec.InputOffset())
	}
	return v, nil
}

type parser struct {
	body   []byte
	limits Limits
	dec    *jsontext.Decoder
	tokens int
}

func (p *parser) token() (jsontext.Token, error) {
	p.tokens++
	if p.tokens > p.limits.MaxTokens {
		return jsontext.Token{}, fmt.Errorf("%w: more than %d tokens", ErrJSON, p.limits.MaxTokens)
	}
	t, err := p.dec.ReadToken()
	if err == nil {
		return t, nil
	}
	// The library's messages quote the text; a body's text belongs in no log.
	why := "syntax error"
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		why = "the text ends too early"
	case errors.Is(err, jsontext.ErrDuplicateName):
		why = "duplicate key"
	case strings.Contains(err.Error(), "UTF-8"), strings.Contains(err.Error(), "surrogate"):
		why = "not UTF-8, or a lone surrogate"
	}
	return jsontext.Token{}, fmt.Errorf("%w: %s, near byte %d", ErrJSON, why, p.dec.InputOffset())
}

func (p *parser) value(depth int) (*Value, error) {
	t, err := p.token()
	if err != nil {
		return nil, err
	}
	switch t.Kind() {
	case '{', '[':
		return p.container(t.Kind(), depth+1)
	case 'n':
		return &Value{kind: KindNull, raw: p.behind(4)}, nil
	case 't', 'f':
		text := t.String()
		return &Value{kind: KindBool, text: text, raw: p.behind(len(text))}, nil
	case '0':
		text := t.String()
		return &Value{kind: KindNumber, text: text, raw: p.behind(len(text))}, nil
	default:
		return &Value{kind: KindString, text: t.String()}, nil
	}
}

// behind returns the n bytes before the reader's place.
func (p *parser) behind(n int) []byte {
	end := p.dec.InputOffset()
	return p.body[end-int64(n) : end : end]
}

func (p *parser) container(open jsontext.Kind, depth int) (*Value, error) {
	if depth > p.limits.MaxDepth {
		return nil, fmt.Errorf("%w: nested deeper than %d", ErrJSON, p.limits.MaxDepth)
	}
	start := p.dec.InputOffset() - 1
	v := &Value{kind: KindArray}
	if open == '{' {
		v.kind = KindObject
	}
	for p.dec.PeekKind() != '}' && p.dec.PeekKind() != ']' {
		if open == '{' {
			key, err := p.token()
			if err != nil {
				return nil, err
			}
			v.keys = append(v.keys, key.String())
		}
		item, err := p.value(depth)
		if err != nil {
			return nil, err
		}
		v.items = append(v.items, item)
	}
	if _, err := p.token(); err != nil {
		return nil, err
	}
	if foldedTwice(v.keys) {
		return nil, fmt.Errorf("%w: two keys differ by case alone, before byte %d", ErrJSON, p.dec.InputOffset())
	}
	end := p.dec.InputOffset()
	v.raw = p.body[start:end:end]
	return v, nil
}

// foldedTwice tells whether two of keys are equal under simple case folding.
func foldedTwice(keys []string) bool {
	if len(keys) < 2 {
		return false
	}
	if len(keys) <= 8 {
		for i, k := range keys {
			for _, other := range keys[:i] {
				if strings.EqualFold(k, other) {
					return true
				}
			}
		}
		return false
	}
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
func (v *Value) Items() []*Value { return v.items }

// Keys returns the keys of an object, in the order of the text.
func (v *Value) Keys() []string { return v.keys }

// Raw returns the bytes of an object, array, number, bool or null as they stand in
// the text; nil for a string.
func (v *Value) Raw() []byte { return v.raw }

// Get returns the value of an object's key, nil if there is none.
func (v *Value) Get(key string) *Value {
	for i, k := range v.keys {
		if k == key {
			return v.items[i]
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
	with.keys = append([]string{key}, v.keys...)
	with.items = append([]*Value{value}, v.items...)
	return &with
}

// At returns the value that path leads to, and false if there is none.
func (v *Value) At(path Path) (*Value, bool) {
	for _, step := range path.steps {
		switch v.kind {
		case KindObject:
			v = v.Get(step.key)
		case KindArray:
			if step.index < 0 || step.index >= len(v.items) {
				return nil, false
			}
			v = v.items[step.index]
		default:
			return nil, false
		}
		if v == nil {
			return nil, false
		}
	}
	return v, true
}
