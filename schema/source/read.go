package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/url"
	"unicode/utf8"

	"hookledger/schema"
)

// read parses the bytes of an event, and fails if it cannot. Without a content type they
// are what the source expects. use may keep texts, but no value.
func (s *Source) read(contentType string, body []byte, use func(*schema.Value)) error {
	if contentType == mediaJSON && s.def.Read == nil {
		return schema.WithJSON(body, s.limits(), use)
	}
	media, params, _ := mime.ParseMediaType(contentType)
	var v *schema.Value
	var err error
	switch {
	case s.def.Read != nil:
		v, err = s.def.Read(media, body)
	case media == mediaMultipart:
		v, err = readMultipart(params["boundary"], body)
	case media == mediaForm, media == "" && s.event.format == BodyForm:
		v, err = ReadForm(body)
	default:
		return schema.WithJSON(body, s.limits(), use)
	}
	if err == nil {
		use(v)
	}
	return err
}

func (s *Source) limits() schema.Limits {
	if s.event.batch {
		return schema.Limits{MaxTokens: maxBatchTokens}
	}
	return schema.Limits{}
}

// maxBatchTokens bounds a delivery of several events. GoCardless sends up to 250, of 45 to 70
// tokens each: more than the 10,000 of one event. Measured: its fixtures, 2026-11.
const maxBatchTokens = 50_000

// ReadForm reads a form as an object of strings, so that one kind of path and one
// strictness serve both. A field that is there twice is an error.
func ReadForm(body []byte) (*schema.Value, error) {
	fields, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, errors.New("not a form: a field is not encoded as it should be")
	}
	return formValue(fields)
}

// maxPartBytes bounds one field of a multipart form. The body is bounded already.
const maxPartBytes = 1 << 20

func readMultipart(boundary string, body []byte) (*schema.Value, error) {
	fields, err := MultipartFields(boundary, body)
	if err != nil {
		return nil, err
	}
	flat := make(map[string][]string, len(fields))
	for _, f := range fields {
		flat[f.Name] = append(flat[f.Name], f.Value)
	}
	return formValue(flat)
}

// Field is a field of a form, in the order in which it was sent.
type Field struct{ Name, Value string }

// MultipartFields reads a multipart form. Files are an error: no provider sends one.
func MultipartFields(boundary string, body []byte) ([]Field, error) {
	if boundary == "" {
		return nil, errors.New("not a multipart form: it has no boundary")
	}
	var fields []Field
	for r := multipart.NewReader(bytes.NewReader(body), boundary); ; {
		part, err := r.NextPart()
		if errors.Is(err, io.EOF) {
			return fields, nil
		}
		if err != nil {
			return nil, errors.New("not a multipart form")
		}
		if part.FormName() == "" || part.FileName() != "" {
			return nil, errors.New("a part of the form is not a named field")
		}
		value, err := io.ReadAll(io.LimitReader(part, maxPartBytes+1))
		if err != nil || len(value) > maxPartBytes {
			return nil, errors.New("a field of the form is too long or ends early")
		}
		fields = append(fields, Field{part.FormName(), string(value)})
	}
}

func formValue(fields map[string][]string) (*schema.Value, error) {
	if len(fields) == 0 {
		return nil, errors.New("the form is empty")
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
