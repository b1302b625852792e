package main

import (
	"regexp"
	"strings"

	"github.com/albertofaria/pav/internal/kubectl/cli"
)

var (
	title   = regexp.MustCompile(`^((?:Claim|Volume|PavProvisioner) \S+): ([A-Z]+)$`)
	detail  = regexp.MustCompile(`^  (\S.*?)( {3,})(\S.*)$`)
	entry   = regexp.MustCompile(`^  ([0-9A-Za-z ]*[0-9:]{8})( {3,})(?:([0-9]\S*) (\S.*?)( {3,}))?(\S.*?)( {3,})(\S.*?)( \([0-9]+ times since [0-9:]+\))?$`)
	well    = regexp.MustCompile(`(?:^|, )(?:Bound|Ready|Staged|Running)(?:,|$)`)
	unwell  = regexp.MustCompile(`, Pending, attempt [0-9]+$`)
	success = regexp.MustCompile(`^provisioned$|^staged: |^started with the volume$| succeeded$`)
	failure = regexp.MustCompile(`^\w*Failed: | failed(?::|$)`)
	step    = regexp.MustCompile(`^  ((passed|warning|failed|skipped) +) (.*)$`)
	summary = regexp.MustCompile(`^\S+ (passed|failed): `)
)

// colours has the functions of the style that the commands use on a terminal.
var colours = cli.ColourStyle()

// eachLine changes the lines of a text one by one. The exit status, which a shell does not print, is dim.
func eachLine(text string, change func(string) string) string {
	var out strings.Builder
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		if strings.HasPrefix(line, "(exit status ") {
			out.WriteString(colours.Dim(line) + "\n")
		} else {
			out.WriteString(change(line) + "\n")
		}
	}
	return out.String()
}

// colourDescription adds the colours of "kubectl pav describe" to its output. Only the first finding gets that of
// the state in the title.
func colourDescription(text string) string {
	part, paint := "", colours.Bold
	return eachLine(text, func(line string) string {
		if match := title.FindStringSubmatch(line); match != nil {
			part, paint = "finding", ofState(match[2])
			return colours.Bold(match[1]) + ": " + paint(match[2])
		}
		switch head, rest, _ := strings.Cut(line, ","); {
		case line == "":
			part = "details"
			return line
		case head == "Timeline" || head == "Log":
			part = head
			return colours.Bold(head) + colours.Dim(","+rest)
		case head == "Next:":
			part = head
			return colours.Bold(head)
		}
		switch part {
		case "finding":
			part = "reason"
			return "  " + paint(line[2:])
		case "details":
			return colourDetail(line)
		case "Timeline":
			return colourEntry(line)
		case "Log":
			return "  " + colours.Dim("|") + strings.TrimPrefix(line, "  |")
		case "Next:":
			if command, ok := strings.CutPrefix(line, "    "); ok {
				return "    " + colours.Bold(command)
			}
		}
		return line
	})
}

func ofState(state string) func(string) string {
	switch state {
	case "FAILING":
		return colours.Bad
	case "WAITING":
		return colours.Warn
	case "HEALTHY":
		return colours.Good
	}
	return plain
}

func plain(text string) string { return text }

func colourDetail(line string) string {
	match := detail.FindStringSubmatch(line)
	if match == nil {
		return line
	}
	paint := plain
	switch {
	case unwell.MatchString(match[3]):
		paint = colours.Bad
	case well.MatchString(match[3]):
		paint = colours.Good
	}
	return "  " + colours.Dim(match[1]) + match[2] + paint(match[3])
}

func colourEntry(line string) string {
	match := entry.FindStringSubmatch(line)
	if match == nil {
		return line
	}
	text := "  " + colours.Dim(match[1]) + match[2]
	if match[3] != "" {
		text += match[3] + " " + colours.Dim(match[4]) + match[5]
	}
	paint := plain
	switch {
	case failure.MatchString(match[8]):
		paint = colours.Bad
	case success.MatchString(match[8]):
		paint = colours.Good
	}
	return text + match[6] + match[7] + paint(match[8]) + colours.Dim(match[9])
}

// colourTest adds the colours of "kubectl pav test" to its output.
func colourTest(text string) string {
	return eachLine(text, func(line string) string {
		if match := step.FindStringSubmatch(line); match != nil {
			paint := map[string]func(string) string{"passed": colours.Good, "warning": colours.Warn, "failed": colours.Bad, "skipped": colours.Dim}[match[2]]
			return "  " + paint(match[1]) + " " + match[3]
		}
		if match := summary.FindStringSubmatch(line); match != nil {
			return map[string]func(string) string{"passed": colours.Good, "failed": colours.Bad}[match[1]](line)
		}
		if strings.HasPrefix(line, " ") {
			return line
		}
		return colours.Bold(line)
	})
}
