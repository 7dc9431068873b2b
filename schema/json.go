package schema

import (
	"errors"
	"slices"
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

// Value is a JSON value. It is safe for concurrent reading.
type Value struct {
	kind Kind
	// text is the decoded string, or for the other kinds what stands in the text.
	text string
	// members are those of an array or object that has any.
	members *members
}

// members are the values of an array, or of an object beside their keys.
type members struct {
	keys  []string
	items []Value
}

// Kind returns the value's type.
func (v *Value) Kind() Kind { return v.kind }

// Text returns a string's text, and false for any other kind.
func (v *Value) Text() (string, bool) { return v.of(KindString) }

// Number returns a number's literal as it stands in the text, and false for any
// other kind.
func (v *Value) Number() (string, bool) { return v.of(KindNumber) }

// Literal returns the text of a string, number or bool, and false for any other.
func (v *Value) Literal() (string, bool) { return v.of(KindString, KindNumber, KindBool) }

func (v *Value) of(kinds ...Kind) (string, bool) {
	if !slices.Contains(kinds, v.kind) {
		return "", false
	}
	return v.text, true
}

// Items returns the values of an array or object, in the order of the text. They must
// not be changed.
func (v *Value) Items() []Value {
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

// Raw returns a copy of the bytes of an object, array, number, bool or null as they stand in
// the text; nil for a string.
func (v *Value) Raw() []byte {
	if v.kind == KindString {
		return nil
	}
	return []byte(v.text)
}

// Get returns the value of an object's key, nil if there is none.
func (v *Value) Get(key string) *Value {
	for i, k := range v.Keys() {
		if k == key {
			return &v.members.items[i]
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
	with.members = &members{append([]string{key}, v.Keys()...), append([]Value{*value}, v.Items()...)}
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
				v = &items[step.index]
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
