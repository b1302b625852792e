package summary

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/onsi/ginkgo/v2/types"
)

// maxLine and maxFailure are the maximum lengths of a first line and of a failure in the summary, in characters.
const (
	maxLine    = 300
	maxFailure = 4000
)

var skipping = regexp.MustCompile(`(?:,| --?) skipping$`)

// reason returns the reason for skipping a spec in a form that is the same for all drivers. It removes the driver's
// name and the words that announce the skipping. It keeps the parts that depend on the pattern.
func reason(message, driver string) string {
	// The name is replaced only in the places where the suite puts it. The name may be an ordinary word, such as
	// "shared".
	name := regexp.MustCompile(`(?i)(?:^|\bdriver )"?` + regexp.QuoteMeta(driver) + `"? `)
	text := name.ReplaceAllLiteralString(firstLine(message), "Driver ")
	return strings.TrimSpace(skipping.ReplaceAllString(text, ""))
}

// failure returns what failed, without empty lines: the first line of a command's failure only says that it failed.
func failure(report types.SpecReport) string {
	var lines []string
	for line := range strings.Lines(report.Failure.Message + "\n" + report.Failure.ForwardedPanic) {
		if line = strings.TrimRight(line, " \t\r\n"); line != "" {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return report.State.String()
	}
	return atMost(maxFailure, strings.Join(lines, "\n"))
}

// firstLine returns the first line that is not empty. If that line ends in a colon, firstLine appends the next line.
func firstLine(text string) string {
	var line string
	for next := range strings.Lines(text) {
		line = strings.TrimSpace(line + " " + strings.Join(strings.Fields(next), " "))
		if line != "" && !strings.HasSuffix(line, ":") {
			break
		}
	}
	return atMost(maxLine, line)
}

// atMost returns the first characters of a text.
func atMost(characters int, text string) string {
	if runes := []rune(text); len(runes) > characters {
		return string(runes[:characters]) + "…"
	}
	return text
}

var module = regexp.MustCompile(`^.*@v[^/]+/`)

// location returns file and line in a form that does not depend on the machine. The file is the path in its module or,
// outside modules, the file's name and its directory's name.
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

// Focus returns a regular expression for each failed spec. Each can be passed to Ginkgo's focus.
func Focus(run Run) []string {
	var names []string
	for _, spec := range run.In(Failed) {
		names = append(names, regexp.QuoteMeta(spec.Name))
	}
	return names
}
