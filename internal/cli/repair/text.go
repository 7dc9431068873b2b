package repair

import (
	"time"

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
