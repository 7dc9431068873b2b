package schema

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseAmount(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text          string
		usd, jpy, kwd int64
		// errors in the same order; nil where the amount is exact
		usdErr, jpyErr, kwdErr error
	}{
		{text: "0"}, {text: "-0"}, {text: "0.000"}, {text: "0e99"}, {text: "-0.0e-9"},
		{text: "1", usd: 100, jpy: 1, kwd: 1000},
		{text: "-1", usd: -100, jpy: -1, kwd: -1000},
		{text: "10.00", usd: 1000, jpy: 10, kwd: 10000},
		{text: "100.260000", usd: 10026, jpyErr: ErrAmountInexact, kwd: 100260},
		{text: "1e2", usd: 10000, jpy: 100, kwd: 100000},
		{text: "1E+2", usd: 10000, jpy: 100, kwd: 100000},
		{text: "12.5e1", usd: 12500, jpy: 125, kwd: 125000},
		{text: "1500e-2", usd: 1500, jpy: 15, kwd: 15000},
		{text: "0.1", usd: 10, jpyErr: ErrAmountInexact, kwd: 100},
		{text: "0.001", usdErr: ErrAmountInexact, jpyErr: ErrAmountInexact, kwd: 1},
		{text: "0.0001", usdErr: ErrAmountInexact, jpyErr: ErrAmountInexact, kwdErr: ErrAmountInexact},
		{text: "1e-99", usdErr: ErrAmountInexact, jpyErr: ErrAmountInexact, kwdErr: ErrAmountInexact},
		{text: "0.1e-2", usdErr: ErrAmountInexact, jpyErr: ErrAmountInexact, kwd: 1},
		{text: "4.35", usd: 435, jpyErr: ErrAmountInexact, kwd: 4350},
		{text: "1.005", usdErr: ErrAmountInexact, jpyErr: ErrAmountInexact, kwd: 1005},
		{text: "9007199254740993", usdErr: ErrAmountRange, jpyErr: ErrAmountRange, kwdErr: ErrAmountRange},
		{text: "90071992547409.93", usdErr: ErrAmountRange, jpyErr: ErrAmountInexact, kwdErr: ErrAmountRange},
		{text: "9007199254740.93", usd: 900719925474093, jpyErr: ErrAmountInexact, kwdErr: ErrAmountRange},
		{text: "1000000000000000", usdErr: ErrAmountRange, jpy: MaxAmount, kwdErr: ErrAmountRange},
		{text: "1000000000000001", usdErr: ErrAmountRange, jpyErr: ErrAmountRange, kwdErr: ErrAmountRange},
		{text: "10000000000000", usd: MaxAmount, jpy: 10000000000000, kwdErr: ErrAmountRange},
		{text: "1e99", usdErr: ErrAmountRange, jpyErr: ErrAmountRange, kwdErr: ErrAmountRange},
		{text: "9223372036854775808", usdErr: ErrAmountRange, jpyErr: ErrAmountRange, kwdErr: ErrAmountRange},
	} {
		for _, cur := range []struct {
			name string
			want int64
			err  error
		}{{"USD", c.usd, c.usdErr}, {"JPY", c.jpy, c.jpyErr}, {"KWD", c.kwd, c.kwdErr}} {
			exponent, _ := Exponent(cur.name)
			got, err := ParseAmount(c.text, exponent)
			if got != cur.want || !errors.Is(err, cur.err) || (cur.err == nil) != (err == nil) {
				t.Errorf("%s %s: got %d, %v, want %d, %v", c.text, cur.name, got, err, cur.want, cur.err)
			}
		}
	}
	for _, text := range []string{"", "-", ".", "1.", ".5", "+1", "01", "-01", "1e", "1e+", "1e100", "1e-100", "e1", "0x10", "1_000", "1,000", " 1", "1 ",
		"NaN", "Infinity", "٣", "1.2.3", "--1", "1e1.5", strings.Repeat("9", 65)} {
		if got, err := ParseAmount(text, 2); !errors.Is(err, ErrAmount) {
			t.Errorf("%q: got %d, %v, want ErrAmount", text, got, err)
		}
	}
}

// The second opinion is math/big's exact arithmetic.
func TestParseAmount_AgreesWithExactRationals(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,8})?([eE][+-]?[0-9]{1,2})?`).Draw(t, "text")
		exponent := rapid.IntRange(0, 4).Draw(t, "exponent")
		r, ok := new(big.Rat).SetString(text)
		if !ok {
			t.Fatalf("big.Rat does not read %q", text)
		}
		r.Mul(r, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(exponent)), nil)))
		got, err := ParseAmount(text, exponent)
		switch {
		case !r.IsInt():
			if err == nil {
				t.Fatalf("%q: got %d, want an error: %s is no integer", text, got, r)
			}
		case r.Num().CmpAbs(big.NewInt(MaxAmount)) > 0:
			if !errors.Is(err, ErrAmountRange) {
				t.Fatalf("%q: got %d, %v, want ErrAmountRange", text, got, err)
			}
		case err != nil || r.Num().Cmp(big.NewInt(got)) != 0:
			t.Fatalf("%q: got %d, %v, want %s", text, got, err, r.Num())
		}
	})
}

func TestCurrencies(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]int{"EUR": 2, "USD": 2, "JPY": 0, "KWD": 3, "ISK": 0, "HUF": 2, "AED": 2, "ZWG": 2, "TND": 3, "BIF": 0, "UGX": 0} {
		if got, ok := Exponent(code); got != want || !ok {
			t.Errorf("exponent of %s: got %d %v, want %d", code, got, ok, want)
		}
	}
	for _, code := range []string{"", "eur", "XXX", "BTC", "UR ", "ED ", "EURO", "D AF"} {
		if got, ok := Exponent(code); ok {
			t.Errorf("exponent of %q: got %d, want none", code, got)
		}
	}
	for in, want := range map[string]string{"eur": "EUR", "Usd": "USD", "usdc": "USDC", "1INCH": "", "": "", "eu": "", "e r": "", "ſek": "", "EUR\n": "", "ABCDEFGHI": ""} {
		got, err := NormalizeCurrency(in)
		if got != want || (want == "") != errors.Is(err, ErrCurrency) {
			t.Errorf("currency %q: got %q, %v, want %q", in, got, err, want)
		}
	}
}

// FuzzParseAmount compares with exact fractions: what is accepted is exactly that much,
// and what is refused as inexact or beyond the range is so.
func FuzzParseAmount(f *testing.F) {
	for _, s := range []string{"0", "-1.50", "1e2", "9007199254740993", "1e-99", "00", "1000000000000000", "1000000000000001", "0.000e5", "12.345", "-0", "1E+2"} {
		f.Add(s, uint8(2))
	}
	f.Fuzz(func(t *testing.T, text string, exponent uint8) {
		decimals := int(exponent % 5)
		n, err := ParseAmount(text, decimals)
		if errors.Is(err, ErrAmount) {
			if len(text) <= 20 && json.Valid([]byte(text)) && isDigits(strings.TrimPrefix(text, "-")) {
				t.Fatalf("%q: refused as no number, which it is", text)
			}
			return
		}
		want, ok := new(big.Rat).SetString(text)
		if !ok {
			t.Fatalf("%q: got %d %v, and it is no number", text, n, err)
		}
		want.Mul(want, new(big.Rat).SetInt64(int64(math.Pow10(decimals))))
		beyond := new(big.Rat).Abs(want).Cmp(new(big.Rat).SetInt64(MaxAmount)) > 0
		switch {
		case err == nil && (want.Cmp(new(big.Rat).SetInt64(n)) != 0 || beyond):
			t.Fatalf("%q with %d decimals: got %d, want %s", text, decimals, n, want.RatString())
		case errors.Is(err, ErrAmountInexact) && want.IsInt():
			t.Fatalf("%q with %d decimals: refused as inexact, it is %s", text, decimals, want.RatString())
		case errors.Is(err, ErrAmountRange) && !beyond:
			t.Fatalf("%q with %d decimals: refused as too much, it is %s", text, decimals, want.RatString())
		case err != nil && !errors.Is(err, ErrAmountInexact) && !errors.Is(err, ErrAmountRange):
			t.Fatalf("%q: got %v, want an error by name", text, err)
		}
	})
}
