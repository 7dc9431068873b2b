package config

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"
)

// EnvPrefix begins the name of every environment variable that hookledger reads.
const EnvPrefix = "HOOKLEDGER_"

// EnvFile names the configuration file, as --config does.
const EnvFile = EnvPrefix + "CONFIG"

// Key is one setting.
type Key struct {
	// Path is its place in the file: kafka.brokers; keys of a source are
	// sources[].name.
	Path string
	// Env is the environment variable that overrides the file.
	Env string
	// Type is a word for people: text, integer, size, duration, list of text…
	Type string
	// Default is the value without file and environment, empty if there is none.
	Default string
	// Unit is the unit of a bare number, empty if it has none.
	Unit string
	// Meaning says what the setting does.
	Meaning string
	// Secret values are never shown.
	Secret bool
}

// Keys lists every setting in the order of the file.
func Keys() []Key {
	return append([]Key(nil), keysOnce()...)
}

var keysOnce = sync.OnceValue(func() []Key {
	defaults := Default()
	var keys []Key
	collectKeys(reflect.ValueOf(defaults), "", &keys)
	return keys
})

func collectKeys(v reflect.Value, path string, keys *[]Key) {
	for _, f := range fieldsOf(v.Type()) {
		collectKey(v.FieldByIndex(f.index), join(path, f.name), keys)
	}
}

func collectKey(v reflect.Value, path string, keys *[]Key) {
	t := v.Type()
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
		v = reflect.New(t).Elem()
	}
	if !isLeaf(t) && !isCustom(t) {
		switch {
		case t.Kind() == reflect.Struct:
			collectKeys(v, path, keys)
			return
		case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
			*keys = append(*keys, newKey(v, path))
			collectKeys(reflect.New(t.Elem()).Elem(), path+"[]", keys)
			return
		}
	}
	*keys = append(*keys, newKey(v, path))
}

func newKey(v reflect.Value, path string) Key {
	m := meanings[path]
	return Key{
		Path: path, Env: envOf(path), Type: or(m.kind, typeWord(v.Type(), m.unit)), Default: defaultText(v),
		Unit: m.unit, Meaning: m.text, Secret: m.secret,
	}
}

// envOf is the one rule: dots become underscores, letters become upper case. Keys
// inside a list are set by the variable of the list, which holds YAML.
func envOf(path string) string {
	path, _, _ = strings.Cut(path, "[")
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(path, ".", "_"))
}

func typeWord(t reflect.Type, unit string) string {
	switch {
	case isCustom(t):
		return "path or group"
	case t == durationType:
		return "duration"
	case t == timeType:
		return "time"
	case unit == unitBytes:
		return "size"
	case isLeaf(t) && reflect.PointerTo(t).Implements(textUnmarshalerType):
		return "text"
	}
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Float64:
		return "number"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Struct {
			return "list of groups"
		}
		return "list of " + typeWord(t.Elem(), "")
	case reflect.Map:
		return "map of " + typeWord(t.Elem(), "")
	case reflect.Struct:
		return "group"
	}
	return "integer"
}

func defaultText(v reflect.Value) string {
	if v.IsZero() && v.Kind() != reflect.Bool {
		return ""
	}
	return valueText(v)
}

// valueText writes a value as it could stand in the file or the environment.
func valueText(v reflect.Value) string {
	if !v.IsValid() {
		return ""
	}
	switch x := v.Interface().(type) {
	case time.Duration:
		return durationText(x)
	case time.Time:
		if x.IsZero() {
			return ""
		}
		return x.UTC().Format(time.RFC3339)
	}
	if isCustom(v.Type()) || v.Kind() == reflect.Map {
		return flowText(v.Interface())
	}
	switch v.Kind() {
	case reflect.Pointer:
		return valueText(v.Elem())
	case reflect.Slice:
		items := make([]string, v.Len())
		for i := range items {
			items[i] = valueText(v.Index(i))
		}
		return strings.Join(items, ",")
	case reflect.String:
		return v.String()
	case reflect.Bool:
		return strconv.FormatBool(v.Bool())
	}
	return fmt.Sprint(v.Interface())
}

// flowText writes a value as one line of YAML.
func flowText(v any) string {
	var n yaml.Node
	if n.Encode(v) != nil {
		return ""
	}
	n.Style |= yaml.FlowStyle
	text, err := yaml.Marshal(&n)
	if err != nil {
		return ""
	}
	return strings.Join(strings.Fields(string(text)), " ")
}

// durationText drops the zero units that time.Duration prints: 168h, not 168h0m0s.
func durationText(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func unitOf(path string) string {
	return meanings[indexes.ReplaceAllString(path, "[]")].unit
}
