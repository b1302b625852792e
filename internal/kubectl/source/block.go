package source

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// block reads the content of a block scalar.
type block struct {
	writing
	folded bool
	indent int

	// pending is the line break after the content so far, and blank the empty lines after it.
	pending *place
	blank   []place

	// more means that the last line was indented further, so it is not folded.
	more bool
}

func blockLayout(lines []string, header place, node *yaml.Node) []place {
	text := []rune(lineOf(lines, header.line))
	if header.column > len(text) || text[header.column-1] != '|' && text[header.column-1] != '>' {
		return nil
	}
	indicators := string(text[header.column:])
	if end := strings.IndexAny(indicators, " \t#"); end >= 0 {
		indicators = indicators[:end]
	}
	deepest := firstIndent(lines[header.line:])
	candidates := []int{deepest}
	if strings.ContainsAny(indicators, "123456789") {
		// The number counts from the parent's indentation, which follows from the text.
		for indent := deepest - 1; indent > 0; indent-- {
			candidates = append(candidates, indent)
		}
	}
	for _, indent := range candidates {
		b := &block{writing: writing{lines: lines}, folded: node.Style&yaml.FoldedStyle != 0, indent: indent}
		b.read(header.line + 1)
		b.chomp(indicators)
		// If the last line of a file has no line break, neither has the text.
		if got := string(b.text); got == node.Value || got == node.Value+"\n" {
			return b.places
		}
	}
	return nil
}

// firstIndent returns the indentation of the first line that is not empty.
func firstIndent(lines []string) int {
	most := 0
	for _, line := range lines {
		indent := len(line) - len(strings.TrimLeft(line, " "))
		if indent < len(line) {
			return max(indent, most)
		}
		most = max(most, indent)
	}
	return most
}

// read reads the lines of the scalar, from the first one.
func (b *block) read(first int) {
	for number := first; number <= len(b.lines); number++ {
		line := b.lines[number-1]
		indent := 0
		for indent < b.indent && indent < len(line) && line[indent] == ' ' {
			indent++
		}
		rest := line[indent:]
		if rest == "" {
			b.blank = append(b.blank, place{number, indent + 1})
			continue
		}
		if indent < b.indent {
			return
		}
		b.add(number, rest)
	}
}

// add adds a line with text. Two lines are folded if neither is indented further.
func (b *block) add(number int, rest string) {
	more := isBlank(rune(rest[0]))
	switch {
	case b.pending == nil:
	case !b.folded || b.more || more:
		b.emit('\n', *b.pending)
	case len(b.blank) == 0:
		b.emit(' ', *b.pending)
	}
	b.breaks()
	column := b.indent + 1
	for _, r := range rest {
		b.emit(r, place{number, column})
		column++
	}
	b.more, b.pending = more, &place{number, column}
}

func (b *block) breaks() {
	for _, at := range b.blank {
		b.emit('\n', at)
	}
	b.blank = nil
}

// chomp ends the text as the scalar's header says.
func (b *block) chomp(indicators string) {
	if strings.Contains(indicators, "-") {
		return
	}
	if b.pending != nil {
		b.emit('\n', *b.pending)
	}
	if strings.Contains(indicators, "+") {
		b.breaks()
	}
}
