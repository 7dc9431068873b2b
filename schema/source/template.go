package source

import (
	"fmt"
	"net/textproto"
	"strings"
)

// TemplatePart is a piece of a signature's template. Name is empty for a literal,
// else body, ts, url or header; Text is the literal, or the canonical name of the header.
type TemplatePart struct{ Name, Text string }

// SplitTemplate reads a template. There is no way to write a literal brace: no
// scheme known signs one.
func SplitTemplate(template string) ([]TemplatePart, error) {
	var parts []TemplatePart
	for rest := template; rest != ""; {
		open := strings.IndexAny(rest, "{}")
		if open < 0 {
			return append(parts, TemplatePart{Text: rest}), nil
		}
		if open > 0 {
			parts = append(parts, TemplatePart{Text: rest[:open]})
		}
		end := strings.IndexByte(rest[open:], '}')
		if rest[open] == '}' || end < 0 {
			return nil, fmt.Errorf("has a brace that is not closed or not opened")
		}
		switch name := rest[open+1 : open+end]; {
		case name == "body", name == "ts", name == "url":
			parts = append(parts, TemplatePart{Name: name})
		case strings.HasPrefix(name, "header:") && len(name) > len("header:"):
			parts = append(parts, TemplatePart{Name: "header", Text: textproto.CanonicalMIMEHeaderKey(name[len("header:"):])})
		default:
			return nil, fmt.Errorf("knows {body}, {ts}, {url} and {header:NAME}, not {%.40s}", name)
		}
		rest = rest[open+end+1:]
	}
	if len(parts) == 0 {
		return nil, fmt.Errorf("is empty")
	}
	return parts, nil
}
