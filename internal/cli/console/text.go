package console

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"hookledger/schema"
)

// Safe returns s as it may be sent to a terminal: control characters, escape
// sequences, directions of writing, bytes that are not UTF-8 and other characters without a
// shape of their own are shown as Go would quote them. Providers write account IDs and
// event types, and a terminal obeys what it is sent.
func Safe(s string) string {
	if isSafe(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case safeRune(r):
			b.WriteRune(r)
		default:
			q := strconv.QuoteRuneToASCII(r)
			b.WriteString(q[1 : len(q)-1])
		}
		i += n
	}
	return b.String()
}

func isSafe(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if !safeRune(r) {
			return false
		}
	}
	return true
}

// safeRune accepts what unicode calls printable: letters, marks, numbers,
// punctuation, symbols and the ASCII space. Formatting characters (bidirectional
// overrides, zero width) are not among them.
func safeRune(r rune) bool { return unicode.IsPrint(r) }

// Amount is schema.FormatAmount, safe for a terminal.
func Amount(minor int64, currency string) string { return schema.FormatAmount(minor, Safe(currency)) }

// Count is a number of things: 1 line, 2 lines.
func Count(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.FormatInt(n, 10) + " " + many
}

// Time writes t in UTC, to the second; a dash for no time.
func Time(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}

// JSONTime writes t as RFC 3339 in UTC; nil, null in JSON, for no time.
func JSONTime(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := t.UTC().Format(time.RFC3339Nano)
	return &s
}

// ShortTime writes a time of JSON as Time does.
func ShortTime(s *string) string {
	if s == nil {
		return "-"
	}
	t, err := time.Parse(time.RFC3339Nano, *s)
	if err != nil {
		return *s
	}
	return Time(t)
}
