package config

import (
	"encoding"
	"reflect"
	"strings"
	"time"
)

var (
	durationType        = reflect.TypeFor[time.Duration]()
	timeType            = reflect.TypeFor[time.Time]()
	textUnmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()
	yamlUnmarshalerType = reflect.TypeFor[selfReader]()
)

// selfReader is a type that reads itself from YAML, as package yaml calls it.
type selfReader interface {
	UnmarshalYAML(unmarshal func(any) error) error
}

// field is one key of a struct: its name in YAML and where it lives.
type field struct {
	name  string
	index []int
	typ   reflect.Type
}

type fields []field

// fieldsOf lists the keys of struct type t in the order in which they are
// declared; embedded structs and those marked inline lend theirs.
func fieldsOf(t reflect.Type) fields {
	var all fields
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case name == "-":
		case strings.Contains(options, "inline") || (f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct):
			for _, inner := range fieldsOf(f.Type) {
				inner.index = append([]int{i}, inner.index...)
				all = append(all, inner)
			}
		case !f.IsExported():
		default:
			if name == "" {
				name = strings.ToLower(f.Name)
			}
			all = append(all, field{name: name, index: []int{i}, typ: f.Type})
		}
	}
	return all
}

func (fs fields) byName(name string) (field, bool) {
	for _, f := range fs {
		if f.name == name {
			return f, true
		}
	}
	return field{}, false
}

// isLeaf says whether a value of type t is written as one scalar.
func isLeaf(t reflect.Type) bool {
	if t == durationType || t == timeType || reflect.PointerTo(t).Implements(textUnmarshalerType) {
		return true
	}
	switch t.Kind() {
	case reflect.Struct, reflect.Slice, reflect.Map, reflect.Pointer, reflect.Interface, reflect.Func, reflect.Chan:
		return false
	}
	return true
}

// isCustom says whether values of type t read themselves from YAML: a path or a
// group, for example. Their own keys are part of their meaning.
func isCustom(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(yamlUnmarshalerType)
}

// join appends name to the path of its group.
func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
