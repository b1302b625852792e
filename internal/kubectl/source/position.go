package source

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// place is a position in a file, from 1, in characters.
type place struct{ line, column int }

// Position returns the position of a field of the object in the file. It is the position of the key if key is true or
// the value begins in another line, and of the value otherwise. Field is a path from the root, such as
// spec.containers[0].name or metadata.labels[a.b/c]. If the field does not exist, the position is that of the longest
// existing part of the path.
// Line and column are a position in the text of the field's value, from 1, or 0 for the field as a whole. The result is
// exact where the file has each line of the text as it is: in a literal block and in a scalar of one line without escape
// sequences. In other scalars it is where the scalar begins.
// The result is always a position in the file.
func (d Document) Position(field string, key bool, line, column int) (fileLine, fileColumn int) {
	at := place{d.line, 1}
	if d.root != nil {
		at = d.position(field, key, line, column)
	}
	at.line = max(1, min(at.line, len(d.lines)))
	at.column = max(1, min(at.column, utf8.RuneCountInString(d.Line(at.line))+1))
	return at.line, at.column
}

func (d Document) position(field string, key bool, line, column int) place {
	found := d.find(field)
	value := resolve(found.value)
	if line > 0 && !key && !found.partly && value.Kind == yaml.ScalarNode {
		return within(d.lines, value, line, max(1, column))
	}
	if found.key != nil && (key || found.partly || value.Kind != yaml.ScalarNode && found.value.Line != found.key.Line) {
		return start(found.key)
	}
	return start(found.value)
}

// within returns the position in the file of a line and column of a scalar's text, or that of the scalar.
func within(lines []string, node *yaml.Node, line, column int) place {
	if node.Style&yaml.LiteralStyle != 0 {
		return withinBlock(lines, node, line, column)
	}
	at := start(node)
	written, quote := withoutProperties(after(lines, at)), ""
	switch {
	case node.Style&yaml.DoubleQuotedStyle != 0:
		quote = `"`
	case node.Style&yaml.SingleQuotedStyle != 0:
		quote = "'"
	}
	if line > 1 || !strings.HasPrefix(written, quote+node.Value+quote) {
		return at
	}
	skipped := utf8.RuneCountInString(after(lines, at)) - utf8.RuneCountInString(written) + len(quote)
	return place{at.line, at.column + skipped + min(column-1, utf8.RuneCountInString(node.Value))}
}

// withinBlock is within for a literal block, whose lines are those of the text with an indentation.
func withinBlock(lines []string, node *yaml.Node, line, column int) place {
	// The block may have an anchor or a tag in the line before its header.
	header, rest := node.Line, after(lines, start(node))
	for header < len(lines) && !strings.HasPrefix(withoutProperties(rest), "|") {
		header++
		rest = strings.TrimLeft(lineOf(lines, header), " ")
	}
	text, written := lineOf(strings.Split(node.Value, "\n"), line), lineOf(lines, header+line)
	if !strings.HasSuffix(written, text) {
		return start(node)
	}
	indent := utf8.RuneCountInString(written) - utf8.RuneCountInString(text)
	return place{header + line, indent + 1 + min(column-1, utf8.RuneCountInString(text))}
}

// after returns the rest of the line at a position.
func after(lines []string, at place) string {
	written := []rune(lineOf(lines, at.line))
	return string(written[min(at.column-1, len(written)):])
}

// withoutProperties removes the anchor and the tag of a node from its text.
func withoutProperties(written string) string {
	for strings.HasPrefix(written, "&") || strings.HasPrefix(written, "!") {
		_, written, _ = strings.Cut(written, " ")
		written = strings.TrimLeft(written, " ")
	}
	return written
}

// start returns the position at which a node begins.
func start(node *yaml.Node) place { return place{node.Line, node.Column} }

// resolve returns the node to which an alias refers, and other nodes unchanged.
func resolve(node *yaml.Node) *yaml.Node {
	for i := 0; node.Kind == yaml.AliasNode && node.Alias != nil && i < 100; i++ {
		node = node.Alias
	}
	return node
}

// entry is the node at a path.
type entry struct {
	// key is the value's key in its mapping; nil for items of lists and for the root.
	key, value *yaml.Node

	// partly means that only the first part of the path exists.
	partly bool
}

// find returns the entry at a path.
func (d Document) find(field string) entry {
	at := entry{value: d.root}
	if field == "" {
		return at
	}
	rest := field
	if !strings.HasPrefix(rest, "[") {
		rest = "." + rest
	}
	for rest != "" {
		next, after, ok := step(resolve(at.value), rest)
		if !ok {
			at.partly = true
			return at
		}
		at, rest = next, after
	}
	return at
}

// step follows the first element of a path, and returns the rest of the path.
func step(node *yaml.Node, path string) (entry, string, bool) {
	switch node.Kind {
	case yaml.SequenceNode:
		text, rest, ok := strings.Cut(strings.TrimPrefix(path, "["), "]")
		index, err := strconv.Atoi(text)
		if !ok || err != nil || index < 0 || index >= len(node.Content) {
			return entry{}, "", false
		}
		return entry{value: node.Content[index]}, rest, true
	case yaml.MappingNode:
		return member(node, path, 0)
	default:
		return entry{}, "", false
	}
}

// maxMerges is the depth to which merged mappings are searched.
const maxMerges = 20

// member returns the value of the key with which a path begins: the longest such key, as keys may contain any
// characters. Of two equal keys, in the mapping or merged into it, the last one counts, as for kubectl.
func member(node *yaml.Node, path string, depth int) (entry, string, bool) {
	best, left, found := entry{}, path, false
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i]
		if isMerge(key) {
			for _, merged := range merged(node.Content[i+1], depth) {
				if next, rest, ok := member(merged, path, depth+1); ok && len(rest) <= len(left) {
					best, left, found = next, rest, true
				}
			}
			continue
		}
		if resolve(key).Kind != yaml.ScalarNode {
			continue
		}
		if n := prefix(path, keyText(key)); n > 0 && len(path)-n <= len(left) {
			best, left, found = entry{key: key, value: node.Content[i+1]}, path[n:], true
		}
	}
	return best, left, found
}

// prefix returns the number of bytes of a key at the beginning of a path; 0 if the path does not begin with it.
func prefix(path, key string) int {
	if step := "[" + key + "]"; strings.HasPrefix(path, step) {
		return len(step)
	}
	step := "." + key
	if rest, ok := strings.CutPrefix(path, step); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
		return len(step)
	}
	return 0
}

// merged returns the mappings that "<<" merges. Of those in a list, the first has precedence, so it comes last.
func merged(node *yaml.Node, depth int) []*yaml.Node {
	if depth == maxMerges {
		return nil
	}
	node = resolve(node)
	if node.Kind == yaml.MappingNode {
		return []*yaml.Node{node}
	}
	var all []*yaml.Node
	for _, item := range slices.Backward(node.Content) {
		if item = resolve(item); item.Kind == yaml.MappingNode {
			all = append(all, item)
		}
	}
	return all
}
