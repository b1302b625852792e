package commands

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// OfSource returns the commands in the texts of a Go file.
func OfSource(root, name string) ([]Printed, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, filepath.Join(root, name), nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var found []Printed
	var wrong error
	ast.Inspect(file, func(node ast.Node) bool {
		expression, ok := node.(ast.Expr)
		if !ok || wrong != nil {
			return wrong == nil
		}
		text, isText := textIn(expression)
		if !isText {
			return true
		}
		where := fmt.Sprintf("%s:%d", name, files.Position(node.Pos()).Line)
		var some []Printed
		some, wrong = ofProse(where, text, beginsCommand)
		found = append(found, some...)
		return false // Its parts are no texts of their own.
	})
	return found, wrong
}

// OfText returns the commands in the sentences of a file.
func OfText(root, name string) ([]Printed, error) {
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		return nil, err
	}
	return ofProse(name, string(text), beginsCommand)
}

// help matches the text of a target that "make help" shows.
var help = regexp.MustCompile(`(?m)^[a-zA-Z_-]+:.*## (.*)$`)

// OfMakefile returns the commands in the texts that "make help" shows.
func OfMakefile(root, name string) ([]Printed, error) {
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		return nil, err
	}
	var found []Printed
	for _, match := range help.FindAllStringSubmatch(string(text), -1) {
		some, err := ofProse(name, match[1], beginsMake)
		if err != nil {
			return nil, err
		}
		found = append(found, some...)
	}
	return found, nil
}

// textIn returns the text of an expression: of a literal, or of a sum with at least one. Other operands are the sample.
func textIn(expression ast.Expr) (string, bool) {
	switch e := expression.(type) {
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return "", false
		}
		text, err := strconv.Unquote(e.Value)
		return formatted(text), err == nil
	case *ast.BinaryExpr:
		if e.Op != token.ADD {
			return "", false
		}
		left, isLeft := textIn(e.X)
		right, isRight := textIn(e.Y)
		if !isLeft {
			left = sample
		}
		if !isRight {
			right = sample
		}
		return left + right, isLeft || isRight
	case *ast.ParenExpr:
		return textIn(e.X)
	}
	return "", false
}

// verb matches a verb of fmt.
var verb = regexp.MustCompile(`%(\[\d+\])?[-+#0]*\d*(\.\d+)?([a-zA-Z])`)

// formatted returns a text with samples for the verbs of fmt.
func formatted(text string) string {
	return verb.ReplaceAllStringFunc(text, func(verb string) string {
		if strings.HasSuffix(verb, "d") {
			return "1"
		}
		return sample
	})
}
