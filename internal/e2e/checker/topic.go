package checker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Record is one record of the topic, byte by byte. Key and Value are nil where the
// record has none.
type Record struct {
	Partition int32
	Offset    int64
	Time      time.Time
	Key       []byte
	Value     []byte
	Headers   []Header
}

// Header is a header of a record.
type Header struct{ Key, Value string }

// Header returns the value of the first header of that name, or "".
func (r *Record) Header(key string) string {
	for _, h := range r.Headers {
		if h.Key == key {
			return h.Value
		}
	}
	return ""
}

// Ref names the event that the record says it is.
func (r *Record) Ref() Ref { return Ref{r.Header("hl_source"), string(r.Key)} }

// ReadTopic reads the topic from its beginning to its end with kcat, which checks
// the broker's checksums as well.
func ReadTopic(ctx context.Context, brokers []string, topic string) ([]Record, error) {
	var out, complaints bytes.Buffer
	cmd := exec.CommandContext(ctx, "kcat", "-C", "-q", "-J", "-e", "-o", "beginning",
		"-X", "check.crcs=true", "-b", strings.Join(brokers, ","), "-t", topic)
	cmd.Stdout, cmd.Stderr = &out, &complaints
	err := cmd.Run()
	// kcat ends with 0 after some errors, and says nothing when all is well.
	if err == nil && strings.Contains(complaints.String(), "ERROR") {
		err = errors.New("it complained")
	}
	if err != nil {
		return nil, fmt.Errorf("read topic %s with kcat (Debian package kcat): %w: %s", topic, err, complaints.String())
	}
	return parseKcat(out.Bytes())
}

// parseKcat reads the output of kcat -J: one object a line.
func parseKcat(out []byte) ([]Record, error) {
	var all []Record
	for n, line := range bytes.Split(bytes.TrimSuffix(out, []byte("\n")), []byte("\n")) {
		if len(line) == 0 {
			continue
		}
		var raw struct {
			Partition int32             `json:"partition"`
			Offset    int64             `json:"offset"`
			TS        int64             `json:"ts"`
			Headers   []json.RawMessage `json:"headers"`
			Key       json.RawMessage   `json:"key"`
			Payload   json.RawMessage   `json:"payload"`
		}
		if err := json.Unmarshal(line, &raw); err != nil {
			return nil, fmt.Errorf("read line %d of kcat: %w", n+1, err)
		}
		r := Record{Partition: raw.Partition, Offset: raw.Offset, Time: time.UnixMilli(raw.TS)}
		var err error
		if r.Key, err = unquote(raw.Key); err == nil {
			r.Value, err = unquote(raw.Payload)
		}
		if err == nil {
			r.Headers, err = headers(raw.Headers)
		}
		if err != nil {
			return nil, fmt.Errorf("read line %d of kcat, partition %d offset %d: %w", n+1, r.Partition, r.Offset, err)
		}
		all = append(all, r)
	}
	return all, nil
}

// headers pairs the names and values that kcat lists one after the other.
func headers(list []json.RawMessage) ([]Header, error) {
	if len(list)%2 != 0 {
		return nil, fmt.Errorf("%d names and values of headers", len(list))
	}
	var all []Header
	for i := 0; i < len(list); i += 2 {
		key, err := unquote(list[i])
		if err != nil {
			return nil, err
		}
		value, err := unquote(list[i+1])
		if err != nil {
			return nil, err
		}
		all = append(all, Header{string(key), string(value)})
	}
	return all, nil
}

// unquote undoes exactly what kcat did to make a JSON string of bytes: it escapes
// quotes, backslashes and control characters, and passes everything else through,
// valid UTF-8 or not. encoding/json would replace the invalid. null is nil.
func unquote(quoted json.RawMessage) ([]byte, error) {
	if len(quoted) == 0 || string(quoted) == "null" {
		return nil, nil
	}
	if len(quoted) < 2 || quoted[0] != '"' || quoted[len(quoted)-1] != '"' {
		return nil, fmt.Errorf("%.20q is not a string", quoted)
	}
	in := quoted[1 : len(quoted)-1]
	out := make([]byte, 0, len(in))
	for i := 0; i < len(in); i++ {
		if in[i] != '\\' {
			out = append(out, in[i])
			continue
		}
		if i++; i == len(in) {
			return nil, errors.New("a string ends in a backslash")
		}
		switch c := in[i]; c {
		case '"', '\\', '/':
			out = append(out, c)
		case 'b', 'f', 'n', 'r', 't':
			out = append(out, map[byte]byte{'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}[c])
		case 'u':
			if i+4 >= len(in) {
				return nil, errors.New("a string ends inside an escape")
			}
			code, err := strconv.ParseUint(string(in[i+1:i+5]), 16, 16)
			if err != nil {
				return nil, fmt.Errorf("escape in a string: %w", err)
			}
			out = utf8.AppendRune(out, rune(code))
			i += 4
		default:
			return nil, fmt.Errorf("escape \\%c in a string", c)
		}
	}
	return out, nil
}
