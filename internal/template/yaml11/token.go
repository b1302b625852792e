package yaml11

// kind is what sort of token a token is.
type kind int

const (
	streamEnd kind = iota
	directive
	documentStart
	documentEnd
	blockSequenceStart
	blockMappingStart
	blockEnd
	flowSequenceStart
	flowSequenceEnd
	flowMappingStart
	flowMappingEnd
	blockEntry
	flowEntry
	key
	value
	alias
	anchor
	tag
	scalar
)

// names are how errors call the kinds.
var names = [...]string{
	streamEnd:          "the end of the text",
	directive:          "a directive",
	documentStart:      "'---'",
	documentEnd:        "'...'",
	blockSequenceStart: "a list",
	blockMappingStart:  "a mapping",
	blockEnd:           "the end of a block",
	flowSequenceStart:  "'['",
	flowSequenceEnd:    "']'",
	flowMappingStart:   "'{'",
	flowMappingEnd:     "'}'",
	blockEntry:         "'-'",
	flowEntry:          "','",
	key:                "a key",
	value:              "':'",
	alias:              "an alias",
	anchor:             "an anchor",
	tag:                "a tag",
	scalar:             "a scalar",
}

func (k kind) String() string { return names[k] }

// token is the smallest part of a text that means something.
type token struct {
	kind kind
	mark mark

	// text is a scalar's value, the name of an anchor or alias, what follows a tag's handle, the prefix
	// that a TAG directive defines, or the name of any other directive.
	text string

	// handle is that of a tag, "" if it has none; or the one that a TAG directive defines.
	handle string

	// plain says that a scalar is not quoted.
	plain bool
}

func isBreak(r rune) bool {
	return r == '\n' || r == '\r' || r == '\u0085' || r == '\u2028' || r == '\u2029'
}

// end stands behind a text's last character. No text has it inside.
const end = 0

func isBreakOrEnd(r rune) bool { return r == end || isBreak(r) }

func isSpaceOrEnd(r rune) bool { return r == ' ' || isBreakOrEnd(r) }

func isBlankOrEnd(r rune) bool { return r == '\t' || isSpaceOrEnd(r) }

// isWord reports whether a character can be in the name of an anchor, a directive or a tag's handle.
func isWord(r rune) bool {
	return '0' <= r && r <= '9' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z' || r == '-' || r == '_'
}
