package commands

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

// usagePage is the page whose table without a header has, in its first column, the usage of the plugin's commands.
const usagePage = "docs/kubectl-pav.md"

// OfPage returns the commands in the code of a Markdown page.
func OfPage(root, page string) ([]Printed, error) {
	source, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		return nil, err
	}
	markdown := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader(source))
	var found []Printed
	err = ast.Walk(markdown, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		some, err := ofCode(page, node, source)
		found = append(found, some...)
		return ast.WalkContinue, err
	})
	return found, err
}

func ofCode(page string, node ast.Node, source []byte) ([]Printed, error) {
	switch node := node.(type) {
	case *ast.CodeBlock:
		return ofBlock(place(page, node, source), linesOf(node, source))
	case *ast.FencedCodeBlock:
		switch string(node.Language(source)) {
		case "console":
			return ofConsole(place(page, node, source), linesOf(node, source))
		case "sh", "bash":
			return ofBlock(place(page, node, source), linesOf(node, source))
		}
	case *ast.CodeSpan:
		code := strings.Join(strings.Fields(spanOf(node, source)), " ")
		if page == usagePage && isFirstCell(node.Parent()) {
			return ofUsage(page, "kubectl pav "+code)
		}
		if word, _, _ := strings.Cut(code, " "); isProgram(word) && !strings.HasSuffix(code, " …") {
			return ofShell(page, strings.ReplaceAll(code, "…", sample))
		}
	}
	return nil, nil
}

// place returns the file and the line of a block.
func place(page string, node ast.Node, source []byte) string {
	if node.Lines().Len() == 0 {
		return page
	}
	return fmt.Sprintf("%s:%d", page, strings.Count(string(source[:node.Lines().At(0).Start]), "\n")+1)
}

func linesOf(node ast.Node, source []byte) string {
	var lines strings.Builder
	for i := range node.Lines().Len() {
		line := node.Lines().At(i)
		lines.Write(line.Value(source))
	}
	return lines.String()
}

func spanOf(span *ast.CodeSpan, source []byte) string {
	var code strings.Builder
	for child := span.FirstChild(); child != nil; child = child.NextSibling() {
		if part, ok := child.(*ast.Text); ok {
			code.Write(part.Segment.Value(source))
			if part.SoftLineBreak() {
				code.WriteByte(' ')
			}
		}
	}
	return strings.ReplaceAll(code.String(), "\n", " ")
}

// isFirstCell reports whether a node is the first cell in a row of a table without a header.
func isFirstCell(node ast.Node) bool {
	_, is := node.(*extast.TableCell)
	if !is || node.PreviousSibling() != nil {
		return false
	}
	header := node.Parent().Parent().FirstChild()
	return header.FirstChild().ChildCount() == 0
}

// programLine matches a line that begins with a program.
var programLine = regexp.MustCompile(`(?m)^(\$ )?(kubectl|helm|make) `)

// ofBlock returns the commands in a block of commands; none for other blocks.
func ofBlock(where, block string) ([]Printed, error) {
	if !programLine.MatchString(block) {
		return nil, nil
	}
	return ofShell(where, block)
}

// ofConsole returns the commands in a transcript: those that were run, and those that were printed.
func ofConsole(where, block string) ([]Printed, error) {
	var found []Printed
	for line := range strings.Lines(block) {
		var some []Printed
		var err error
		if command, run := strings.CutPrefix(line, "$ "); run {
			some, err = ofShell(where, command)
		} else {
			some, err = ofProse(where, line, beginsCommand)
		}
		if err != nil {
			return nil, err
		}
		found = append(found, some...)
	}
	return found, nil
}

var (
	optional = regexp.MustCompile(`\[([^\]]*)\]`)
	phase    = regexp.MustCompile(`\bP\b`)
)

// ofUsage returns what a usage stands for: the command with and without what is optional, and with each alternative.
func ofUsage(where, usage string) ([]Printed, error) {
	var found []Printed
	usage = phase.ReplaceAllString(usage, "staging")
	for _, chosen := range []string{optional.ReplaceAllString(usage, ""), optional.ReplaceAllString(usage, "$1")} {
		for _, each := range alternatives(strings.ReplaceAll(chosen, "…", "")) {
			some, err := ofShell(where, each)
			if err != nil {
				return nil, err
			}
			found = append(found, some...)
		}
	}
	return found, nil
}

// alternatives returns a text with each alternative of its first word that has several: "a b|c/d" is "a b/d" and "a c/d".
func alternatives(usage string) []string {
	words := strings.Fields(usage)
	for i, word := range words {
		choices := strings.Split(word, "|")
		if len(choices) == 1 {
			continue
		}
		_, suffix, has := strings.Cut(choices[len(choices)-1], "/")
		var all []string
		for _, choice := range choices {
			if has && !strings.Contains(choice, "/") {
				choice += "/" + suffix
			}
			all = append(all, strings.Join(append(append(append([]string{}, words[:i]...), choice), words[i+1:]...), " "))
		}
		return all
	}
	return []string{strings.Join(words, " ")}
}
