package provider

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// definition is what is particular to one provider. A provider is one file of this
// package that registers one definition; most are data alone.
type definition struct {
	name string
	// signature are the provider's own knobs; knobs names the keys of signature: that
	// a configuration may set, tune applies those that are more than a tolerance.
	signature Signature
	knobs     []string
	tune      func(*Signature, SignatureConfig, *problems)

	// event says where identity, type and time are; the zero value leaves it to the
	// configuration.
	event EventConfig
	// livemode is the path of the flag that tells live events from test events.
	livemode string
	// postings and statuses are the built-in meaning; nil leaves it to the configuration.
	postings []PostingConfig
	statuses []StatusConfig
	// exponents are the currencies whose decimals differ from ISO 4217 at this
	// provider, by code in upper case.
	exponents map[string]int

	// success is the answer that counts. answer overrides it where it depends on the
	// delivery.
	success SuccessConfig
	answer  func(success Answer, items []Item) Answer
}

// builtin tells whether the provider says itself what its events are and mean.
func (d *definition) builtin() bool { return d.postings != nil || d.statuses != nil }

// definitions holds every provider by name. It is complete before main starts and
// never changed after.
var definitions = map[string]*definition{}

// register adds a provider. It is called from the declaration of a variable in the
// provider's file, so that adding a provider touches no other file.
func register(d definition) *definition {
	if definitions[d.name] != nil {
		panic("provider " + d.name + " is registered twice")
	}
	definitions[d.name] = &d
	return &d
}

// Names returns the names of all providers, sorted.
func Names() []string { return slices.Sorted(maps.Keys(definitions)) }

func definitionOf(name string) (*definition, error) {
	d, ok := definitions[name]
	if !ok {
		if name == "" {
			return nil, fmt.Errorf("is missing; it is one of %s", strings.Join(Names(), ", "))
		}
		return nil, fmt.Errorf("is %.40q; it is one of %s", name, strings.Join(Names(), ", "))
	}
	return d, nil
}
