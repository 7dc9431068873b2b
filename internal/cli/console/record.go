package console

import (
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"hookledger/schema"
)

// Header is a header of a record in JSON: value where it is UTF-8, else in base64.
type Header struct {
	Key         string  `json:"key"`
	Value       *string `json:"value,omitempty"`
	ValueBase64 []byte  `json:"value_base64,omitempty"`
}

// Headers returns list for JSON.
func Headers(list []schema.Header) []Header {
	out := make([]Header, len(list))
	for i, h := range list {
		out[i].Key = h.Key
		if value := string(h.Value); utf8.ValidString(value) {
			out[i].Value = &value
		} else {
			out[i].ValueBase64 = h.Value
		}
	}
	return out
}

// WriteHeaders writes a line for each header.
func WriteHeaders(w io.Writer, list []Header) error {
	t := NewTable("", "").Indent("  ")
	for _, h := range list {
		if h.Value != nil {
			t.Row(h.Key, *h.Value)
		} else {
			t.Row(h.Key, fmt.Sprintf("%q", h.ValueBase64))
		}
	}
	return t.Write(w)
}

// maxShown is how many bytes of a body a person is shown; JSON has all of them.
const maxShown = 8 << 10

// WriteBytes shows foreign bytes so that none of them steers the terminal: text line by
// line, anything else as a dump.
func WriteBytes(w io.Writer, body []byte) error {
	shown := body
	if len(shown) > maxShown {
		shown = shown[:maxShown]
		for len(shown) > 0 && !utf8.RuneStart(body[len(shown)]) {
			shown = shown[:len(shown)-1]
		}
	}
	var b strings.Builder
	if utf8.Valid(shown) {
		for line := range strings.SplitSeq(strings.TrimSuffix(string(shown), "\n"), "\n") {
			b.WriteString("  " + Safe(strings.TrimSuffix(line, "\r")) + "\n")
		}
	} else {
		for line := range strings.Lines(hex.Dump(shown)) {
			b.WriteString("  " + line)
		}
	}
	if rest := len(body) - len(shown); rest > 0 {
		fmt.Fprintf(&b, "  … %d bytes more: --json has them\n", rest)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
