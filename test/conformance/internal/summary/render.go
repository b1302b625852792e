package summary

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Hint is the advice that is printed if the numbers differ from the recorded ones.
const Hint = "A mistyped capability or key in driver.yaml switches specs off without a word. " +
	"If the change is meant, record it with --record."

// Markdown returns the summary of a driver's run. differences are the differences from the recorded numbers. The tables
// are padded, so that they are also readable in a terminal.
func Markdown(driver Driver, run Run, commit string, differences []string) string {
	out := &strings.Builder{}
	total, suites := run.Counts()
	fmt.Fprintf(out, "## %s\n\n", driver.Name)
	table(out, []string{"Passed:", "Failed:", "Skipped:", "Left out:", "Time taken:", "Sum of specs:", "Processes", "Commit", "Date"},
		[][]string{append(total.cells(), seconds(run.Wall), seconds(run.sum()), processes(run.Processes),
			cmp.Or(commit, "unknown"), run.Started.UTC().Format("2006-01-02 15:04 UTC"))})

	fmt.Fprintf(out, "Capabilities: %s.\n\n", cmp.Or(strings.Join(driver.Capabilities, ", "), "none"))
	list(out, "Also declared:", driver.Others)
	list(out, "### Problems", run.Problems)
	if len(differences) > 0 {
		list(out, "### Other numbers of specs than recorded", append(slices.Clone(differences), Hint))
	}

	var failed, flaky []string
	for _, spec := range run.Specs {
		if spec.Result == Failed {
			failed = append(failed, fmt.Sprintf("%s\n%s: %s", spec.Name, spec.Location, spec.Failure))
		}
		if spec.Flaky {
			flaky = append(flaky, fmt.Sprintf("%s: %d attempts", spec.Name, spec.Attempts))
		}
	}
	list(out, "### Failed", failed)
	list(out, "### Passed and failed, when repeated", flaky)

	var rows [][]string
	for _, name := range slices.Sorted(maps.Keys(suites)) {
		count := suites[name]
		rows = append(rows, append([]string{name}, count.cells()...))
	}
	out.WriteString("### By suite\n\n")
	table(out, []string{"Suite", "Passed:", "Failed:", "Skipped:", "Left out:"}, rows)
	if rows := reasons(run); len(rows) > 0 {
		out.WriteString("### Skipped, by reason\n\n")
		table(out, []string{"Reason", "Specs:", "Suites"}, rows)
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// reasons returns a table row for each reason for skipping, the most frequent reason first.
func reasons(run Run) [][]string {
	count := map[string]int{}
	suites := map[string]map[string]bool{}
	for _, spec := range run.In(Skipped) {
		if suites[spec.Reason] == nil {
			suites[spec.Reason] = map[string]bool{}
		}
		count[spec.Reason]++
		suites[spec.Reason][spec.Suite] = true
	}
	var rows [][]string
	for _, reason := range slices.SortedFunc(maps.Keys(count), func(a, b string) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b))
	}) {
		rows = append(rows, []string{reason, strconv.Itoa(count[reason]),
			strings.Join(slices.Sorted(maps.Keys(suites[reason])), ", ")})
	}
	return rows
}

func (c Count) cells() []string {
	return []string{strconv.Itoa(c.Passed), strconv.Itoa(c.Failed), strconv.Itoa(c.Skipped), strconv.Itoa(c.LeftOut)}
}

func (r Run) sum() time.Duration {
	var sum time.Duration
	for _, spec := range r.Specs {
		sum += spec.Time
	}
	return sum
}

func seconds(d time.Duration) string { return d.Round(time.Second).String() }

// processes returns a text such as "4, then 1".
func processes(of []int) string {
	var parts []string
	for _, n := range of {
		parts = append(parts, strconv.Itoa(n))
	}
	return strings.Join(parts, ", then ")
}

// list writes a title and a list of items, which may have several lines. It writes nothing if there are no items.
func list(out *strings.Builder, title string, items []string) {
	if len(items) == 0 {
		return
	}
	fmt.Fprintf(out, "%s\n\n", title)
	for _, item := range items {
		fmt.Fprintf(out, "- %s\n", strings.ReplaceAll(item, "\n", "\n  "))
	}
	out.WriteString("\n")
}

// table writes a table. If a column's header ends in a colon, the column has numbers and is right-aligned.
func table(out *strings.Builder, header []string, rows [][]string) {
	widths, right := make([]int, len(header)), make([]bool, len(header))
	cells := make([][]string, 0, 1+len(rows))
	for _, row := range append([][]string{header}, rows...) {
		escaped := make([]string, len(row))
		for i, cell := range row {
			escaped[i] = strings.ReplaceAll(cell, "|", `\|`)
		}
		cells = append(cells, escaped)
	}
	for i := range header {
		cells[0][i], right[i] = strings.CutSuffix(header[i], ":")
		for _, row := range cells {
			widths[i] = max(widths[i], 3, utf8.RuneCountInString(row[i]))
		}
	}
	rule := make([]string, len(header))
	for i, width := range widths {
		rule[i] = strings.Repeat("-", width)
		if right[i] {
			rule[i] = rule[i][1:] + ":"
		}
	}
	for _, row := range slices.Insert(cells, 1, rule) {
		for i, cell := range row {
			padding := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if right[i] {
				cell, padding = padding+cell, ""
			}
			fmt.Fprintf(out, "| %s%s ", cell, padding)
		}
		out.WriteString("|\n")
	}
	out.WriteString("\n")
}
