package source

import (
	"fmt"
	"io"
)

// redacted is what every way of printing a Secret shows.
const redacted = "[secret]"

// Secret is a text that does not print itself: not by fmt, not as JSON or YAML.
// string(s) is the one way to it.
type Secret string

// String hides the secret.
func (Secret) String() string { return redacted }

// Format hides the secret from every verb, %x and %#v among them.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// MarshalText hides the secret from encoders of text: JSON, YAML and others.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// MarshalJSON hides the secret.
func (Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// MarshalYAML hides the secret.
func (Secret) MarshalYAML() (any, error) { return redacted, nil }
