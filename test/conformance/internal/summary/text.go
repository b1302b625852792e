package summary

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/onsi/ginkgo/v2/types"
)

// maxLine is how much of a failure's first line is shown, in characters.
const maxLine = 300

var skipping = regexp.MustCompile(`(?:,| --?) skipping$`)

// reason gives why a spec was skipped such that specs of several drivers have the same reason: without the
// driver's name and without the news that it is skipped. What depends on the pattern stays.
func reason(message, driver string) string {
	// The name counts only where the suite puts it: it may be an ordinary word, such as "shared".
	name := regexp.MustCompile(`(?i)(?:^|\bdriver )"?` + regexp.QuoteMeta(driver) + `"? `)
	text := name.ReplaceAllLiteralString(firstLine(message), "Driver ")
	return strings.TrimSpace(skipping.ReplaceAllString(text, ""))
}

func failure(report types.SpecReport) string {
	text := firstLine(report.Failure.Message)
	if report.Failure.ForwardedPanic != "" {
		text += ": " + firstLine(report.Failure.ForwardedPanic)
	}
	if text == "" {
		text = report.State.String()
	}
	return text
}

// firstLine gives the first line that is not empty, and the next one too where the first only announces it.
func firstLine(text string) string {
	var line string
	for next := range strings.Lines(text) {
		line = strings.TrimSpace(line + " " + strings.Join(strings.Fields(next), " "))
		if line != "" && !strings.HasSuffix(line, ":") {
			break
		}
	}
	if runes := []rune(line); len(runes) > maxLine {
		line = string(runes[:maxLine]) + "…"
	}
	return line
}

var module = regexp.MustCompile(`^.*@v[^/]+/`)

// location gives file and line without what depends on the machine: the path inside its module, or else the
// file and its directory.
func location(at types.CodeLocation) string {
	file := at.FileName
	switch {
	case file == "":
		return "nowhere"
	case module.MatchString(file):
		file = module.ReplaceAllString(file, "")
	default:
		file = path.Join(path.Base(path.Dir(file)), path.Base(file))
	}
	return fmt.Sprintf("%s:%d", file, at.LineNumber)
}

// Focus gives a regular expression for each spec that failed, to be passed to Ginkgo's focus.
func Focus(run Run) []string {
	var names []string
	for _, spec := range run.In(Failed) {
		names = append(names, regexp.QuoteMeta(spec.Name))
	}
	return names
}
