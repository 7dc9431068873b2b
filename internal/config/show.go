package config

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
)

// masked stands where a secret would.
const masked = "********"

// Setting is one effective value, fit to be shown: secrets are masked.
type Setting struct {
	Path  string `json:"key"`
	Value string `json:"value"`
	// Origin is "default", a file and line, or an environment variable.
	Origin string `json:"origin"`
}

// Settings lists the effective configuration in the order of the file. Optional
// keys of a source that are not set are left out.
func (l *Loaded) Settings() []Setting {
	var all []Setting
	l.collect(reflect.ValueOf(l.Config), "", "", &all)
	return all
}

// collect appends the settings below v. origin is that of the closest list or map
// around v: its parts came from the same place unless they say otherwise.
func (l *Loaded) collect(v reflect.Value, path, origin string, all *[]Setting) {
	if o, ok := l.origins[path]; ok {
		origin = o
	}
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return
		}
		v = v.Elem()
	}
	switch {
	case !isLeaf(v.Type()) && !isCustom(v.Type()) && v.Kind() == reflect.Struct:
		for _, f := range fieldsOf(v.Type()) {
			l.collect(v.FieldByIndex(f.index), join(path, f.name), origin, all)
		}
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct:
		for i := range v.Len() {
			l.collect(v.Index(i), fmt.Sprintf("%s[%d]", path, i), origin, all)
		}
	case strings.Contains(path, "[") && v.IsZero():
	default:
		if origin == "" {
			origin = "default"
		}
		*all = append(*all, Setting{Path: path, Value: maskValue(path, valueText(v)), Origin: origin})
	}
}

func maskValue(path, value string) string {
	switch {
	case value == "":
		return ""
	case meanings[indexes.ReplaceAllString(path, "[]")].secret:
		return masked
	}
	return maskPasswords(value)
}

var (
	urlPassword = regexp.MustCompile(`(://[^:/@\s]*:)[^/\s]*@`)
	dsnPassword = regexp.MustCompile(`(?i)\b((?:ssl)?password\s*=\s*)('(?:[^'\\]|\\.)*'|[^\s&]*)`)
)

// maskPasswords hides the password of a connection URL or of keyword=value text,
// and leaves everything else as it is.
func maskPasswords(s string) string {
	s = urlPassword.ReplaceAllString(s, "${1}"+masked+"@")
	return dsnPassword.ReplaceAllString(s, "${1}"+masked)
}
