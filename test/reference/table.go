package reference

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// columns are those of each table of differences.
const columns = "| object | field | theirs | PaV's | why |"

// Table is a table of docs/buckets-comparison.md: the differences that are known, with their reasons.
type Table struct {
	name string
	rows map[Difference]bool // whether the difference was found
}

// Written returns the table below a heading.
func Written(t *testing.T, heading string) *Table {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(directory, "..", "..", "docs", "buckets-comparison.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n## "+heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	_, rows, hasTable := strings.Cut(section, columns+"\n|---|---|---|---|---|\n")
	if !found || !hasTable {
		t.Fatalf("the page has no section %q with the columns %s", heading, columns)
	}
	table := &Table{name: heading, rows: map[Difference]bool{}}
	for line := range strings.Lines(rows) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		if err := table.add(line); err != nil {
			t.Fatalf("section %q: %v: %s", heading, err, line)
		}
	}
	return table
}

// add adds a row. It may be about several kinds of objects.
func (w *Table) add(line string) error {
	row, err := parse(line)
	if err != nil {
		return err
	}
	for object := range strings.SplitSeq(row.Object, ", ") {
		one := row
		one.Object = object
		if _, twice := w.rows[one]; twice {
			return fmt.Errorf("the row is there twice")
		}
		w.rows[one] = false
	}
	return nil
}

// parse returns the difference of a row. Values are code; one that is absent is a dash.
func parse(line string) (Difference, error) {
	cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
	if len(cells) != 5 || strings.TrimSpace(cells[4]) == "" {
		return Difference{}, fmt.Errorf("the row has %d cells, or no reason", len(cells))
	}
	for i, cell := range cells[:4] {
		cell = strings.TrimSpace(cell)
		switch {
		case cell == "–":
			cells[i] = ""
		case i == 0:
			cells[i] = cell
		case len(cell) > 2 && cell[0] == '`' && cell[len(cell)-1] == '`':
			cells[i] = cell[1 : len(cell)-1]
		default:
			return Difference{}, fmt.Errorf("cell %d is neither code nor a dash: %s", i+1, cell)
		}
	}
	return Difference{Object: cells[0], Field: cells[1], Theirs: cells[2], Ours: cells[3]}, nil
}

// row returns the row that a difference would have, which lacks the reason.
func (d Difference) row() string {
	code := func(text string) string {
		if text == "" {
			return "–"
		}
		return "`" + text + "`"
	}
	return fmt.Sprintf("| %s | %s | %s | %s | ... |", d.Object, code(d.Field), code(d.Theirs), code(d.Ours))
}

// anything is, as PaV's value, whatever PaV has in fields that others lack, and at the end of a field's name, all fields with that beginning.
const anything = "*"

// rowOf returns the row that a difference is written in.
func (w *Table) rowOf(d Difference) (row Difference, written bool) {
	if _, exact := w.rows[d]; exact {
		return d, true
	}
	for row := range w.rows {
		beginning, several := strings.CutSuffix(row.Field, anything)
		if several && row.Ours == anything && row.Theirs == "" && d.Theirs == "" && row.Object == d.Object && strings.HasPrefix(d.Field, beginning) {
			return row, true
		}
	}
	return Difference{}, false
}

// Check fails the test for each difference that the table lacks.
func (w *Table) Check(t *testing.T, found []Difference) {
	t.Helper()
	for _, d := range found {
		row, written := w.rowOf(d)
		if !written {
			t.Errorf("not written in docs/buckets-comparison.md, %s:\n%s", w.name, d.row())
			continue
		}
		w.rows[row] = true
	}
}

// CheckAll fails the test for each row of the table that was not found by any check.
func (w *Table) CheckAll(t *testing.T) {
	t.Helper()
	for row, found := range w.rows {
		if !found {
			t.Errorf("written in docs/buckets-comparison.md, %s, but not found:\n%s", w.name, row.row())
		}
	}
}
