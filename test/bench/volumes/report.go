package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/albertofaria/pav/test/bench/sample"
)

// tables returns the tables of a result, one for each figure, as Markdown.
func (r result) tables() string {
	var text strings.Builder
	fmt.Fprintf(&text, "\n## %s\n\nCase `%s`.\n", r.of.title, r.of.name)
	for i := range r.of.figures {
		rows := [][]string{r.header(i)}
		for at := range r.of.subjects {
			if len(r.taken[i][at]) > 0 {
				rows = append(rows, r.row(i, at))
			}
		}
		if len(rows) > 1 {
			text.WriteString("\n" + markdown(rows))
		}
	}
	if r.notes != "" {
		text.WriteString("\n" + r.notes + "\n")
	}
	return text.String()
}

// compared returns the subjects whose figures those of the others are divided by.
func (r result) compared(figure int) []int {
	var found []int
	for at, s := range r.of.subjects {
		if (s.role == floor || s.role == peer) && len(r.taken[figure][at]) > 0 {
			found = append(found, at)
		}
	}
	return found
}

func (r result) header(figure int) []string {
	f := r.of.figures[figure]
	row := []string{f.name, "n", "median, " + f.unit, "95% range"}
	for _, at := range r.compared(figure) {
		s := r.of.subjects[at]
		if s.role == floor {
			row = append(row, "× floor")
		} else {
			row = append(row, "× "+s.name)
		}
	}
	return row
}

func (r result) row(figure, at int) []string {
	f, s, taken := r.of.figures[figure], r.of.subjects[at], r.taken[figure][at]
	name := s.name
	if s.role == floor {
		name = "floor: " + name
	}
	row := []string{name, fmt.Sprint(len(taken)), f.text(taken.Median()), f.span(taken)}
	for _, other := range r.compared(figure) {
		row = append(row, ratio(taken, r.taken[figure][other]))
	}
	return row
}

func (f figure) span(s sample.Sample) string {
	low, high, ok := s.Range()
	if !ok {
		return "–"
	}
	return f.text(low) + " to " + f.text(high)
}

// ratio returns the ratio of two medians.
func ratio(s, other sample.Sample) string {
	if other.Median() == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", s.Median()/other.Median())
}

// text returns a value with about three digits.
func (f figure) text(value float64) string {
	switch {
	case value >= 100 || f.unit == count:
		return fmt.Sprintf("%.0f", value)
	case value >= 10:
		return fmt.Sprintf("%.1f", value)
	case value >= 1:
		return fmt.Sprintf("%.2f", value)
	default:
		return fmt.Sprintf("%.3f", value)
	}
}

// markdown returns a table, whose first row is the header. All columns but the first have numbers.
func markdown(rows [][]string) string {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell), 2)
		}
	}
	var text strings.Builder
	for i, row := range rows {
		for column, cell := range row {
			padding := strings.Repeat(" ", widths[column]-utf8.RuneCountInString(cell))
			if column == 0 {
				cell += padding
			} else {
				cell = padding + cell
			}
			text.WriteString("| " + cell + " ")
		}
		text.WriteString("|\n")
		if i == 0 {
			text.WriteString(rule(widths))
		}
	}
	return text.String()
}

func rule(widths []int) string {
	var text strings.Builder
	for column, width := range widths {
		end := ":"
		if column == 0 {
			end = "-"
		}
		text.WriteString("| " + strings.Repeat("-", width-1) + end + " ")
	}
	return text.String() + "|\n"
}

// say writes a text. Its errors are kept: a report that cannot be written is worth nothing.
func say(out io.Writer, format string, args ...any) error {
	if _, err := fmt.Fprintf(out, format, args...); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}
