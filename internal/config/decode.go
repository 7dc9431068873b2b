package config

import (
	"encoding"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// decoder writes a YAML tree onto a struct, strictly, and collects every problem
// it meets instead of stopping at the first: whoever mends a file wants them all.
type decoder struct {
	// name is what positions are reported in: a file or an environment variable.
	name string
	// origins receives the place of every value that was set.
	origins map[string]string
	depth   int

	problems []error
}

// maxDepth bounds nesting, so that an alias that contains itself is an error.
const maxDepth = 32

func (d *decoder) failf(n *yaml.Node, format string, args ...any) {
	d.problems = append(d.problems, fmt.Errorf("%s: %s", d.place(n), fmt.Sprintf(format, args...)))
}

func (d *decoder) place(n *yaml.Node) string {
	if n.Line > 0 {
		return fmt.Sprintf("%s:%d", d.name, n.Line)
	}
	return d.name
}

// node sets v from n. path is the key of v, empty for the whole configuration.
func (d *decoder) node(v reflect.Value, n *yaml.Node, path string) {
	d.depth++
	defer func() { d.depth-- }()
	if d.depth > maxDepth {
		d.failf(n, "%s is nested more than %d levels deep", path, maxDepth)
		return
	}
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Style&yaml.TaggedStyle != 0 {
		d.failf(n, "%s: tags such as %s are not supported", path, n.Tag)
		return
	}
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		d.failf(n, "%s has no value: remove the key or give it one", or(path, "the configuration"))
		return
	}
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		d.node(v.Elem(), n, path)
		return
	}
	if isCustom(v.Type()) {
		d.custom(v, n, path)
		return
	}
	if isLeaf(v.Type()) {
		d.scalar(v, n, path)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.mapping(v, n, path)
	case reflect.Slice:
		d.sequence(v, n, path)
	case reflect.Map:
		d.dictionary(v, n, path)
	default:
		d.scalar(v, n, path)
	}
}

// custom lets a value read itself. Its keys are checked first, those of values of its
// own kind within it too: the type's own reader would take a misspelt one for none.
func (d *decoder) custom(v reflect.Value, n *yaml.Node, path string) {
	before := len(d.problems)
	d.checkKeys(v.Type(), n, path)
	if len(d.problems) > before {
		return
	}
	if err := n.Decode(v.Addr().Interface()); err != nil {
		// The reader's own words come first; what the library adds repeats values.
		words, _, _ := strings.Cut(err.Error(), ": yaml:")
		d.failf(n, "%s %s", path, words)
		return
	}
	d.origins[path] = d.place(n)
}

// checkKeys reports keys below n that type t does not have.
func (d *decoder) checkKeys(t reflect.Type, n *yaml.Node, path string) {
	d.depth++
	defer func() { d.depth-- }()
	if d.depth > maxDepth {
		d.failf(n, "%s is nested more than %d levels deep", path, maxDepth)
		return
	}
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch {
	case n.Kind == yaml.SequenceNode && t.Kind() == reflect.Slice:
		for i, item := range n.Content {
			d.checkKeys(t.Elem(), item, fmt.Sprintf("%s[%d]", path, i))
		}
	case n.Kind == yaml.MappingNode && t.Kind() == reflect.Struct && !isLeaf(t):
		fields := fieldsOf(t)
		for _, kv := range d.pairs(n, path) {
			if f, ok := fields.byName(kv.name); ok {
				d.checkKeys(f.typ, kv.value, join(path, kv.name))
				continue
			}
			names := make([]string, len(fields))
			for i, f := range fields {
				names[i] = f.name
			}
			hint := "; it has " + strings.Join(names, ", ")
			if best := nearest(kv.name, names); best != "" {
				hint = ": did you mean " + join(path, best) + "?"
			}
			d.failf(kv.key, "unknown key %s%s", join(path, kv.name), hint)
		}
	}
}

func (d *decoder) mapping(v reflect.Value, n *yaml.Node, path string) {
	fields := fieldsOf(v.Type())
	for _, kv := range d.pairs(n, path) {
		full := join(path, kv.name)
		f, ok := fields.byName(kv.name)
		if !ok {
			d.unknown(kv, full)
			continue
		}
		d.node(v.FieldByIndex(f.index), kv.value, full)
	}
}

// pair is an entry of a mapping.
type pair struct {
	name       string
	key, value *yaml.Node
}

// pairs returns the entries of a mapping. A key that is there twice is a problem: one
// of the two values would be silently nothing.
func (d *decoder) pairs(n *yaml.Node, path string) []pair {
	if n.Kind != yaml.MappingNode {
		d.failf(n, "%s must be a group of keys, not %s", or(path, "the configuration"), kindOf(n))
		return nil
	}
	var all []pair
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		switch {
		case key.Tag == "!!merge":
			d.failf(key, "merge keys (<<) are not supported")
		case key.Kind != yaml.ScalarNode:
			d.failf(key, "a key below %s must be a word", or(path, "the top"))
		case lines[key.Value] > 0:
			d.failf(key, "%s is there twice, first in line %d", join(path, key.Value), lines[key.Value])
		default:
			lines[key.Value] = key.Line
			all = append(all, pair{key.Value, key, value})
		}
	}
	return all
}

func (d *decoder) unknown(kv pair, full string) {
	value, _ := scalarText(kv.value)
	d.failf(kv.key, "%s", unknownKey(full, value))
}

func (d *decoder) sequence(v reflect.Value, n *yaml.Node, path string) {
	if n.Kind != yaml.SequenceNode {
		// One value stands for a list of one.
		if n.Kind != yaml.ScalarNode || !isLeaf(v.Type().Elem()) {
			d.failf(n, "%s must be a list, not %s", path, kindOf(n))
			return
		}
		one := reflect.MakeSlice(v.Type(), 1, 1)
		d.node(one.Index(0), n, path)
		v.Set(one)
		return
	}
	list := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
	for i, item := range n.Content {
		d.node(list.Index(i), item, fmt.Sprintf("%s[%d]", path, i))
	}
	v.Set(list)
	d.origins[path] = d.place(n)
}

func (d *decoder) dictionary(v reflect.Value, n *yaml.Node, path string) {
	m := reflect.MakeMap(v.Type())
	for _, kv := range d.pairs(n, path) {
		elem := reflect.New(v.Type().Elem()).Elem()
		d.node(elem, kv.value, join(path, kv.name))
		m.SetMapIndex(reflect.ValueOf(kv.name).Convert(v.Type().Key()), elem)
	}
	v.Set(m)
	d.origins[path] = d.place(n)
}

func (d *decoder) scalar(v reflect.Value, n *yaml.Node, path string) {
	text, ok := scalarText(n)
	if !ok {
		d.failf(n, "%s must be a single value, not %s", path, kindOf(n))
		return
	}
	if err := setScalar(v, text, unitOf(path)); err != nil {
		d.failf(n, "%s: %v", path, err)
		return
	}
	d.origins[path] = d.place(n)
}

// setScalar parses text as the type of v. A size may be written 1048576 or 1MiB.
// Values are never repeated in errors: they may be secrets.
func setScalar(v reflect.Value, text, unit string) error {
	if v.Type() == durationType {
		dur, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("must be a duration such as 500ms, 10s or 168h")
		}
		v.SetInt(int64(dur))
		return nil
	}
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if err := u.UnmarshalText([]byte(text)); err != nil {
			if v.Type() == timeType {
				return fmt.Errorf("must be a time such as 2027-01-01T00:00:00Z")
			}
			return err
		}
		return nil
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("must be true or false")
		}
		v.SetBool(b)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		i, err := parseInteger(text, unit)
		if err != nil {
			return err
		}
		if v.OverflowInt(i) {
			return fmt.Errorf("is beyond the range of its type")
		}
		v.SetInt(i)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		i, err := parseInteger(text, unit)
		if err != nil {
			return err
		}
		if i < 0 || v.OverflowUint(uint64(i)) {
			return fmt.Errorf("is beyond the range of its type")
		}
		v.SetUint(uint64(i))
	case reflect.Float64:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("must be a number")
		}
		v.SetFloat(f)
	default:
		return fmt.Errorf("cannot be written as one value")
	}
	return nil
}

var sizes = []struct {
	suffix string
	bytes  int64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1},
}

func parseInteger(text, unit string) (int64, error) {
	digits := strings.ReplaceAll(text, "_", "")
	if unit == unitBytes {
		for _, s := range sizes {
			if head, ok := strings.CutSuffix(digits, s.suffix); ok {
				i, err := strconv.ParseInt(strings.TrimSpace(head), 10, 64)
				if err != nil || i > (1<<62)/s.bytes || i < 0 {
					return 0, fmt.Errorf("must be a size such as 1048576 or 1MiB")
				}
				return i * s.bytes, nil
			}
		}
	}
	i, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		if unit == unitBytes {
			return 0, fmt.Errorf("must be a size such as 1048576 or 1MiB")
		}
		return 0, fmt.Errorf("must be a whole number")
	}
	return i, nil
}

// scalarText returns the text of a scalar as it was written, so that a topic called
// 1e3 stays a topic called 1e3.
func scalarText(n *yaml.Node) (string, bool) {
	return n.Value, n.Kind == yaml.ScalarNode
}

func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.SequenceNode:
		return "a list"
	case yaml.MappingNode:
		return "a group of keys"
	}
	return "a single value"
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
