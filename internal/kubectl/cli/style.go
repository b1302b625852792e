package cli

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// Style colours text on a terminal, and leaves it unchanged otherwise. The zero value uses no colours.
type Style struct {
	colours bool
}

// Style returns the style of Out.
func (e *Env) Style() Style { return Style{colours: e.Terminal()} }

// ColourStyle is the style of a terminal, even if Out is not one.
func ColourStyle() Style { return Style{colours: true} }

// Good marks what is right.
func (s Style) Good(text string) string { return s.wrap("32", text) }

// Bad marks what is wrong.
func (s Style) Bad(text string) string { return s.wrap("31", text) }

// Warn marks what may go wrong, or could be better.
func (s Style) Warn(text string) string { return s.wrap("33", text) }

// Dim marks what is less important.
func (s Style) Dim(text string) string { return s.wrap("2", text) }

// Bold marks what should be read first.
func (s Style) Bold(text string) string { return s.wrap("1", text) }

func (s Style) wrap(code, text string) string {
	if !s.colours || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Plain returns text from a cluster in a form that is safe on a terminal: without control characters, with which a
// pod could forge other output. Tabs become spaces; line feeds stay.
func Plain(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return r
		case r == '\t':
			return ' '
		case r < ' ', r >= 0x7f && r < 0xa0, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
			return -1
		}
		return r
	}, text)
}

// Table writes rows in aligned columns. The last column is not padded. Cells may be coloured.
type Table struct {
	rows [][]string
}

// Row adds a row. Rows may have different numbers of cells.
func (t *Table) Row(cells ...string) { t.rows = append(t.rows, cells) }

// Write writes the table, each line after indent, with three spaces between columns.
func (t *Table) Write(w io.Writer, indent string) error {
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			if i < len(row)-1 {
				widths[i] = max(widths[i], Width(cell))
			}
		}
	}
	var text strings.Builder
	for _, row := range t.rows {
		var line strings.Builder
		line.WriteString(indent)
		for i, cell := range row {
			line.WriteString(cell)
			if i < len(row)-1 {
				line.WriteString(strings.Repeat(" ", max(0, widths[i]-Width(cell))+3))
			}
		}
		text.WriteString(strings.TrimRight(line.String(), " "))
		text.WriteByte('\n')
	}
	if _, err := io.WriteString(w, text.String()); err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	return nil
}

// Width returns the columns that text takes on a terminal: colours take none, wide characters two.
func Width(text string) int {
	columns := 0
	for text != "" {
		if strings.HasPrefix(text, "\x1b[") {
			if end := strings.IndexByte(text, 'm'); end >= 0 {
				text = text[end+1:]
				continue
			}
		}
		r, size := utf8.DecodeRuneInString(text)
		text = text[size:]
		switch width.LookupRune(r).Kind() {
		case width.EastAsianWide, width.EastAsianFullwidth:
			columns += 2
		default:
			columns++
		}
	}
	return columns
}
