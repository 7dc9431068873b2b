package source

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"hookledger/schema"
)

// Delivery is one HTTP attempt whose signature holds.
type Delivery struct {
	Header http.Header
	Body   []byte
}

// Item is one event of a delivery.
type Item struct {
	ID         string
	Type       string
	OccurredAt time.Time
	// Body is the event's own bytes, a part of the delivery's.
	Body        []byte
	ContentType string
}

// IdentifyError says why no event could be read from a verified delivery.
type IdentifyError struct {
	// Reason is one of the Identify… constants.
	Reason string
	// Detail names places, never values.
	Detail string
}

// Reasons of an IdentifyError.
const (
	IdentifyBody = "body_malformed"
	IdentifyID   = "event_id"
	IdentifyType = "event_type"
)

// Error returns reason and detail.
func (e *IdentifyError) Error() string { return "identify event: " + e.Reason + ": " + e.Detail }

// maxTypeBytes bounds an event's type, which is written into the record's headers.
const maxTypeBytes = 255

// Media types of an event's body.
const (
	mediaJSON = "application/json"
	mediaForm = "application/x-www-form-urlencoded"
)

type eventRules struct {
	form       bool
	batch      bool
	items      schema.Path
	id         locator
	typ        locator
	time       locator
	timeFormat string
}

// newEvent merges what is configured with what the definition says.
func newEvent(def *Definition, c EventConfig, sig *Signature, p *Problems) eventRules {
	if def.builtin() {
		if c.Body != "" || c.Items != "" || c.TimeFormat != "" || !c.ID.IsZero() || !c.Type.IsZero() || !c.Time.IsZero() {
			p.Add("event", "provider %s says itself where its events are identified; remove the key", def.Name)
		}
		c = EventConfig{}
	}
	merge := func(configured *Locator, built Locator) {
		if configured.IsZero() {
			*configured = built
		}
	}
	if built := def.Event.ID; !built.IsZero() {
		if !c.ID.IsZero() {
			p.Add("event.id", "provider %s says itself where the ID is; remove the key", def.Name)
		}
		if built.Header != "" {
			built.Header = sig.IDHeader
		}
		c.ID = built
	}
	merge(&c.Type, def.Event.Type)
	merge(&c.Time, def.Event.Time)
	if c.ID.IsZero() {
		p.Add("event.id", "is missing; it is a path, {header: h} or {derive: [paths]}")
	}
	r := eventRules{
		id:         newLocator("event.id", c.ID, p, "path", "header", "derive"),
		typ:        newLocator("event.type", c.Type, p, "path", "header", "const"),
		time:       newLocator("event.time", c.Time, p, "path"),
		timeFormat: c.TimeFormat,
	}
	if c.TimeFormat != "" {
		p.OneOf("event.time_format", c.TimeFormat, FormatRFC3339, FormatUnix, FormatUnixMS)
	}
	if c.Body != "" {
		p.OneOf("event.body", c.Body, "json", "form")
		r.form = c.Body == "form"
	}
	if c.Items != "" {
		r.batch, r.items = true, newPath("event.items", c.Items, p)
		if r.form {
			p.Add("event.items", "needs a JSON body")
		}
		if r.id.header != "" {
			p.Add("event.id", "is a header, which the items of a delivery would share; name a path or derive")
		}
	}
	return r
}

// Accepts tells whether a delivery with this Content-Type can be read. None at all is
// taken for what the source expects.
func (s *Source) Accepts(contentType string) bool {
	if contentType == "" {
		return true
	}
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return false
	}
	if charset, ok := params["charset"]; ok && !strings.EqualFold(charset, "utf-8") {
		return false
	}
	if s.event.form {
		return media == mediaForm
	}
	return media == mediaJSON || media == "text/json" || strings.HasPrefix(media, "application/") && strings.HasSuffix(media, "+json")
}

// Identify reads a delivery once, strictly, and returns its events; none if it is a
// batch of none. It fails with an *IdentifyError.
func (s *Source) Identify(d Delivery) ([]Item, error) {
	root, err := s.read(d.Body)
	if err != nil {
		return nil, &IdentifyError{IdentifyBody, err.Error()}
	}
	if !s.event.batch {
		item, err := s.item(d, root, d.Body)
		if err != nil {
			return nil, err
		}
		return []Item{item}, nil
	}
	list, ok := root.At(s.event.items)
	if !ok || list.Kind() != schema.KindArray {
		return nil, &IdentifyError{IdentifyBody, fmt.Sprintf("there is no list at %s", s.event.items)}
	}
	items := make([]Item, 0, len(list.Items()))
	for i, v := range list.Items() {
		if v.Kind() != schema.KindObject {
			return nil, &IdentifyError{IdentifyBody, fmt.Sprintf("item %d of %s is not an object", i, s.event.items)}
		}
		item, err := s.item(d, v, v.Raw())
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}

func (s *Source) item(d Delivery, v *schema.Value, body []byte) (Item, error) {
	item := Item{Body: body, ContentType: mediaJSON}
	if s.event.form {
		item.ContentType = mediaForm
	}
	var err error
	if item.ID, err = s.eventID(d, v); err != nil {
		return Item{}, &IdentifyError{IdentifyID, err.Error()}
	}
	if item.Type, err = s.eventType(d, v); err != nil {
		return Item{}, &IdentifyError{IdentifyType, err.Error()}
	}
	if !s.event.time.path.IsZero() {
		if at, ok := present(v, s.event.time.path); ok {
			item.OccurredAt = readTime(at, s.event.timeFormat)
		}
	}
	return item, nil
}

func (s *Source) eventID(d Delivery, v *schema.Value) (string, error) {
	id := s.event.id
	switch {
	case id.header != "":
		text, ok := oneHeader(d.Header, id.header)
		if !ok {
			return "", fmt.Errorf("header %s must be there once", id.header)
		}
		return text, schema.CheckEventID(text)
	case len(id.derive) > 0:
		return derivedID(v, id.derive)
	}
	at, ok := present(v, id.path)
	if !ok {
		return "", fmt.Errorf("there is nothing at %s", id.path)
	}
	text, ok := at.Text()
	if !ok {
		return "", fmt.Errorf("what stands at %s is not a string", id.path)
	}
	return text, schema.CheckEventID(text)
}

// derivedID is the hex SHA-256 of the literals at paths, each preceded by its length
// as a big-endian uint32, so that ("ab", "c") and ("a", "bc") are two events.
func derivedID(v *schema.Value, paths []schema.Path) (string, error) {
	h := sha256.New()
	for _, path := range paths {
		at, ok := present(v, path)
		if !ok {
			return "", fmt.Errorf("there is nothing at %s", path)
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

// eventType returns the event's type, empty if it has none. A type that no header or
// log could carry is an error.
func (s *Source) eventType(d Delivery, v *schema.Value) (string, error) {
	typ := s.event.typ
	text := typ.constant
	switch {
	case typ.header != "":
		text, _ = oneHeader(d.Header, typ.header)
	case !typ.path.IsZero():
		at, ok := present(v, typ.path)
		if !ok {
			return "", nil
		}
		if text, ok = at.Literal(); !ok {
			return "", fmt.Errorf("what stands at %s is not a single value", typ.path)
		}
	}
	if len(text) > maxTypeBytes || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		return "", fmt.Errorf("it is longer than %d bytes or holds control characters", maxTypeBytes)
	}
	return text, nil
}

// read parses a body as the source's events are written.
func (s *Source) read(body []byte) (*schema.Value, error) {
	if !s.event.form {
		return schema.ParseJSON(body, schema.Limits{})
	}
	return readForm(body)
}

// readForm reads a form as an object of strings, so that one kind of path and one
// strictness serve both. A field that is there twice is an error.
func readForm(body []byte) (*schema.Value, error) {
	fields, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, errors.New("not a form: a field is not encoded as it should be")
	}
	if len(fields) == 0 {
		return nil, errors.New("the body is empty")
	}
	flat := make(map[string]string, len(fields))
	for name, values := range fields {
		if len(values) != 1 {
			return nil, errors.New("a field of the form is there twice")
		}
		if !utf8.ValidString(name) || !utf8.ValidString(values[0]) {
			return nil, errors.New("a field of the form is not UTF-8")
		}
		flat[name] = values[0]
	}
	text, err := json.Marshal(flat)
	if err != nil {
		return nil, fmt.Errorf("read form: %w", err)
	}
	return schema.ParseJSON(text, schema.Limits{})
}
