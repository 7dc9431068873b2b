package schema

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// MaxAmount is the largest amount of one posting, in minor units: 10^15. So the
// sum of 9,000 of the largest postings still fits an int64.
const MaxAmount = 1_000_000_000_000_000

// Errors of ParseAmount.
var (
	// ErrAmount: the text is not a decimal number.
	ErrAmount = errors.New("not a decimal number")
	// ErrAmountInexact: the number has more decimals than the currency.
	ErrAmountInexact = errors.New("not a whole number of minor units")
	// ErrAmountRange: beyond ±MaxAmount.
	ErrAmountRange = errors.New("beyond the largest amount")
)

// ErrCurrency says that the text is not a currency code.
var ErrCurrency = errors.New("not a currency code")

// maxAmountText bounds the work of ParseAmount; MaxAmount has 16 digits.
const maxAmountText = 64

// ParseAmount converts the text of a decimal number (as JSON writes it: an
// optional minus, digits, fraction, exponent) exactly into minor units, where
// exponent is the number of decimals of the currency; 0 for a number that is
// already in minor units. "1e2", "100" and "100.00" are one hundred. It fails with
// ErrAmount, ErrAmountInexact or ErrAmountRange, and never rounds.
func ParseAmount(text string, exponent int) (int64, error) {
	if len(text) > maxAmountText {
		return 0, fmt.Errorf("amount of %d characters: %w", len(text), ErrAmount)
	}
	fail := func(err error) (int64, error) { return 0, fmt.Errorf("amount %q: %w", text, err) }
	rest, negative := strings.CutPrefix(text, "-")

	mantissa, exp10 := rest, 0
	if i := strings.IndexAny(rest, "eE"); i >= 0 {
		var ok bool
		if exp10, ok = parseExponent(rest[i+1:]); !ok {
			return fail(ErrAmount)
		}
		mantissa = rest[:i]
	}
	whole, fraction, hasPoint := strings.Cut(mantissa, ".")
	if whole == "" || (hasPoint && fraction == "") || !isDigits(whole) || !isDigits(fraction) ||
		(len(whole) > 1 && whole[0] == '0') {
		return fail(ErrAmount)
	}

	digits := strings.TrimLeft(whole+fraction, "0")
	// digits × 10^shift is the amount in minor units.
	shift := exp10 + exponent - len(fraction)
	for shift < 0 && strings.HasSuffix(digits, "0") {
		digits, shift = digits[:len(digits)-1], shift+1
	}
	if digits == "" {
		return 0, nil
	}
	if shift < 0 {
		return fail(ErrAmountInexact)
	}
	if len(digits)+shift > 16 {
		return fail(ErrAmountRange)
	}
	var n int64
	for _, d := range digits {
		n = n*10 + int64(d-'0')
	}
	for range shift {
		n *= 10
	}
	if n > MaxAmount {
		return fail(ErrAmountRange)
	}
	if negative {
		n = -n
	}
	return n, nil
}

// parseExponent reads the digits behind an e. Anything beyond ±99 cannot be an
// amount: maxAmountText leaves no room for the zeros it would need.
func parseExponent(s string) (int, bool) {
	negative := strings.HasPrefix(s, "-")
	if negative || strings.HasPrefix(s, "+") {
		s = s[1:]
	}
	if s == "" || len(s) > 2 || !isDigits(s) {
		return 0, false
	}
	n := 0
	for _, d := range s {
		n = n*10 + int(d-'0')
	}
	if negative {
		n = -n
	}
	return n, true
}

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// NormalizeCurrency returns the currency code in upper case. Codes are 3 to 8
// ASCII letters or digits that begin with a letter: ISO 4217, and the longer
// codes of tokens. It fails with ErrCurrency.
func NormalizeCurrency(s string) (string, error) {
	// ASCII alone: strings.ToUpper would make an S of U+017F.
	up := strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' {
			r -= 'a' - 'A'
		}
		return r
	}, s)
	if !isCurrency(up) {
		if len(s) > 16 {
			s = s[:16] + "…"
		}
		return "", fmt.Errorf("currency %q: %w", s, ErrCurrency)
	}
	return up, nil
}

func isCurrency(s string) bool {
	if len(s) < 3 || len(s) > 8 || s[0] < 'A' || s[0] > 'Z' {
		return false
	}
	for i := range len(s) {
		if (s[i] < 'A' || s[i] > 'Z') && (s[i] < '0' || s[i] > '9') {
			return false
		}
	}
	return true
}

// FormatAmount writes minor units as a decimal number with its currency: 12.50 EUR. A
// currency whose decimals are not known is written in minor units, and says so.
func FormatAmount(minor int64, currency string) string {
	exponent, known := Exponent(currency)
	if !known {
		return fmt.Sprintf("%d minor %s", minor, currency)
	}
	digits := strconv.FormatInt(minor, 10)
	sign := ""
	if digits[0] == '-' {
		sign, digits = "-", digits[1:]
	}
	if pad := exponent + 1 - len(digits); pad > 0 {
		digits = strings.Repeat("0", pad) + digits
	}
	if exponent > 0 {
		cut := len(digits) - exponent
		digits = digits[:cut] + "." + digits[cut:]
	}
	return sign + digits + " " + currency
}

// Exponent returns the number of decimals of an ISO 4217 currency in upper case,
// and false for a code that is not in the standard: its minor unit is not known,
// so a decimal amount in it cannot be converted. Providers that differ from the
// standard say so in their own file.
// Source: ISO 4217 list one, published 2026-01-01.
func Exponent(currency string) (int, bool) {
	if len(currency) != 3 {
		return 0, false
	}
	switch {
	case wordIn(exponent2, currency):
		return 2, true
	case wordIn(exponent0, currency):
		return 0, true
	case wordIn(exponent3, currency):
		return 3, true
	}
	return 0, false
}

// wordIn tells whether a three-letter code is one of the words of list.
func wordIn(list, code string) bool {
	for i := 0; i+3 <= len(list); i += 4 {
		if list[i:i+3] == code {
			return true
		}
	}
	return false
}

const (
	exponent0 = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF"
	exponent2 = "AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF " +
		"CHF CNY COP CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR " +
		"ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR " +
		"MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP " +
		"STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD UYU UZS VES VED WST XCD XCG YER ZAR ZMW ZWG"
	exponent3 = "BHD IQD JOD KWD LYD OMR TND"
)
