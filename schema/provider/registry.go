package provider

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"hookledger/schema/source"
)

// definitions holds every provider by name. It is complete before main starts and
// never changed after.
var definitions = map[string]*source.Definition{}

// register adds a provider. It is called from the declaration of a variable in the
// provider's file, so that adding a provider touches no other file.
func register(d source.Definition) *source.Definition { //nolint:unparam // With a result, the declaration of a variable can call it.
	if definitions[d.Name] != nil {
		panic("provider " + d.Name + " is registered twice")
	}
	definitions[d.Name] = &d
	return &d
}

// Names returns the names of all providers, sorted.
func Names() []string { return slices.Sorted(maps.Keys(definitions)) }

// Definition returns the definition with a name. The error ends a sentence that begins
// with the key of the configuration.
func Definition(name string) (*source.Definition, error) {
	d, ok := definitions[name]
	if !ok {
		if name == "" {
			return nil, fmt.Errorf("is missing; it is one of %s", strings.Join(Names(), ", "))
		}
		return nil, fmt.Errorf("is %.40q; it is one of %s", name, strings.Join(Names(), ", "))
	}
	return d, nil
}

// New checks c and returns the source: see source.New.
func New(c source.Config) (*source.Source, error) { return source.New(c, Definition) }

// NewSet checks all of configs and returns the sources: see source.NewSet.
func NewSet(configs []source.Config) (*source.Set, error) { return source.NewSet(configs, Definition) }
