package source

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"hookledger/schema"
)

// Formats of a time.
const (
	FormatUnix     = "unix"
	FormatUnixMS   = "unix_ms"
	FormatRFC3339  = "rfc3339"
	FormatDateTime = "datetime"
)

// dateTime is the layout of FormatDateTime, in UTC.
const dateTime = "2006-01-02 15:04:05"

// locator is a checked Locator.
type locator struct {
	path        schema.Path
	header      string
	query       string
	constant    string
	derive      []schema.Path
	join        []schema.Path
	separator   string
	perDelivery bool
	or          []locator
	textOnly    bool
}

var locatorForms = []string{"path", "header", "query", "const", "derive", "join"}

// newLocator checks l; allowed lists the forms that make sense at key.
func newLocator(key string, l Locator, p *Problems, allowed ...string) locator {
	forms := map[string]bool{
		"path": l.Path != "", "header": l.Header != "", "query": l.Query != "",
		"const": l.Const != "", "derive": len(l.Derive) > 0, "join": len(l.Join) > 0,
	}
	set := 0
	for _, form := range locatorForms {
		if !forms[form] {
			continue
		}
		set++
		p.OneOf(key, form, allowed...)
	}
	if set > 1 {
		p.Add(key, "is one of %s, not several", strings.Join(allowed, ", "))
	}
	if set == 0 && (len(l.Or) > 0 || l.PerDelivery || l.Separator != "") {
		p.Add(key, "is missing its first place; it is one of %s", strings.Join(allowed, ", "))
	}
	out := locator{constant: l.Const, query: l.Query, perDelivery: l.PerDelivery, separator: l.Separator}
	if out.separator == "" {
		out.separator = ":"
	}
	if l.Path != "" {
		out.path = newPath(key, l.Path, p)
	}
	if l.Header != "" {
		out.header = HeaderName(key, l.Header, p)
	}
	for _, d := range l.Derive {
		out.derive = append(out.derive, newPath(key, d, p))
	}
	for _, j := range l.Join {
		out.join = append(out.join, newPath(key, j, p))
	}
	for i, o := range l.Or {
		out.or = append(out.or, newLocator(fmt.Sprintf("%s.or[%d]", key, i), o, p, allowed...))
	}
	return out
}

// requireText makes anything but a string at a path an error: 1 and "1" would be one
// event. A provider that numbers its events joins the one number instead.
func (l *locator) requireText() {
	l.textOnly = true
	for i := range l.or {
		l.or[i].requireText()
	}
}

func (l *locator) isSet() bool {
	return !l.path.IsZero() || l.header != "" || l.query != "" || l.constant != "" || len(l.derive) > 0 || len(l.join) > 0
}

// shared tells whether all items of a batch would have the text.
func (l *locator) shared() bool {
	if l.header != "" || l.query != "" {
		return true
	}
	return slices.ContainsFunc(l.or, func(o locator) bool { return o.shared() })
}

// errAbsent says that a locator leads to nothing.
var errAbsent = errors.New("there is nothing")

// text returns the text that l leads to in a delivery or an item v of it. It fails with
// an error that wraps errAbsent if it leads to nothing.
func (l *locator) text(d Delivery, v *schema.Value) (string, error) {
	text, err := l.first(d, v)
	if err == nil && l.perDelivery {
		text += l.separator + d.ID
	}
	for i := range l.or {
		if !errors.Is(err, errAbsent) {
			break
		}
		text, err = l.or[i].text(d, v)
	}
	return text, err
}

func (l *locator) first(d Delivery, v *schema.Value) (string, error) {
	switch {
	case l.constant != "":
		return l.constant, nil
	case l.header != "":
		return oneHeader(d.Header, l.header)
	case l.query != "":
		return oneParameter(d.Query, l.query)
	case len(l.derive) > 0:
		return Derive(v, l.derive...)
	case len(l.join) > 0:
		parts := make([]string, len(l.join))
		for i, path := range l.join {
			var err error
			if parts[i], err = word(v, path); err != nil {
				return "", err
			}
			// What has no name has none to be joined: all of its kind would be one.
			if parts[i] == "" {
				return "", fmt.Errorf("%w at %s but an empty text", errAbsent, path)
			}
		}
		return strings.Join(parts, l.separator), nil
	}
	if l.textOnly {
		return stringAt(v, l.path)
	}
	return word(v, l.path)
}

// stringAt returns the text of a string.
func stringAt(v *schema.Value, path schema.Path) (string, error) {
	at, ok := present(v, path)
	if !ok {
		return "", fmt.Errorf("%w at %s", errAbsent, path)
	}
	text, ok := at.Text()
	if !ok {
		return "", fmt.Errorf("what stands at %s is not a string", path)
	}
	return text, nil
}

// word returns the literal of a single value. Of a number it must be digits alone: 1.0
// and 1e0 would be other names of 1.
func word(v *schema.Value, path schema.Path) (string, error) {
	at, ok := present(v, path)
	if !ok {
		return "", fmt.Errorf("%w at %s", errAbsent, path)
	}
	text, ok := at.Literal()
	if !ok || at.Kind() == schema.KindNumber && !isWhole(text) {
		return "", fmt.Errorf("what stands at %s is not a text or a whole number", path)
	}
	return text, nil
}

// Derive is the hex SHA-256 of the literals at paths, each preceded by its length
// as a big-endian uint32, so that ("ab", "c") and ("a", "bc") are two events.
func Derive(v *schema.Value, paths ...schema.Path) (string, error) {
	h := sha256.New()
	for _, path := range paths {
		at, ok := present(v, path)
		if !ok {
			return "", fmt.Errorf("%w at %s", errAbsent, path)
		}
		text, ok := at.Literal()
		if !ok {
			return "", fmt.Errorf("what stands at %s is not a single value", path)
		}
		var n [4]byte
		binary.BigEndian.PutUint32(n[:], uint32(len(text)))
		h.Write(n[:])
		h.Write([]byte(text))
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func newPath(key, text string, p *Problems) schema.Path {
	path, err := schema.ParsePath(text)
	if err != nil {
		p.Add(key, "%v", err)
	}
	return path
}

// oneHeader returns the value of a header that must not be repeated.
func oneHeader(h http.Header, name string) (string, error) {
	switch values := h[name]; len(values) {
	case 0:
		return "", fmt.Errorf("%w in header %s", errAbsent, name)
	case 1:
		return values[0], nil
	}
	return "", fmt.Errorf("header %s must be there once", name)
}

// oneParameter returns the value of a parameter that must not be repeated.
func oneParameter(query, name string) (string, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return "", errors.New("the query of the URL is not encoded as it should be")
	}
	switch values := values[name]; len(values) {
	case 0:
		return "", fmt.Errorf("%w in parameter %s of the URL", errAbsent, name)
	case 1:
		return values[0], nil
	}
	return "", fmt.Errorf("parameter %s of the URL must be there once", name)
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
		layout := time.RFC3339Nano
		if format == FormatDateTime {
			layout = dateTime
		}
		t, err := time.Parse(layout, text)
		if err != nil || t.Year() < 1 || t.Year() > 9999 {
			return time.Time{}
		}
		return t.UTC()
	}
	text, ok := v.Literal()
	if !ok || v.Kind() == schema.KindBool || format == FormatRFC3339 || format == FormatDateTime {
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
