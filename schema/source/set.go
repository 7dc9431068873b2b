package source

import (
	"errors"
	"fmt"

	"hookledger/schema"
)

// Set is every configured source. It is immutable and safe for concurrent use.
type Set struct {
	all    []*Source
	byName map[string]*Source
	byKey  map[string]*Source
}

// NewSet checks all of configs and returns the sources. Names must differ, and keys
// must. It fails with all problems joined, each a *ConfigError.
func NewSet(configs []Config, lookup Lookup) (*Set, error) {
	set := &Set{byName: make(map[string]*Source), byKey: make(map[string]*Source)}
	p := &Problems{}
	names, keys := make(map[string]int), make(map[string]int)
	for i, c := range configs {
		at := fmt.Sprintf("sources[%d]", i)
		if first, twice := names[c.Name]; twice && c.Name != "" {
			p.Add(at+".name", "%q is the name of sources[%d] too", c.Name, first)
		} else {
			names[c.Name] = i
		}
		key := c.Key
		if key == "" {
			key = c.Name
		}
		if first, twice := keys[key]; twice && key != "" {
			p.Add(at+".key", "%q is the key of sources[%d] too; two sources with one key would share their events", key, first)
		} else {
			keys[key] = i
		}
		s, err := New(c, lookup)
		if err != nil {
			p.list = append(p.list, prefixed(at, err)...)
			continue
		}
		set.all = append(set.all, s)
		set.byName[s.name], set.byKey[s.key] = s, s
	}
	if err := p.err(); err != nil {
		return nil, err
	}
	return set, nil
}

// prefixed returns the problems of err with their keys under at.
func prefixed(at string, err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{fmt.Errorf("%s: %w", at, err)}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		var c *ConfigError
		if errors.As(e, &c) {
			e = &ConfigError{Key: at + "." + c.Key, Problem: c.Problem}
		}
		all = append(all, e)
	}
	return all
}

// All returns the sources in the order of the configuration.
func (s *Set) All() []*Source { return s.all }

// ByName returns the source with a name, and false if there is none.
func (s *Set) ByName(name string) (*Source, bool) {
	src, ok := s.byName[name]
	return src, ok
}

// ByKey returns the source with a key, and false if there is none.
func (s *Set) ByKey(key string) (*Source, bool) {
	src, ok := s.byKey[key]
	return src, ok
}

// Map returns what ev means: see Source.Map. It fails with an error that wraps
// schema.ErrUnknownSource if ev's source is not in the set.
func (s *Set) Map(ev *schema.Event) (schema.Meaning, error) {
	src, ok := s.byKey[ev.Source]
	if !ok {
		return schema.Meaning{}, fmt.Errorf("map event of source %.80q: %w", ev.Source, schema.ErrUnknownSource)
	}
	return src.Map(ev)
}
