package observability

import "strings"

// MaxNote is the greatest length of an event's message, in bytes; the API server takes 1024.
const MaxNote = 1000

// MaxCondition is the greatest length of a condition's message, in bytes; the API server takes 32 KiB.
const MaxCondition = 4 << 10

// Clip shortens a text to at most limit bytes. It removes the middle: the beginning says what failed, and the end has
// the command that shows more.
func Clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const gap = " … "
	half := (limit - len(gap)) / 2
	return strings.ToValidUTF8(text[:half], "") + gap + strings.ToValidUTF8(text[len(text)-half:], "")
}
