package provider

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

// problems collects what is wrong, so that whoever mends a file sees all of it.
type problems struct{ list []error }

func (p *problems) add(key, format string, args ...any) {
	p.list = append(p.list, &ConfigError{Key: key, Problem: fmt.Sprintf(format, args...)})
}

func (p *problems) err() error { return errors.Join(p.list...) }

// oneOf adds a problem unless value is one of allowed.
func (p *problems) oneOf(key, value string, allowed ...string) {
	for _, a := range allowed {
		if a == value {
			return
		}
	}
	words := strings.Join(allowed, ", ")
	if value == "" {
		p.add(key, "is missing; it is one of %s", words)
		return
	}
	p.add(key, "is %.40q; it is one of %s", value, words)
}
