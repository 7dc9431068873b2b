package vectors

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// byteOrderMark is what some editors write before UTF-8.
const byteOrderMark = "\xef\xbb\xbf"

// Read calls use with each case of r: the items of a JSON array, or JSON lines. What is
// wrong with one case alone, a line that is no JSON among it, is an error of Judge, and
// those behind it are read. It stops at the first error of use, and at a list that cannot be
// read further; what stands behind a list is an error too.
func Read(r io.Reader, use func(Case) error) error {
	in := bufio.NewReader(r)
	if mark, err := in.Peek(len(byteOrderMark)); err == nil && string(mark) == byteOrderMark {
		_, _ = in.Discard(len(mark)) // it was peeked at
	}
	first, err := firstByte(in)
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return fmt.Errorf("read cases: %w", err)
	case first == '[':
		return readList(in, use)
	}
	return readLines(in, use)
}

func readList(in io.Reader, use func(Case) error) error {
	decoder := json.NewDecoder(in)
	if _, err := decoder.Token(); err != nil {
		return fmt.Errorf("read cases: %w", err)
	}
	for i := 0; decoder.More(); i++ {
		var text json.RawMessage
		if err := decoder.Decode(&text); err != nil {
			return fmt.Errorf("read case %d: %w", i, err)
		}
		if err := use(parse(text, fmt.Sprintf("case %d", i))); err != nil {
			return err
		}
	}
	if _, err := decoder.Token(); err != nil {
		return fmt.Errorf("read cases: the list is not closed: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("read cases: something stands behind the list")
	}
	return nil
}

// readLines reads a case from each line. One that goes on over several lines is read too,
// until a line that is a whole case by itself.
func readLines(in *bufio.Reader, use func(Case) error) error {
	var open []byte
	begun := 0
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read cases: line %d: %w", n, err)
		}
		ended := err != nil
		if len(open) == 0 {
			begun = n
		}
		if len(open) > 0 && isObject(line) {
			if err := use(parse(open, fmt.Sprintf("line %d", begun))); err != nil {
				return err
			}
			open, begun = nil, n
		}
		open = append(open, line...)
		if len(bytes.TrimSpace(open)) == 0 {
			open = nil
		}
		if len(open) > 0 && (ended || !incomplete(open)) {
			if err := use(parse(open, fmt.Sprintf("line %d", begun))); err != nil {
				return err
			}
			open = nil
		}
		if ended {
			return nil
		}
	}
}

func isObject(text []byte) bool {
	text = bytes.TrimSpace(text)
	return len(text) > 0 && text[0] == '{' && json.Valid(text)
}

// incomplete tells whether text could be the beginning of a case.
func incomplete(text []byte) bool {
	err := json.NewDecoder(bytes.NewReader(text)).Decode(new(json.RawMessage))
	return errors.Is(err, io.ErrUnexpectedEOF)
}

// parse reads one case; where says where it stands.
func parse(text []byte, where string) Case {
	var c Case
	if err := json.Unmarshal(text, &c); err != nil {
		c.err = fmt.Errorf("read %s (%s): %w", where, c.ID, err)
	}
	return c
}

// firstByte returns the first byte that is no white space, and leaves it.
func firstByte(in *bufio.Reader) (byte, error) {
	for {
		b, err := in.ReadByte()
		if err != nil {
			return 0, err
		}
		if bytes.IndexByte([]byte(" \t\r\n"), b) < 0 {
			return b, in.UnreadByte()
		}
	}
}
