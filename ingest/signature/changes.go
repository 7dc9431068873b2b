package signature

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// bodyChange is something that happens to bodies between a provider and a receiver, and
// how to undo it.
type bodyChange struct {
	hint string
	// make returns bodies from which the one at hand may have been made.
	make func(body []byte) [][]byte
}

// bodyChanges are tried in this order, the likely ones first.
var bodyChanges = []bodyChange{
	{"the body matches without the white space around it: something added a line feed or blanks", func(b []byte) [][]byte {
		return [][]byte{bytes.TrimSpace(b), bytes.TrimRight(b, "\r\n")}
	}},
	{"the body matches with a line feed at its end: something trimmed it", func(b []byte) [][]byte {
		return [][]byte{append(bytes.Clone(b), '\n'), append(bytes.Clone(b), "\r\n"...)}
	}},
	{"the body matches with other ends of lines (CRLF or LF): something converted them", func(b []byte) [][]byte {
		lf := bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n"))
		return [][]byte{lf, bytes.ReplaceAll(lf, []byte("\n"), []byte("\r\n"))}
	}},
	{"the body matches when its JSON is written in another way: something parsed it and wrote it again; hand the raw bytes on", reserialized},
	{"the body matches without a byte order mark: something added one", func(b []byte) [][]byte {
		return [][]byte{bytes.TrimPrefix(b, []byte("\ufeff"))}
	}},
	{"the body matches when it is decoded from base64: the gateway before the receiver encodes bodies", func(b []byte) [][]byte {
		if decoded, err := base64.StdEncoding.DecodeString(string(bytes.TrimSpace(b))); err == nil {
			return [][]byte{decoded}
		}
		return nil
	}},
	{"the body matches with the other case of its percent-encoding: something decoded the form and encoded it again", func(b []byte) [][]byte {
		return [][]byte{
			percent.ReplaceAllFunc(b, bytes.ToLower), percent.ReplaceAllFunc(b, bytes.ToUpper),
			bytes.ReplaceAll(b, []byte("%20"), []byte("+")), bytes.ReplaceAll(b, []byte("+"), []byte("%20")),
		}
	}},
}

var percent = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)

// reserialized writes a JSON text as the usual libraries do: compact or indented, with
// blanks behind colons and commas, with and without escapes.
func reserialized(body []byte) [][]byte {
	if !json.Valid(body) {
		return nil
	}
	var compact, two, four, tab bytes.Buffer
	_ = json.Compact(&compact, body)
	_ = json.Indent(&two, body, "", "  ")
	_ = json.Indent(&four, body, "", "    ")
	_ = json.Indent(&tab, body, "", "\t")
	layouts := [][]byte{body, compact.Bytes(), spaced(compact.Bytes()), two.Bytes(), four.Bytes(), tab.Bytes()}
	for _, text := range layouts[:6] {
		if !bytes.HasSuffix(text, []byte("\n")) {
			layouts = append(layouts, append(bytes.Clone(text), '\n'))
		}
	}
	var out [][]byte
	for _, text := range layouts {
		out = append(out, text,
			bytes.ReplaceAll(text, []byte(`\/`), []byte("/")),
			outsideEscapes(text, func(r rune) string {
				if r == '/' {
					return `\/`
				}
				return string(r)
			}),
			outsideEscapes(text, asciiOnly),
			unescaped(text),
		)
		var html bytes.Buffer
		json.HTMLEscape(&html, text)
		out = append(out, html.Bytes())
	}
	return out
}

// spaced adds a blank behind colons and commas outside strings, as Python's json does.
func spaced(compact []byte) []byte {
	out := make([]byte, 0, len(compact)+len(compact)/8)
	inString := false
	for i := 0; i < len(compact); i++ {
		c := compact[i]
		out = append(out, c)
		switch {
		case inString && c == '\\' && i+1 < len(compact):
			i++
			out = append(out, compact[i])
		case c == '"':
			inString = !inString
		case !inString && (c == ':' || c == ','):
			out = append(out, ' ')
		}
	}
	return out
}

// outsideEscapes rewrites the characters of a JSON text that are not part of an escape.
func outsideEscapes(text []byte, rewrite func(rune) string) []byte {
	var out bytes.Buffer
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		if r == '\\' && i+1 < len(text) {
			out.Write(text[i : i+2])
			i += 2
			continue
		}
		out.WriteString(rewrite(r))
		i += n
	}
	return out.Bytes()
}

func asciiOnly(r rune) string {
	switch {
	case r < utf8.RuneSelf:
		return string(r)
	case r > 0xffff:
		high, low := utf16.EncodeRune(r)
		return fmt.Sprintf(`\u%04x\u%04x`, high, low)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

var escape = regexp.MustCompile(`(?:\\u[0-9a-fA-F]{4})+`)

// unescaped writes characters in place of their \u escapes, but for those JSON needs.
func unescaped(text []byte) []byte {
	return escape.ReplaceAllFunc(text, func(match []byte) []byte {
		var s string
		if json.Unmarshal([]byte(`"`+string(match)+`"`), &s) != nil || strings.ContainsAny(s, "\"\\") || strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 }) {
			return match
		}
		return []byte(s)
	})
}
