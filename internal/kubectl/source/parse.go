package source

import (
	"bytes"
	"errors"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	kubeyaml "sigs.k8s.io/yaml"

	"github.com/albertofaria/pav/internal/template/yaml11"
)

// parse reads a document.
func (f *file) parse(c chunk) {
	root := nodeOf(c)
	if !c.json && expandedSize(c, root) > maxExpanded {
		f.wrongf(f.firstLine(c), 1, "with its aliases replaced the document would have more than %d MiB", maxExpanded>>20)
		return
	}
	value, err := valueOf(c)
	if err != nil {
		f.syntax(c, err)
		return
	}
	if value == nil {
		return
	}
	line := f.firstLine(c)
	object, ok := value.(map[string]any)
	if !ok {
		f.wrongf(line, 1, "an object is expected here: a mapping with apiVersion and kind")
		return
	}
	if root != nil {
		f.duplicates(root, map[*yaml.Node]bool{})
	}
	f.add(Document{File: f.name, Object: object, lines: f.lines, root: root, line: line})
}

// add adds an object; of a List, its items.
func (f *file) add(d Document) {
	items, ok := d.Object["items"].([]any)
	if !ok || !strings.HasSuffix(d.Kind(), "List") {
		f.documents = append(f.documents, d)
		return
	}
	for i, item := range items {
		part := Document{File: d.File, lines: d.lines, line: d.line}
		var at place
		if d.root != nil {
			found := d.find("items[" + strconv.Itoa(i) + "]")
			part.root = resolve(found.value)
			at = start(found.value)
			part.line = at.line
		}
		if part.Object, ok = item.(map[string]any); !ok {
			f.wrongf(part.line, at.column, "an object is expected here: a mapping with apiVersion and kind")
			continue
		}
		f.documents = append(f.documents, part)
	}
}

// firstLine returns the first line of a document that is neither empty nor a comment.
func (f *file) firstLine(c chunk) int {
	for i, line := range linesOf(c.text) {
		if text := strings.TrimSpace(line); text != "" && text[0] != '#' {
			return c.line + i
		}
	}
	return c.line
}

// valueOf returns the value that kubectl reads from a document.
func valueOf(c chunk) (any, error) {
	raw := []byte(strings.TrimSpace(c.text))
	if !c.json {
		var err error
		if raw, err = kubeyaml.YAMLToJSON([]byte(c.text)); err != nil {
			return nil, err
		}
	}
	if bytes.Equal(raw, []byte("null")) {
		return nil, nil
	}
	var value any
	err := utiljson.Unmarshal(raw, &value)
	return value, err
}

// nodeOf returns the document as a tree of nodes with lines of the file; nil if that is not possible.
func nodeOf(c chunk) *yaml.Node {
	document := &yaml.Node{}
	if err := yaml.Unmarshal([]byte(c.text), document); err != nil || len(document.Content) != 1 {
		return nil
	}
	move(document, c.line-1)
	return document.Content[0]
}

// move adds to the line of each node. An alias has no content, so each node is visited once.
func move(node *yaml.Node, lines int) {
	node.Line += lines
	for _, child := range node.Content {
		move(child, lines)
	}
}

// lineOfError matches the line in an error of go-yaml.
var lineOfError = regexp.MustCompile(`^yaml: line (\d+): `)

// syntax explains why a document is not valid YAML. It uses the error of PaV's own parser, which has the position and
// a clearer message.
func (f *file) syntax(c chunk, err error) {
	limits := yaml11.LimitsFor(len(c.text) + 1<<20)
	if _, better := yaml11.Parse(c.text, limits); better != nil {
		if wrong, ok := errors.AsType[*yaml11.Error](better); ok {
			f.wrongf(c.line-1+wrong.Line, wrong.Column, "%s%s", wrong.Message, hint(wrong.Message))
			return
		}
	}
	text := strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")
	line := f.firstLine(c)
	if match := lineOfError.FindStringSubmatch(text); match != nil {
		number, _ := strconv.Atoi(match[1])
		line, text = c.line-1+number, text[len(match[0]):]
	}
	f.wrongf(line, 1, "this is not valid YAML: %s", strings.TrimPrefix(text, "yaml: "))
}

// hint returns a common reason for an error.
func hint(message string) string {
	if strings.HasPrefix(message, "':' cannot stand here") {
		return "; the line may be indented too far, or a text that contains ':' may need quotes"
	}
	return ""
}

// duplicates reports keys that occur twice in a mapping: kubectl silently uses the last one.
func (f *file) duplicates(node *yaml.Node, seen map[*yaml.Node]bool) {
	if seen[node] {
		return
	}
	seen[node] = true
	if node.Kind == yaml.MappingNode {
		first := map[string]int{}
		for i := 0; i+1 < len(node.Content); i += 2 {
			key := node.Content[i]
			if key.Kind != yaml.ScalarNode || isMerge(key) {
				continue
			}
			name := keyText(key)
			if line, ok := first[name]; ok {
				f.wrongf(key.Line, key.Column, "the key %q is in this mapping already, in line %d", name, line)
				continue
			}
			first[name] = key.Line
		}
	}
	for _, child := range node.Content {
		f.duplicates(child, seen)
	}
}

// isMerge reports whether a key is "<<", which merges other mappings.
func isMerge(key *yaml.Node) bool {
	return key.Kind == yaml.ScalarNode && key.Value == "<<" && (key.Tag == "" || key.Tag == "!" || key.Tag == "!!merge")
}

// keyText returns a key as kubectl reads it: any scalar becomes a string, and YAML 1.1's words for true and false
// become "true" and "false".
func keyText(key *yaml.Node) string {
	key = resolve(key)
	if key.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return key.Value
	}
	switch key.Value {
	case "y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE":
		return "true"
	case "n", "N", "no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE":
		return "false"
	}
	return key.Value
}
