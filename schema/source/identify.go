package source

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"hookledger/schema"
)

// Delivery is one HTTP attempt whose signature holds.
type Delivery struct {
	// ID names the attempt.
	ID string
	// Method is GET or, also if empty, POST.
	Method string
	// Query is the query of the URL as it was sent, without the question mark.
	Query  string
	Header http.Header
	Body   []byte
}

// event returns the bytes that tell the events, and their content type: of a GET, which
// has no body, the query.
func (d Delivery) event() (body []byte, contentType string) {
	if d.Method == http.MethodGet {
		return []byte(d.Query), mediaForm
	}
	return d.Body, d.Header.Get("Content-Type")
}

// Item is one event of a delivery.
type Item struct {
	ID         string
	Type       string
	OccurredAt time.Time
	// Body is the event's own bytes, a part of the delivery's.
	Body        []byte
	ContentType string
	// Livemode is live or test where the delivery says it of all its events, else empty.
	Livemode string
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
	mediaJSON      = "application/json"
	mediaForm      = "application/x-www-form-urlencoded"
	mediaMultipart = "multipart/form-data"
)

// Words of EventConfig.Body.
const (
	BodyJSON = "json"
	BodyForm = "form"
	BodyAny  = "any"
)

type eventRules struct {
	format     string
	batch      bool
	items      schema.Path
	id         locator
	typ        locator
	time       locator
	timeFormat string
}

// newEvent merges what is configured with what the definition says.
func newEvent(def *Definition, c EventConfig, sig *Signature, p *Problems) eventRules {
	own := def.Event
	if own.ID.Header != "" && sig.IDHeader != "" {
		own.ID.Header = sig.IDHeader // its name can depend on signature.headers
	}
	if def.builtin() {
		if c.Body != "" || c.Items != "" || c.TimeFormat != "" || !c.ID.IsZero() || !c.Type.IsZero() || !c.Time.IsZero() {
			p.Add("event", "provider %s says itself where its events are identified; remove the key", def.Name)
		}
		c = EventConfig{}
	}
	if (!own.ID.IsZero() || def.ID != nil) && !c.ID.IsZero() {
		p.Add("event.id", "provider %s says itself where the ID is; remove the key", def.Name)
		c.ID = Locator{}
	}
	if def.Read != nil && c.Body != "" {
		p.Add("event.body", "provider %s says itself how bodies are written; remove the key", def.Name)
	}
	for _, m := range []struct {
		configured *Locator
		own        Locator
	}{{&c.ID, own.ID}, {&c.Type, own.Type}, {&c.Time, own.Time}} {
		if m.configured.IsZero() {
			*m.configured = m.own
		}
	}
	if c.Items == "" {
		c.Items = own.Items
	}
	if c.TimeFormat == "" {
		c.TimeFormat = own.TimeFormat
	}
	if c.Body == "" {
		c.Body = own.Body
	}
	if c.Body == "" {
		c.Body = BodyJSON
	}
	if c.ID.IsZero() && def.ID == nil {
		p.Add("event.id", "is missing; it is a path, {header: h}, {derive: [paths]} or {join: [paths]}")
	}
	r := eventRules{
		format:     c.Body,
		id:         newLocator("event.id", c.ID, p, "path", "header", "query", "derive", "join"),
		typ:        newLocator("event.type", c.Type, p, "path", "header", "query", "const", "join"),
		time:       newLocator("event.time", c.Time, p, "path"),
		timeFormat: c.TimeFormat,
	}
	r.id.requireText()
	if c.TimeFormat != "" {
		p.OneOf("event.time_format", c.TimeFormat, FormatRFC3339, FormatUnix, FormatUnixMS, FormatDateTime)
	}
	p.OneOf("event.body", c.Body, BodyJSON, BodyForm, BodyAny)
	if c.Items != "" {
		r.batch, r.items = true, newPath("event.items", c.Items, p)
		if c.Body != BodyJSON {
			p.Add("event.items", "needs a JSON body")
		}
		if r.id.shared() {
			p.Add("event.id", "is a header or a parameter, which the items of a delivery would share; name a path or derive")
		}
	}
	return r
}

// Allows tells whether deliveries come with this HTTP method.
func (s *Source) Allows(method string) bool { return slices.Contains(s.Methods(), method) }

// Methods are the HTTP methods of the source's deliveries.
func (s *Source) Methods() []string {
	if s.def.Methods == nil {
		return []string{http.MethodPost}
	}
	return s.def.Methods
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
	isForm := media == mediaForm || media == mediaMultipart && params["boundary"] != ""
	switch s.event.format {
	case BodyForm:
		return isForm
	case BodyAny:
		return isForm || isJSON(media)
	}
	return isJSON(media)
}

func isJSON(media string) bool {
	return media == mediaJSON || media == "text/json" || strings.HasPrefix(media, "application/") && strings.HasSuffix(media, "+json")
}

// Identify reads a delivery once, strictly, and returns its events; none if it is a
// batch of none. It fails with an *IdentifyError. Of a batch of which some items are
// unusable it returns the others beside the error: they are events, and the delivery as a
// whole is not one that may be answered with success.
func (s *Source) Identify(d Delivery) ([]Item, error) {
	body, contentType := d.event()
	var items []Item
	var err error
	if bad := s.read(contentType, body, func(root *schema.Value) { items, err = s.items(d, root, body, contentType) }); bad != nil {
		return nil, &IdentifyError{IdentifyBody, bad.Error()}
	}
	return items, err
}

func (s *Source) items(d Delivery, root *schema.Value, body []byte, contentType string) ([]Item, error) {
	live := s.live.kept(d.Header, root)
	if !s.event.batch {
		item, err := s.item(d, root, body, s.kept(contentType))
		if err != nil {
			return nil, err
		}
		item.Livemode = live
		return []Item{item}, nil
	}
	list, ok := root.At(s.event.items)
	if !ok || list.Kind() != schema.KindArray {
		return nil, &IdentifyError{IdentifyBody, fmt.Sprintf("there is no list at %s", s.event.items)}
	}
	items := make([]Item, 0, len(list.Items()))
	var first *IdentifyError
	unusable := 0
	for i := range list.Items() {
		item, err := s.batchItem(d, &list.Items()[i])
		if err != nil {
			if unusable++; first == nil {
				err.Detail = fmt.Sprintf("item %d of %s: %s", i, s.event.items, err.Detail)
				first = err
			}
			continue
		}
		item.Livemode = live
		items = append(items, item)
	}
	if first != nil {
		first.Detail = fmt.Sprintf("%d of %d items are unusable: %s", unusable, len(list.Items()), first.Detail)
		return items, first
	}
	return items, nil
}

func (s *Source) batchItem(d Delivery, v *schema.Value) (Item, *IdentifyError) {
	if v.Kind() != schema.KindObject {
		return Item{}, &IdentifyError{IdentifyBody, "it is not an object"}
	}
	item, err := s.item(d, v, v.Raw(), mediaJSON)
	var unidentified *IdentifyError
	if errors.As(err, &unidentified) {
		return Item{}, unidentified
	}
	return item, nil
}

// kept is the content type that an event is kept with: enough to read it again.
func (s *Source) kept(contentType string) string {
	media, _, _ := mime.ParseMediaType(contentType)
	switch {
	case media == mediaMultipart:
		return contentType // with its boundary
	case media == mediaForm, media == "" && s.event.format == BodyForm:
		return mediaForm
	}
	return mediaJSON
}

func (s *Source) item(d Delivery, v *schema.Value, body []byte, contentType string) (Item, error) {
	item := Item{Body: body, ContentType: contentType}
	var err error
	if item.ID, err = s.eventID(d, v); err != nil {
		return Item{}, &IdentifyError{IdentifyID, err.Error()}
	}
	if item.Type, err = s.eventType(d, v); err != nil {
		return Item{}, &IdentifyError{IdentifyType, err.Error()}
	}
	for _, l := range append([]locator{s.event.time}, s.event.time.or...) {
		if l.path.IsZero() {
			continue
		}
		if at, ok := present(v, l.path); ok {
			item.OccurredAt = readTime(at, s.event.timeFormat)
			break
		}
	}
	return item, nil
}

func (s *Source) eventID(d Delivery, v *schema.Value) (string, error) {
	var text string
	var err error
	if s.def.ID != nil {
		text, err = s.def.ID(d, v)
	} else {
		text, err = s.event.id.text(d, v)
	}
	if err != nil {
		return "", err
	}
	return text, schema.CheckEventID(text)
}

// eventType returns the event's type, empty if it has none. A type that no header or
// log could carry is an error.
func (s *Source) eventType(d Delivery, v *schema.Value) (string, error) {
	var text string
	var err error
	switch {
	case s.def.Type != nil:
		text, err = s.def.Type(d, v)
	case s.event.typ.isSet():
		text, err = s.event.typ.text(d, v)
		if errors.Is(err, errAbsent) {
			return "", nil
		}
	}
	if err != nil {
		return "", err
	}
	if len(text) > maxTypeBytes || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		return "", fmt.Errorf("it is longer than %d bytes or holds control characters", maxTypeBytes)
	}
	return text, nil
}
