package provider

import (
	"fmt"
	"strings"

	"hookledger/schema"
	"hookledger/schema/source"
)

// Words in which the files of providers are written.
var (
	credits = source.Direction{Always: source.Credit}
	debits  = source.Direction{Always: source.Debit}
)

// testsApart is for providers whose events do not tell, and whose test systems sign with
// secrets of their own.
var testsApart = source.LiveFlag{Instead: "its test system signs with secrets of its own, so give it a source of its own"}

// at is the place that a path leads to.
func at(path string) source.Locator { return source.Locator{Path: path} }

// is holds where the value at path is one of values.
func is(path string, values ...string) source.ConditionConfig {
	return source.ConditionConfig{Path: path, Is: values}
}

// not holds where the value at path is none of values, or nothing is there.
func not(path string, values ...string) source.ConditionConfig {
	return source.ConditionConfig{Path: path, Not: values}
}

// present holds where there is something at path.
func present(path string) source.ConditionConfig {
	return source.ConditionConfig{Path: path, Present: true}
}

// absent holds where there is nothing at path, or null.
func absent(path string) source.ConditionConfig {
	return source.ConditionConfig{Path: path, Absent: true}
}

// blank holds where there is nothing at path, or an empty text.
func blank(path string) source.ConditionConfig {
	return source.ConditionConfig{Path: path, Blank: true}
}

// word returns the text or the whole number at path.
func word(v *schema.Value, path string) (string, error) {
	at, ok := v.At(schema.MustPath(path))
	if !ok || at.Kind() == schema.KindNull {
		return "", fmt.Errorf("there is nothing at %s", path)
	}
	text, ok := at.Literal()
	if _, number := at.Number(); !ok || number && strings.Trim(text, "0123456789") != "" {
		return "", fmt.Errorf("what stands at %s is not a text or a whole number", path)
	}
	return text, nil
}

// typeOrStatus returns the text at path, or else prefix and the text at status in lower
// case; empty if there is neither.
func typeOrStatus(v *schema.Value, path, status, prefix string) string {
	if text, err := word(v, path); err == nil {
		return text
	}
	if text, err := word(v, status); err == nil {
		return prefix + strings.ToLower(text)
	}
	return ""
}
