package signature

import (
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"hookledger/schema/source"
)

// maxFields bounds a form. The largest documented notification has 60 fields.
const maxFields = 1000

// formFields returns the decoded fields of a delivery in the order in which they were
// sent: of the query of a GET, of the form of a POST. A field that is there twice is a
// rejection: what is signed and what is read could differ.
func formFields(r Request) ([]source.Field, error) {
	var fields []source.Field
	var err error
	media, params, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case r.Method == http.MethodGet:
		fields, err = decodeFields(r.Query)
	case media == "multipart/form-data":
		if fields, err = source.MultipartFields(params["boundary"], r.Body); err != nil {
			err = reject(Malformed, "%v", err)
		}
	default:
		fields, err = decodeFields(string(r.Body))
	}
	if err != nil {
		return nil, err
	}
	if len(fields) > maxFields {
		return nil, reject(Malformed, "the form has more than %d fields", maxFields)
	}
	seen := make(map[string]bool, len(fields))
	for _, f := range fields {
		if seen[f.Name] {
			return nil, reject(Malformed, "a field of the form is there twice")
		}
		seen[f.Name] = true
		if !utf8.ValidString(f.Name) || !utf8.ValidString(f.Value) {
			return nil, reject(Malformed, "a field of the form is not UTF-8")
		}
	}
	return fields, nil
}

// decodeFields is url.ParseQuery that keeps the order.
func decodeFields(text string) ([]source.Field, error) {
	var fields []source.Field
	for part := range strings.SplitSeq(text, "&") {
		if part == "" {
			continue
		}
		if strings.Contains(part, ";") {
			return nil, reject(Malformed, "a field of the form holds a bare semicolon")
		}
		name, value, _ := strings.Cut(part, "=")
		name, err := url.QueryUnescape(name)
		if err == nil {
			value, err = url.QueryUnescape(value)
		}
		if err != nil {
			return nil, reject(Malformed, "a field of the form is not encoded as it should be")
		}
		fields = append(fields, source.Field{Name: name, Value: value})
	}
	return fields, nil
}

// field returns the value of a field that must be there.
func field(fields []source.Field, name string) (string, error) {
	i := slices.IndexFunc(fields, func(f source.Field) bool { return f.Name == name })
	if i < 0 || fields[i].Value == "" {
		return "", reject(MissingHeader, "field %s is missing", name)
	}
	return fields[i].Value, nil
}

// without returns fields but those of some names.
func without(fields []source.Field, names ...string) []source.Field {
	return slices.DeleteFunc(slices.Clone(fields), func(f source.Field) bool { return slices.Contains(names, f.Name) })
}

// addField adds a field where the form of m stands.
func addField(m *Message, name, value string) {
	more := url.QueryEscape(name) + "=" + url.QueryEscape(value)
	if m.Method == http.MethodGet {
		m.Query = strings.TrimPrefix(m.Query+"&"+more, "&")
		return
	}
	m.Body = []byte(strings.TrimPrefix(string(m.Body)+"&"+more, "&"))
}

// request is m as read would see it.
func (m *Message) request() Request {
	return Request{Method: m.Method, Query: m.Query, Header: m.Header, Body: m.Body, At: m.At}
}
