package source

import (
	"errors"
	"fmt"
	"strings"
)

// ConfigError is one thing that is wrong with the configuration of sources.
type ConfigError struct {
	// Key is the path of the key, such as sources[1].postings[0].unit.
	Key string
	// Problem says what is wrong and what is allowed. It never repeats a secret.
	Problem string
}

// Error returns key and problem.
func (e *ConfigError) Error() string { return e.Key + ": " + e.Problem }

// Problems collects what is wrong, so that whoever mends a file sees all of it.
type Problems struct{ list []error }

// Add adds a problem with the value of a key.
func (p *Problems) Add(key, format string, args ...any) {
	p.list = append(p.list, &ConfigError{Key: key, Problem: fmt.Sprintf(format, args...)})
}

func (p *Problems) err() error { return errors.Join(p.list...) }

// OneOf adds a problem unless value is one of allowed.
func (p *Problems) OneOf(key, value string, allowed ...string) {
	for _, a := range allowed {
		if a == value {
			return
		}
	}
	words := strings.Join(allowed, ", ")
	if value == "" {
		p.Add(key, "is missing; it is one of %s", words)
		return
	}
	p.Add(key, "is %.40q; it is one of %s", value, words)
}
