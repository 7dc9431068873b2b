package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// DevFile is where `dev` leaves the configuration of what it runs, relative to the
// working directory.
const DevFile = ".hookledger/hookledger.yaml"

// defaultFiles are tried in this order when no file was named.
var defaultFiles = []string{"hookledger.yaml", DevFile}

// Loaded is a configuration and where each of its values came from.
type Loaded struct {
	Config
	// File is the file that was read, empty if there was none.
	File string

	origins map[string]string
}

// Error is a configuration that cannot be used: every problem found, each with its
// place where it has one.
type Error struct {
	Problems []error
}

// Error lists the problems, one a line.
func (e *Error) Error() string {
	if len(e.Problems) == 1 {
		return "configuration: " + e.Problems[0].Error()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "configuration has %d problems:", len(e.Problems))
	for _, p := range e.Problems {
		b.WriteString("\n  " + p.Error())
	}
	return b.String()
}

// Unwrap returns the problems.
func (e *Error) Unwrap() []error { return e.Problems }

// Load reads the configuration: defaults, then the file, then environ (as from
// os.Environ). path is the file of --config; without one HOOKLEDGER_CONFIG names
// it, else the first of the usual names that exists is read, else none. The result
// has been validated; an error is an *Error. Secrets are not read: see Secrets.
func Load(path string, environ []string) (*Loaded, error) {
	file, err := findFile(path, environ)
	if err != nil {
		return nil, &Error{[]error{err}}
	}
	var text []byte
	if file != "" {
		if text, err = os.ReadFile(file); err != nil {
			return nil, &Error{[]error{fmt.Errorf("read configuration: %w", err)}}
		}
	}
	return Parse(file, text, environ)
}

// Parse reads a configuration from text, the contents of file; see Load.
func Parse(file string, text []byte, environ []string) (*Loaded, error) {
	l := &Loaded{Config: Default(), File: file, origins: map[string]string{}}
	problems := l.readFile(file, text)
	problems = append(problems, l.readEnviron(environ)...)
	if len(problems) == 0 {
		l.Database.encrypt()
		problems = l.validate()
	}
	if len(problems) > 0 {
		return nil, &Error{problems}
	}
	return l, nil
}

// findFile follows the search order. A file that was named must exist.
func findFile(path string, environ []string) (string, error) {
	if path != "" {
		return path, nil
	}
	if named := lookup(environ, EnvFile); named != "" {
		return named, nil
	}
	for _, name := range defaultFiles {
		name = filepath.FromSlash(name)
		switch _, err := os.Stat(name); {
		case err == nil:
			return name, nil
		case !errors.Is(err, fs.ErrNotExist):
			return "", fmt.Errorf("look for configuration: %w", err)
		}
	}
	return "", nil
}

func (l *Loaded) readFile(file string, text []byte) []error {
	return l.readYAML(file, text, reflect.ValueOf(&l.Config).Elem(), "")
}

// readYAML decodes text onto v, the value of path. name is for positions.
func (l *Loaded) readYAML(name string, text []byte, v reflect.Value, path string) []error {
	d := &decoder{name: name, origins: l.origins}
	documents := yaml.NewDecoder(bytes.NewReader(text))
	var doc, more yaml.Node
	switch err := documents.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return []error{fmt.Errorf("%s: %s", name, strings.TrimPrefix(err.Error(), "yaml: "))}
	}
	body := doc.Content[0]
	if body.Kind == yaml.ScalarNode && body.Value == "" && body.Style == 0 {
		return nil // a document marker and nothing else
	}
	d.node(v, body, path)
	if err := documents.Decode(&more); !errors.Is(err, io.EOF) {
		d.problems = append(d.problems, fmt.Errorf("%s: configuration is one document, and something follows it", name))
	}
	return d.problems
}
