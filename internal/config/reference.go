package config

import (
	"fmt"
	"strings"
)

// Markdown is the reference of every key as a table for documents.
func Markdown() string {
	var b strings.Builder
	b.WriteString("| key | type | default | meaning |\n| --- | --- | --- | --- |\n")
	for _, k := range Keys() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", k.Path, k.TypeAndUnit(), code(k.Default), escapeCell(k.Meaning))
	}
	return b.String()
}

// TypeAndUnit is the type and, for a bare number, its unit.
func (k Key) TypeAndUnit() string {
	if k.Unit == "" || k.Type == k.Unit {
		return k.Type
	}
	return k.Type + ", " + k.Unit
}

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + escapeCell(s) + "`"
}

func escapeCell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
