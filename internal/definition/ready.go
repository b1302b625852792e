package definition

import (
	"regexp"
	"strings"
)

var (
	// backgrounded is the end of a command that the shell does not wait for: "&", but not "&&", "2>&1" or "&>".
	backgrounded = regexp.MustCompile(`[ \t)'"]&(?:[ \t]|\n|;|$)`)

	// commandEnd is where the command before another one ends.
	commandEnd = regexp.MustCompile(`\n|;|&&|\|\||\bdo\b|\bthen\b|[ \t]&[ \t\n]`)

	// createsReady is a command that creates /pav/ready.
	createsReady = regexp.MustCompile(`(?:\btouch\b[^\n;&|]*|>[ \t]*['"]?)/pav/ready\b`)

	// looks is what a script does to see whether something is mounted, or to wait for it: any test or loop will do.
	looks = regexp.MustCompile(`mountpoint|findmnt|/proc/|\b(?:until|while|for|if|test|stat|df|ls|wait|inotifywait)\b|\[`)
)

// readyTooEarly returns where a shell's commands create /pav/ready right after a command in the background that is
// to mount something at /pav/volume, without a look at whether that has happened; it rather says nothing than
// what is not so.
func readyTooEarly(source string) (place, bool) {
	joined := strings.ReplaceAll(source, "\\\n", "  ") // as long as before
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
		if ready == nil || looks.MatchString(withoutComments(after[:ready[0]])) {
			continue
		}
		return placeIn(source, end[0]+2+ready[0]), true
	}
	return place{}, false
}

var comment = regexp.MustCompile(`(?m)(^|[ \t])#.*$`)

func withoutComments(script string) string { return comment.ReplaceAllString(script, "") }

// placeIn returns the place of a byte in a text.
func placeIn(text string, at int) place {
	r := &reader{source: text, line: 1, column: 1}
	r.skip(at)
	return place{r.line, r.column}
}
