package backfill

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"hookledger/schema"
)

// lineReader reads lines of bounded length.
type lineReader struct {
	r      *bufio.Reader
	max    int
	number int64
	buf    []byte
}

// errLineTooLong says that a line was passed over.
var errLineTooLong = errors.New("the line is too long")

func newLineReader(r io.Reader, maxBytes int) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, 64<<10), max: maxBytes}
}

// next returns the next line that is not blank, valid until the call after. It fails with
// errLineTooLong, after which it goes on, and with io.EOF.
func (l *lineReader) next() ([]byte, error) {
	for {
		l.buf = l.buf[:0]
		tooLong := false
		for {
			piece, err := l.r.ReadSlice('\n')
			if tooLong = tooLong || len(l.buf)+len(piece) > l.max; !tooLong {
				l.buf = append(l.buf, piece...)
			}
			if errors.Is(err, bufio.ErrBufferFull) {
				continue
			}
			if err != nil && (!errors.Is(err, io.EOF) || len(l.buf) == 0 && !tooLong) {
				return nil, err
			}
			break
		}
		l.number++
		if tooLong {
			return nil, errLineTooLong
		}
		line := l.buf
		if l.number == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return line, nil
		}
	}
}

// told is an event as a line tells it.
type told struct {
	body []byte
	// id is what the line says beside the body, empty if it does not.
	id     string
	header http.Header
}

// wrapping are the names beside body that make an object a wrapping of an event.
var wrapping = []string{"body", "body_base64", "id", "headers"}

// unwrap returns the events of a line: the line itself, what it wraps as body, or the data
// of a listing ({"object":"list","data":[…]}).
func unwrap(line []byte) ([]told, error) {
	v, err := schema.ParseJSON(line, schema.Limits{})
	if err != nil {
		// Bodies may be forms; the source says whether it reads this.
		return []told{{body: bytes.Clone(line), header: http.Header{}}}, nil
	}
	if v.Kind() == schema.KindObject {
		if text, _ := textOf(v, "object"); text == "list" && v.Get("data") != nil && v.Get("data").Kind() == schema.KindArray {
			var list []told
			for _, item := range v.Get("data").Items() {
				list = append(list, told{body: item.Raw(), header: http.Header{}})
			}
			return list, nil
		}
		if isWrapping(v) {
			one, err := unwrapOne(v)
			return []told{one}, err
		}
	}
	return []told{{body: bytes.Clone(line), header: http.Header{}}}, nil
}

func isWrapping(v *schema.Value) bool {
	has := false
	for _, k := range v.Keys() {
		if !slices.Contains(wrapping, k) {
			return false
		}
		has = has || k == "body" || k == "body_base64"
	}
	return has
}

func unwrapOne(v *schema.Value) (told, error) {
	t := told{header: http.Header{}}
	body, encoded := v.Get("body"), v.Get("body_base64")
	switch {
	case body != nil && encoded != nil:
		return t, errors.New("body and body_base64 exclude each other")
	case body != nil && body.Kind() == schema.KindString:
		text, _ := body.Text() // the bytes as they were, in a string
		t.body = []byte(text)
	case body != nil:
		t.body = body.Raw()
	default:
		text, ok := textOf(v, "body_base64")
		decoded, err := base64.StdEncoding.DecodeString(text)
		if !ok || err != nil {
			return t, errors.New("body_base64 is not base64")
		}
		t.body = decoded
	}
	if v.Get("id") != nil {
		id, ok := textOf(v, "id")
		if !ok {
			return t, errors.New("id is not a text")
		}
		t.id = id
	}
	headers := v.Get("headers")
	if headers == nil {
		return t, nil
	}
	if headers.Kind() != schema.KindObject {
		return t, errors.New("headers is not an object")
	}
	for _, k := range headers.Keys() {
		text, ok := textOf(headers, k)
		if !ok {
			return t, fmt.Errorf("header %.40q is not a text", k)
		}
		t.header.Set(k, text)
	}
	return t, nil
}

func textOf(v *schema.Value, key string) (string, bool) {
	if m := v.Get(key); m != nil {
		return m.Text()
	}
	return "", false
}
