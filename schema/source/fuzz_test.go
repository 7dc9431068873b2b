package source

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"hookledger/schema"
)

// FuzzReadTime checks that a time is one that every part can hold, or none; and that one
// written by the standard library is read as it was.
func FuzzReadTime(f *testing.F) {
	for _, text := range []string{`"2026-11-29T12:00:00Z"`, `"2026-11-29 12:00:00"`, `1795953600`, `1795953600123`, `"1795953600"`, `1e400`, `-1`, `"0000-01-01T00:00:00Z"`, `9999999999999999`, `null`} {
		for _, format := range []string{"", FormatUnix, FormatUnixMS, FormatDateTime} {
			f.Add(text, format)
		}
	}
	f.Fuzz(func(t *testing.T, text, format string) {
		v, err := schema.ParseJSON([]byte(text), schema.Limits{})
		if err != nil {
			return
		}
		got := readTime(v, format)
		if got.IsZero() {
			return
		}
		if got.Year() < 1 || got.Year() > 9999 || got.Location() != time.UTC {
			t.Fatalf("%s as %q: got %s, want a time of the years 1 to 9999 in UTC", text, format, got)
		}
		back, err := time.Parse(time.RFC3339Nano, got.Format(time.RFC3339Nano))
		if err != nil || !back.Equal(got) {
			t.Fatalf("%s as %q: got %s, which is written as another time: %v", text, format, got, err)
		}
	})
}

// FuzzQuery checks that a parameter is what the standard library reads, once.
func FuzzQuery(f *testing.F) {
	f.Add("data.id=123&type=payment", "data.id")
	f.Add("a=1&a=2", "a")
	f.Add("a=%zz;b", "a")
	f.Fuzz(func(t *testing.T, query, name string) {
		got, err := oneParameter(query, name)
		values, parseErr := url.ParseQuery(query)
		if (err == nil) != (parseErr == nil && len(values[name]) == 1) {
			t.Fatalf("%q in %q: got %q %v, the library says %q %v", name, query, got, err, values[name], parseErr)
		}
		if err == nil && got != values[name][0] {
			t.Fatalf("%q in %q: got %q, want %q", name, query, got, values[name][0])
		}
	})
}

// FuzzSplitTemplate checks that the parts of a template are all of it.
func FuzzSplitTemplate(f *testing.F) {
	for _, s := range []string{"{timestamp}.{body}", "{id}.{timestamp}.{body}", "{", "}", "{}", "{header:X-A}", "a{body}b", "{body}{body}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, template string) {
		parts, err := SplitTemplate(template)
		if err != nil {
			return
		}
		if len(parts) == 0 && template != "" {
			t.Fatalf("%q: got no parts", template)
		}
		if !strings.Contains(template, "{") && len(parts) > 1 {
			t.Fatalf("%q: got %d parts of a text without a name", template, len(parts))
		}
	})
}
