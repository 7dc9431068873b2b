package config

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
)

// notOurs are variables that Kubernetes sets in every container for a Service whose
// name begins with hookledger. They share our prefix and mean nothing to us.
// Source: Kubernetes documentation, "Service environment variables", v1.34.
var notOurs = regexp.MustCompile(`_SERVICE_HOST$|_SERVICE_PORT(_[A-Z0-9_]+)?$|_PORT$|_PORT_[0-9]+_(TCP|UDP|SCTP)(_PROTO|_PORT|_ADDR)?$`)

// readEnviron sets every value that environ gives and reports names with our
// prefix that are no setting: a misspelt variable must not be silently nothing.
func (l *Loaded) readEnviron(environ []string) []error {
	byEnv := map[string]Key{}
	names := []string{EnvFile}
	for _, k := range Keys() {
		if strings.Contains(k.Path, "[") {
			continue
		}
		byEnv[k.Env] = k
		names = append(names, k.Env)
	}
	inKubernetes := lookup(environ, "KUBERNETES_SERVICE_HOST") != ""

	var problems []error
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, EnvPrefix) || name == EnvFile || isTestOnly(name) {
			continue
		}
		k, known := byEnv[name]
		switch {
		case known:
			problems = append(problems, l.setFromEnv(k, value)...)
		case inKubernetes && notOurs.MatchString(name):
		default:
			problems = append(problems, unknownEnv(name, value, names))
		}
	}
	return problems
}

func unknownEnv(name, value string, names []string) error {
	path := strings.ToLower(strings.Replace(strings.TrimPrefix(name, EnvPrefix), "_", ".", 1))
	if why, ok := refusedReset(path, value); ok {
		return fmt.Errorf("environment variable %s: %s", name, why)
	}
	if best := nearest(name, names); best != "" {
		return fmt.Errorf("unknown environment variable %s: did you mean %s?", name, best)
	}
	return fmt.Errorf("unknown environment variable %s; `hookledger config reference` lists every key and its variable", name)
}

// isTestOnly tells the variables that steer our own tests; programs ignore them.
func isTestOnly(name string) bool { return strings.HasPrefix(name, EnvPrefix+"TEST_") }

func (l *Loaded) setFromEnv(k Key, text string) []error {
	v, ok := fieldAt(reflect.ValueOf(&l.Config).Elem(), k.Path)
	if !ok {
		return []error{fmt.Errorf("environment variable %s: key %s cannot be set", k.Env, k.Path)}
	}
	place := "environment variable " + k.Env
	if strings.TrimSpace(text) == "" {
		return []error{fmt.Errorf("%s is set but empty: unset it or give it a value", place)}
	}
	l.forget(k.Path)
	if !isLeaf(v.Type()) && !isListOfLeaves(v.Type()) {
		v.SetZero()
		problems := l.readYAML(place, []byte(text), v, k.Path)
		l.origins[k.Path] = place
		return problems
	}
	if err := setFromText(v, text, k.Unit); err != nil {
		return []error{fmt.Errorf("%s (%s): %w", place, k.Path, err)}
	}
	l.origins[k.Path] = place
	return nil
}

func setFromText(v reflect.Value, text, unit string) error {
	if isLeaf(v.Type()) {
		return setScalar(v, text, unit)
	}
	list := reflect.MakeSlice(v.Type(), 0, 4)
	for item := range strings.SplitSeq(text, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			return fmt.Errorf("has an empty item; items are separated by single commas")
		}
		one := reflect.New(v.Type().Elem()).Elem()
		if err := setScalar(one, item, unit); err != nil {
			return err
		}
		list = reflect.Append(list, one)
	}
	v.Set(list)
	return nil
}

func isListOfLeaves(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && isLeaf(t.Elem())
}

// forget drops the origins of path and of everything below it.
func (l *Loaded) forget(path string) {
	for p := range l.origins {
		if p == path || strings.HasPrefix(p, path+".") || strings.HasPrefix(p, path+"[") {
			delete(l.origins, p)
		}
	}
}

// fieldAt finds the value of a key without indexes, making what is on the way.
func fieldAt(v reflect.Value, path string) (reflect.Value, bool) {
	for name := range strings.SplitSeq(path, ".") {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		if v.Kind() != reflect.Struct {
			return reflect.Value{}, false
		}
		f, ok := fieldsOf(v.Type()).byName(name)
		if !ok {
			return reflect.Value{}, false
		}
		v = v.FieldByIndex(f.index)
	}
	return v, true
}

// lookup finds name in environ, which may hold it twice: as in os, the last wins.
func lookup(environ []string, name string) string {
	found := ""
	for _, entry := range environ {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			found = value
		}
	}
	return found
}
