package source

import (
	"net/http"
	"strings"
	"time"

	"hookledger/schema"
)

// Formats of a time.
const (
	FormatUnix    = "unix"
	FormatUnixMS  = "unix_ms"
	FormatRFC3339 = "rfc3339"
)

// locator is a checked Locator.
type locator struct {
	path     schema.Path
	header   string
	constant string
	derive   []schema.Path
}

// newLocator checks l; allowed lists the forms that make sense at key.
func newLocator(key string, l Locator, p *Problems, allowed ...string) locator {
	forms := map[string]bool{"path": l.Path != "", "header": l.Header != "", "const": l.Const != "", "derive": len(l.Derive) > 0}
	set := 0
	for _, form := range []string{"path", "header", "const", "derive"} {
		if !forms[form] {
			continue
		}
		set++
		p.OneOf(key, form, allowed...)
	}
	if set > 1 {
		p.Add(key, "is one of %s, not several", strings.Join(allowed, ", "))
	}
	out := locator{constant: l.Const}
	if l.Path != "" {
		out.path = newPath(key, l.Path, p)
	}
	if l.Header != "" {
		out.header = headerName(key, l.Header, p)
	}
	for _, d := range l.Derive {
		out.derive = append(out.derive, newPath(key, d, p))
	}
	return out
}

func newPath(key, text string, p *Problems) schema.Path {
	path, err := schema.ParsePath(text)
	if err != nil {
		p.Add(key, "%v", err)
	}
	return path
}

// oneHeader returns the value of a header that must not be repeated.
func oneHeader(h http.Header, name string) (string, bool) {
	values := h[name]
	if len(values) != 1 {
		return "", false
	}
	return values[0], true
}

// present returns the value at path unless it is missing or null.
func present(v *schema.Value, path schema.Path) (*schema.Value, bool) {
	at, ok := v.At(path)
	if !ok || at.Kind() == schema.KindNull {
		return nil, false
	}
	return at, true
}

// readTime returns the time that v tells, in UTC, or the zero time: an unreadable
// time is no reason to refuse an event.
func readTime(v *schema.Value, format string) time.Time {
	if text, ok := v.Text(); ok && format != FormatUnix && format != FormatUnixMS {
		t, err := time.Parse(time.RFC3339Nano, text)
		if err != nil || t.Year() < 1 || t.Year() > 9999 {
			return time.Time{}
		}
		return t.UTC()
	}
	text, ok := v.Literal()
	if !ok || v.Kind() == schema.KindBool || format == FormatRFC3339 {
		return time.Time{}
	}
	// Both units are read as milliseconds, so that 1764417590.25 s keeps its fraction.
	exponent := 3
	if format == FormatUnixMS {
		exponent = 0
	}
	ms, err := schema.ParseAmount(text, exponent)
	if err != nil || ms < 0 || ms > maxUnixMS {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// maxUnixMS is the end of the year 9999, the last that RFC 3339 can write.
const maxUnixMS = 253_402_300_799_999
