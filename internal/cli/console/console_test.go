package console

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

func TestSafe_LetsNothingSteerTheTerminal(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"user_1":             "user_1",
		"Zoë 東京 ₽":           "Zoë 東京 ₽",
		"\x1b[31mred\x1b[0m": `\x1b[31mred\x1b[0m`,
		"a\nb\tc\rd":         `a\nb\tc\rd`,
		"\u202eevil":         `\u202eevil`,
		"zero\u200bwidth":    `zero\u200bwidth`,
		"\x9b31m":            `\x9b31m`,
		"\u009b31m":          `\u009b31m`,
		"":                   "",
	} {
		if got := Safe(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func FuzzSafe(f *testing.F) {
	f.Add("\x1b]0;title\x07")
	f.Add("\xff\xfe\u2028")
	f.Fuzz(func(t *testing.T, s string) {
		got := Safe(s)
		if !utf8.ValidString(got) {
			t.Fatalf("%q: not UTF-8", got)
		}
		for _, r := range got {
			if !unicode.IsPrint(r) {
				t.Fatalf("%q: holds %U", got, r)
			}
		}
	})
}

func TestAmount_AlwaysHasItsCurrency(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		minor    int64
		currency string
		want     string
	}{
		{1250, "EUR", "12.50 EUR"}, {-5, "USD", "-0.05 USD"}, {0, "EUR", "0.00 EUR"}, {100, "JPY", "100 JPY"},
		{1234, "KWD", "1.234 KWD"}, {-1, "KWD", "-0.001 KWD"}, {7, "DOGE", "7 minor DOGE"},
		{-1 << 63, "EUR", "-92233720368547758.08 EUR"}, {1, "\x1b[0m", `1 minor \x1b[0m`},
	} {
		if got := Amount(c.minor, c.currency); got != c.want {
			t.Errorf("%d %q: got %q, want %q", c.minor, c.currency, got, c.want)
		}
	}
}

func TestTable_Aligns(t *testing.T) {
	t.Parallel()
	table := NewTable("account", "balance>", "note")
	table.Row("a", "1.00 EUR", "x")
	table.Row("東京", "1,000.00 EUR")
	table.Row("e\u0301e", "5", "\x07")
	var buf bytes.Buffer
	if err := table.Write(&buf); err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		"ACCOUNT       BALANCE  NOTE",
		"a            1.00 EUR  x",
		"東京     1,000.00 EUR",
		"e\u0301e                  5  \\a",
		"",
	}, "\n")
	if buf.String() != want {
		t.Errorf("got\n%s\nwant\n%s", buf.String(), want)
	}
}

func TestTime_IsUTC(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("x", 3600))
	if got, want := Time(at), "2026-01-02 02:04:05Z"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := *JSONTime(at), "2026-01-02T02:04:05.000000006Z"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if Time(time.Time{}) != "-" || JSONTime(time.Time{}) != nil {
		t.Error("no time must be a dash, and null")
	}
}

func TestWriteBytes_LetsNothingSteerTheTerminal(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"{\"a\":\n1}\n":         "  {\"a\":\n  1}\n",
		"a\x1b[2Jb\r\nc\u202ed": "  a\\x1b[2Jb\n  c\\u202ed\n",
		"\xff\x1b":              "  00000000  ff 1b                                             |..|\n",
		"":                      "  \n",
	} {
		var buf bytes.Buffer
		if err := WriteBytes(&buf, []byte(in)); err != nil || buf.String() != want {
			t.Errorf("%q: got %q %v, want %q", in, buf.String(), err, want)
		}
	}
	var buf bytes.Buffer
	long := strings.Repeat("é", maxShown)
	if err := WriteBytes(&buf, []byte("x"+long)); err != nil || !strings.Contains(buf.String(), "8194 bytes more") || strings.Contains(buf.String(), `\x`) {
		t.Errorf("a long one: got %.40q…%.60q", buf.String(), buf.String()[buf.Len()-60:])
	}
}
