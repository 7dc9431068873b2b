package bench

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// want is what a line should reach. The zero want is none.
type want struct {
	// atLeast and atMost bound the ratio, or the figure itself if absolute.
	atLeast, atMost float64
	absolute        bool
}

func least(ratio float64) want    { return want{atLeast: ratio} }
func most(ratio float64) want     { return want{atMost: ratio} }
func below(figure float64) want   { return want{atMost: figure, absolute: true} }
func (w want) isZero() bool       { return w == want{} }
func (w want) met(x float64) bool { return x >= w.atLeast && (w.atMost == 0 || x <= w.atMost) }
func (w want) of(l *line) float64 {
	return map[bool]float64{true: median(l.ours), false: l.ratio()}[w.absolute]
}
func (w want) text(l *line) string {
	if w.isZero() {
		return ""
	}
	mark := "✗"
	if w.met(w.of(l)) {
		mark = "✓"
	}
	text, bound := "≥ ", w.atLeast
	if w.atMost > 0 {
		text, bound = "≤ ", w.atMost
	}
	if w.absolute {
		return text + figure(bound) + " " + l.unit + " " + mark
	}
	return text + figure(bound) + "× " + mark
}

// line is one line of the table: figures of both sides, one of each for a repetition.
type line struct {
	group, name string
	// floor says what stands beside it.
	floorName string
	unit      string
	ours      []float64
	floor     []float64
	want      want
	// note is further figures in a few words.
	note string
}

// ratio is the median of what ours is of the floor, pair by pair.
func (l *line) ratio() float64 {
	var rs []float64
	for i := range min(len(l.ours), len(l.floor)) {
		rs = append(rs, l.ours[i]/l.floor[i])
	}
	return median(rs)
}

// spread is the lowest and the highest ratio.
func (l *line) spread() string {
	if len(l.ours) < 2 {
		return ""
	}
	low, high := math.Inf(1), math.Inf(-1)
	for i := range min(len(l.ours), len(l.floor)) {
		r := l.ours[i] / l.floor[i]
		low, high = min(low, r), max(high, r)
	}
	return figure(low) + "–" + figure(high)
}

// median returns NaN for none.
func median(xs []float64) float64 {
	if len(xs) == 0 {
		return math.NaN()
	}
	s := slices.Clone(xs)
	slices.Sort(s)
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}

// percentile sorts xs.
func percentile(xs []float64, p float64) float64 {
	if len(xs) == 0 {
		return math.NaN()
	}
	slices.Sort(xs)
	return xs[min(len(xs)-1, int(float64(len(xs))*p))]
}

// figure writes x with three digits that mean something.
func figure(x float64) string {
	switch a := math.Abs(x); {
	case math.IsNaN(x):
		return "–"
	case a >= 1000:
		digits := fmt.Sprintf("%.0f", x)
		for i := len(digits) - 3; i > 0; i -= 3 {
			digits = digits[:i] + " " + digits[i:]
		}
		return digits
	case a >= 100:
		return fmt.Sprintf("%.0f", x)
	case a >= 10:
		return fmt.Sprintf("%.1f", x)
	default:
		return fmt.Sprintf("%.2f", x)
	}
}

var heads = []string{"", "unit", "hookledger", "floor", "ratio", "spread", "wanted", "beside", "note"}

func (l *line) cells() []string {
	return []string{
		l.group + ": " + l.name, l.unit, figure(median(l.ours)), figure(median(l.floor)),
		figure(l.ratio()), l.spread(), l.want.text(l), l.floorName, l.note,
	}
}

// printTable writes lines as a Markdown table with aligned columns, so that the same
// text is read in a terminal and kept in BENCHMARKS.md.
func printTable(w io.Writer, lines []*line) error {
	rows := [][]string{heads}
	for _, l := range lines {
		rows = append(rows, l.cells())
	}
	widths := make([]int, len(heads))
	for _, r := range rows {
		for i, c := range r {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	isNumber := func(i int) bool { return i >= 2 && i <= 5 }
	var out strings.Builder
	for n, r := range rows {
		for i, c := range r {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c))
			if isNumber(i) {
				c = pad + c
			} else if i < len(r)-1 {
				c += pad
			}
			out.WriteString("| " + c + " ")
		}
		out.WriteString("|\n")
		if n == 0 {
			for i := range r {
				if isNumber(i) {
					out.WriteString("| ---: ")
				} else {
					out.WriteString("| --- ")
				}
			}
			out.WriteString("|\n")
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}
