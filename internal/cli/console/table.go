package console

import (
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Table is rows of text in aligned columns. Every cell is made Safe.
type Table struct {
	header []string
	right  []bool
	rows   [][]string
	indent string
}

// NewTable returns a table with these columns. A name that ends in > is a column
// of numbers, aligned to the right.
func NewTable(columns ...string) *Table {
	t := &Table{}
	for _, c := range columns {
		name, right := strings.CutSuffix(c, ">")
		t.header = append(t.header, strings.ToUpper(name))
		t.right = append(t.right, right)
	}
	return t
}

// Indent puts s before each line.
func (t *Table) Indent(s string) *Table { t.indent = s; return t }

// Row appends a row. Cells that are missing are empty.
func (t *Table) Row(cells ...string) {
	row := make([]string, len(t.header))
	for i := range row {
		if i < len(cells) {
			row[i] = Safe(cells[i])
		}
	}
	t.rows = append(t.rows, row)
}

// Len is the number of rows.
func (t *Table) Len() int { return len(t.rows) }

// Write writes the table to w, with its header unless all column names are empty.
func (t *Table) Write(w io.Writer) error {
	widths := make([]int, len(t.header))
	rows := t.rows
	if strings.Join(t.header, "") != "" {
		rows = append([][]string{t.header}, rows...)
	}
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], width(cell))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		line := t.indent
		for i, cell := range row {
			gap := strings.Repeat(" ", widths[i]-width(cell))
			if t.right[i] {
				line += gap + cell
			} else {
				line += cell + gap
			}
			line += "  "
		}
		b.WriteString(strings.TrimRight(line, " "))
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// width is the number of terminal columns of s, as far as that can be told without
// the terminal: combining marks take none, East Asian wide characters two.
func width(s string) int {
	n := 0
	for _, r := range s {
		switch {
		case unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Me, r):
		case r >= 0x1100 && unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana):
			n += 2
		default:
			n++
		}
	}
	if n == 0 {
		return utf8.RuneCountInString(s)
	}
	return n
}
