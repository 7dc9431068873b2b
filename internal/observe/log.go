package observe

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/rs/zerolog"
)

// Log formats.
const (
	// FormatAuto is console on a terminal and JSON elsewhere.
	FormatAuto    = "auto"
	FormatJSON    = "json"
	FormatConsole = "console"
)

// NewLogger returns the logger of one process, which writes to w. level is debug,
// info, warn or error. Every value is written as an escaped JSON string or, for
// people, quoted where it needs to be, so that foreign text cannot forge a line.
func NewLogger(w io.Writer, level, format string) (zerolog.Logger, error) {
	lvl, err := zerolog.ParseLevel(level)
	if err != nil || level == "" {
		return zerolog.Nop(), fmt.Errorf("log level %q: use debug, info, warn or error", level)
	}
	switch format {
	case FormatJSON:
	case FormatConsole:
		w = console(w, isTerminal(w))
	case FormatAuto, "":
		if isTerminal(w) {
			w = console(w, true)
		}
	default:
		return zerolog.Nop(), fmt.Errorf("log format %q: use auto, json or console", format)
	}
	return zerolog.New(w).Level(lvl).With().Timestamp().Logger(), nil
}

func console(w io.Writer, color bool) io.Writer {
	return zerolog.ConsoleWriter{
		Out: w, NoColor: !color || os.Getenv("NO_COLOR") != "", TimeFormat: time.TimeOnly,
		FormatMessage: printable,
	}
}

// printable quotes a message that holds more than printable characters. The writer
// does so with fields, but prints messages as they are (zerolog 1.35).
func printable(message any) string {
	s, _ := message.(string)
	if q := strconv.Quote(s); strings.ContainsRune(q, '\\') {
		return q
	}
	return s
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// init sets how every logger of the process writes times: UTC with milliseconds, and
// durations in seconds, so that no field's unit depends on who wrote it.
func init() {
	zerolog.TimeFieldFormat = "2006-01-02T15:04:05.000Z07:00"
	zerolog.TimestampFunc = func() time.Time { return time.Now().UTC() }
	zerolog.DurationFieldUnit = time.Second
}
