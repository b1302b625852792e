package commands

import (
	"fmt"
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Printed is a command that a page or a message prints.
type Printed struct {
	// Where is the file, with the line if it is known.
	Where string

	// Words are the program and its arguments, as a shell passes them.
	Words []string
}

// sample stands for a word that only the reader, or the message at run time, knows.
const sample = "sample"

func (p Printed) String() string { return p.Where + ": " + strings.Join(p.Words, " ") }

// isProgram reports whether a word is a program whose commands are checked.
func isProgram(word string) bool { return word == "kubectl" || word == "helm" || word == "make" }

// ofShell returns the commands in the text of a shell: those of pipelines, lists and substitutions as well.
func ofShell(where, text string) ([]Printed, error) {
	file, err := syntax.NewParser(syntax.KeepComments(true)).Parse(strings.NewReader(text), where)
	if err != nil {
		return nil, fmt.Errorf("%s: %q: %w", where, text, err)
	}
	var found []Printed
	syntax.Walk(file, func(node syntax.Node) bool {
		switch node := node.(type) {
		case *syntax.CallExpr:
			if words := wordsOf(node.Args); len(words) > 1 && isProgram(words[0]) {
				found = append(found, Printed{where, words})
			}
		case *syntax.Comment:
			// As in "kubectl create -f deployment.yaml    # or: helm install pav deploy/chart".
			_, other, _ := strings.Cut(node.Text, "or: ")
			more, wrong := ofShell(where, other)
			if wrong == nil {
				found = append(found, more...)
			}
		}
		return true
	})
	return found, nil
}

// wordsOf returns the words of a simple command. What an expansion would yield is the sample.
func wordsOf(args []*syntax.Word) []string {
	var words []string
	for _, arg := range args {
		words = append(words, textOf(arg.Parts))
	}
	if len(words) > 1 && words[0] == "xargs" {
		words = append(words[1:], sample)
	}
	return words
}

func textOf(parts []syntax.WordPart) string {
	var text strings.Builder
	for _, part := range parts {
		switch part := part.(type) {
		case *syntax.Lit:
			text.WriteString(strings.ReplaceAll(part.Value, `\`, ""))
		case *syntax.SglQuoted:
			text.WriteString(part.Value)
		case *syntax.DblQuoted:
			text.WriteString(textOf(part.Parts))
		default:
			text.WriteString(sample)
		}
	}
	return text.String()
}

// What begins a command in a sentence. Messages "make" many things; in the Makefile, it is the program.
var (
	beginsCommand = regexp.MustCompile(`\b((?:kubectl|helm) (?:-[a-z]+ \S+ )?[a-z])`)
	beginsMake    = regexp.MustCompile(`(?:: |')(make [a-z])`)
)

// ofProse returns the commands in sentences.
func ofProse(where, text string, begins *regexp.Regexp) ([]Printed, error) {
	var found []Printed
	for line := range strings.Lines(text) {
		for {
			at := begins.FindStringSubmatchIndex(line)
			if at == nil {
				break
			}
			start := at[2]
			command := upToEnd(line[start:])
			if start > 0 && line[start-1] == '\'' {
				command, _, _ = strings.Cut(line[start:], "'")
			}
			some, err := ofShell(where, command)
			if err != nil {
				return nil, err
			}
			found = append(found, some...)
			line = line[start+len(command):]
		}
	}
	return found, nil
}

// upToEnd returns a command at the beginning of a sentence, up to what ends it: a quotation mark, or punctuation before a
// space or the end.
func upToEnd(text string) string {
	text = strings.TrimRight(text, "\n ")
	quote, depth := byte(0), 0
	for i := range len(text) {
		c := text[i]
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '(':
			depth++
		case c == ')' && depth > 0:
			depth--
		case c == '`':
			return text[:i]
		case c == '"' && (i+1 == len(text) || strings.IndexByte(" .,;:)", text[i+1]) >= 0):
			return text[:i]
		case c == '\'' || c == '"':
			quote = c
		case strings.IndexByte(".,;:)?", c) >= 0 && (i+1 == len(text) || text[i+1] == ' '):
			return text[:i]
		}
	}
	return text
}
