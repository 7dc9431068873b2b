package schema

import (
	"fmt"
	"strconv"
	"strings"
)

// Path leads to a value inside a JSON text: data.object.id, items.0.price or
// items[0].price. A dot that belongs to a key is written \. and a backslash \\.
// The zero Path leads to the whole text.
type Path struct {
	text  string
	steps []step
}

// step is a key of an object, or the index of an array where it is a number.
type step struct {
	key   string
	index int
}

// ParsePath reads a path. Empty steps are an error.
func ParsePath(text string) (Path, error) {
	p := Path{text: text}
	var key strings.Builder
	end := func(at int) error {
		if key.Len() == 0 {
			return fmt.Errorf("path %q: the step before character %d is empty", text, at+1)
		}
		p.steps = append(p.steps, newStep(key.String()))
		key.Reset()
		return nil
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '\\':
			i++
			if i == len(text) || (text[i] != '.' && text[i] != '\\' && text[i] != '[') {
				return Path{}, fmt.Errorf(`path %q: a backslash stands before ".", "[" or another backslash`, text)
			}
			key.WriteByte(text[i])
		case '.':
			// Behind an index in brackets the step is complete already.
			if i > 0 && text[i-1] == ']' && key.Len() == 0 && len(p.steps) > 0 {
				continue
			}
			if err := end(i); err != nil {
				return Path{}, err
			}
		case '[':
			if key.Len() > 0 {
				if err := end(i); err != nil {
					return Path{}, err
				}
			}
			n := strings.IndexByte(text[i:], ']')
			if n < 2 || !isDigits(text[i+1:i+n]) {
				return Path{}, fmt.Errorf("path %q: brackets hold the index of an array, such as [0]", text)
			}
			p.steps = append(p.steps, newStep(text[i+1:i+n]))
			i += n
		default:
			key.WriteByte(c)
		}
	}
	if text == "" || key.Len() == 0 && !strings.HasSuffix(text, "]") {
		return Path{}, fmt.Errorf("path %q: the last step is empty", text)
	}
	if key.Len() > 0 {
		p.steps = append(p.steps, newStep(key.String()))
	}
	return p, nil
}

func newStep(s string) step {
	index, err := strconv.Atoi(s)
	if err != nil || index < 0 {
		index = -1
	}
	return step{key: s, index: index}
}

// MustPath is ParsePath for paths written in code.
func MustPath(text string) Path {
	p, err := ParsePath(text)
	if err != nil {
		panic(err)
	}
	return p
}

// String returns the path as it was written.
func (p Path) String() string { return p.text }

// IsZero tells whether p leads to the whole text.
func (p Path) IsZero() bool { return len(p.steps) == 0 }

// Steps returns the keys and indexes of the path, so that a text can be built
// that the path leads into.
func (p Path) Steps() []string {
	steps := make([]string, len(p.steps))
	for i, s := range p.steps {
		steps[i] = s.key
	}
	return steps
}
