package provider

import "hookledger/schema/source"

// Words in which the files of providers are written.
var (
	credits = source.Direction{Always: source.Credit}
	debits  = source.Direction{Always: source.Debit}
)

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
