package repair

import (
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"hookledger/internal/cli/console"
)

// shortTime is a time of JSON as tables show it.
func shortTime(s *string) string {
	if s == nil {
		return "-"
	}
	t, err := time.Parse(time.RFC3339Nano, *s)
	if err != nil {
		return *s
	}
	return console.Time(t)
}

func text(s *string) string {
	if s == nil {
		return "-"
	}
	return orDash(*s)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// maxShown is how many bytes of a body are shown to a person; JSON has all of them.
const maxShown = 8 << 10

// printBytes shows foreign bytes so that none of them steers the terminal: text line by
// line, anything else as a dump.
func printBytes(w io.Writer, body []byte) error {
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
			b.WriteString("  " + console.Safe(strings.TrimSuffix(line, "\r")) + "\n")
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
