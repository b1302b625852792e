package definition

import (
	"regexp"
	"strings"
)

var (
	// backgrounded is the end of a command that the shell does not wait for: "&", but not "&&", "2>&1" or "&>".
	backgrounded = regexp.MustCompile(`[ \t)'"]&(?:[ \t]|\n|;|$)`)

	// commandEnd matches the end of a command.
	commandEnd = regexp.MustCompile(`\n|;|&&|\|\||\bdo\b|\bthen\b|[ \t]&[ \t\n]`)

	// createsReady is a command that creates /pav/ready.
	createsReady = regexp.MustCompile(`(?:\btouch\b[^\n;&|]*|>[ \t]*['"]?)/pav/ready\b`)

	// startsReady is a command of its own that creates /pav/ready, and writesResult a command that writes a result file of a
	// creation pod.
	startsReady  = regexp.MustCompile(`(?:^|\n|;|&&)[ \t]*(?:touch[ \t]+|:?[ \t]*>[ \t]*)['"]?/pav/ready['"]?[ \t]*(?:\n|;|&&|$)`)
	writesResult = regexp.MustCompile(`>[ \t]*['"]?/pav/(?:handle|capacity|snapshotHandle|snapshotSize)['"]?(?:[ \t\n;&|)]|$)`)

	// copies is a command that copies files, with its arguments. reflinks is the option with which cp shares the blocks of the
	// file, at one moment, or fails.
	copies   = regexp.MustCompile(`(?m)(?:^|[;&|({!]|\b(?:then|do|else|if|until|while|exec|xargs)\b)[ \t]*(cp[ \t][^\n;&|]*)`)
	reflinks = regexp.MustCompile(`[ \t]--reflink(?:=always)?(?:[ \t]|$)`)

	// anything is what a snapshot creation pod copies, and ofSource the source of a creation pod.
	anything = regexp.MustCompile(``)
	ofSource = regexp.MustCompile(`\{\{[^}]*\bsource\b`)

	// unsureBetween matches what makes it uncertain which of two commands runs first, or whether both run. unsureBefore
	// matches what comes before both, and may make the first one part of a function, a text or a trap.
	unsureBetween = regexp.MustCompile(`\b(?:case|esac|if|elif|else|fi|while|until|for|done|function|trap|exit|exec)\b|;;|\(\)|\|\||[ \t\n;][{}](?:[ \t\n;]|$)|[^&>]&[ \t\n;]`)
	unsureBefore  = regexp.MustCompile(`\b(?:case|if|while|until|for|function|trap|exit|exec)\b|<<|\(\)|\{%`)

	// looks matches what a script does to check whether something is mounted, or to wait for it: any test or loop
	// counts.
	looks = regexp.MustCompile(`mountpoint|findmnt|/proc/|\b(?:until|while|for|if|test|stat|df|ls|wait|inotifywait)\b|\[`)
)

// readyTooEarly returns the position at which a script creates /pav/ready directly after it has started a background
// command that mounts at /pav/volume, without checking for the mount. It reports nothing if it is not sure.
func readyTooEarly(source string) (place, bool) {
	joined := strings.ReplaceAll(source, "\\\n", "  ") // the length stays the same
	for _, end := range backgrounded.FindAllStringIndex(joined, -1) {
		before := joined[:end[0]+1]
		if ends := commandEnd.FindAllStringIndex(before, -1); len(ends) > 0 {
			before = before[ends[len(ends)-1][1]:]
		}
		if !strings.Contains(before, "/pav/volume") {
			continue
		}
		after := joined[end[0]+2:]
		ready := createsReady.FindStringIndex(after)
		if ready == nil || looks.MatchString(withBlankComments(after[:ready[0]])) {
			continue
		}
		return placeIn(source, end[0]+2+ready[0]), true
	}
	return place{}, false
}

// resultAfterReady returns the position at which a script writes a result file after it has created /pav/ready. It reports
// nothing if it is not sure.
func resultAfterReady(source string) (place, bool) {
	script := withBlankComments(strings.ReplaceAll(source, "\\\n", "  ")) // the length stays the same
	ready := startsReady.FindStringIndex(script)
	if ready == nil || unsureBefore.MatchString(script[:ready[0]]) {
		return place{}, false
	}
	from := ready[1] - 1 // with the end of the command
	result := writesResult.FindStringIndex(script[from:])
	if result == nil || unsureBetween.MatchString(script[from:from+result[0]]) {
		return place{}, false
	}
	return placeIn(source, from+result[0]), true
}

// tornCopy returns the position at which a script copies what of matches with cp, which takes a while, so that the copy of a file that is
// written meanwhile has parts of several moments. It does not count files in /pav.
func tornCopy(source string, of *regexp.Regexp) (place, bool) {
	script := withBlankComments(strings.ReplaceAll(source, "\\\n", "  ")) // the length stays the same
	for _, at := range copies.FindAllStringSubmatchIndex(script, -1) {
		if command := script[at[2]:at[3]]; of.MatchString(command) && !reflinks.MatchString(command) && !strings.Contains(command, " /pav/") {
			return placeIn(source, at[2]), true
		}
	}
	return place{}, false
}

var comment = regexp.MustCompile(`(?m)(^|[ \t])#.*$`)

// withBlankComments returns a script with spaces in the place of comments, so that positions stay the same.
func withBlankComments(script string) string {
	return comment.ReplaceAllStringFunc(script, func(text string) string { return strings.Repeat(" ", len(text)) })
}

// placeIn returns the position of a byte in a text.
func placeIn(text string, at int) place {
	r := &reader{source: text, line: 1, column: 1}
	r.skip(at)
	return place{r.line, r.column}
}
