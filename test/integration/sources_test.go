package integration

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// repository is this one.
var repository = os.DirFS(filepath.Join("..", ".."))

// item matches what begins an item of a list.
var item = regexp.MustCompile(`^(\*|\d+\.) `)

// full matches what follows the full stop at the end of a sentence.
var full = regexp.MustCompile(`\. [A-Z]`)

// sentences returns the sentences of a text in Markdown, each on one line, without those of code blocks.
func sentences(markdown string) (all []string) {
	paragraph, code := "", false
	end := func() {
		for rest := strings.TrimSpace(paragraph); rest != ""; {
			stop := len(rest)
			if at := full.FindStringIndex(rest); at != nil {
				stop = at[0] + 1
			}
			all = append(all, rest[:stop])
			rest = strings.TrimSpace(rest[stop:])
		}
		paragraph = ""
	}
	for line := range strings.Lines(markdown) {
		line = strings.TrimSpace(line)
		begins := item.FindString(line)
		switch {
		case strings.HasPrefix(line, "```"):
			end()
			code = !code
		case code:
		case line == "":
			end()
		case begins != "":
			end()
			paragraph = strings.TrimPrefix(line, begins)
		default:
			paragraph += " " + line
		}
	}
	end()
	return all
}

// sources are what the test files of directories of the repository declare, by directory and by name.
type sources map[string]map[string]ast.Node

// find says what is wrong with a name of a test, or of a subtest that is named by a string in the
// test's function, or in a table that it uses: "<package> <test>[/<subtest>]".
func (s sources) find(t *testing.T, name string) string {
	t.Helper()
	directory, test, _ := strings.Cut(name, " ")
	test, subtest, hasSubtest := strings.Cut(test, "/")
	if s[directory] == nil {
		s[directory] = testsIn(t, directory)
	}
	declarations := s[directory]
	function := declarations[test]
	if function == nil || !strings.HasPrefix(test, "Test") {
		return "there is no such test"
	}
	if !hasSubtest {
		return ""
	}
	texts := map[string]bool{}
	collect(function, texts, declarations)
	if !texts[subtest] {
		return "there is no such subtest"
	}
	return ""
}

// collect adds the strings of a declaration, and of the variables of the package that it uses.
func collect(node ast.Node, texts map[string]bool, declarations map[string]ast.Node) {
	ast.Inspect(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil {
				texts[text] = true
			}
		case *ast.Ident:
			if table, ok := declarations[n.Name].(*ast.ValueSpec); ok && table != node {
				collect(table, texts, nil)
			}
		}
		return true
	})
}

// testsIn returns the functions and variables that the test files of a directory of the repository declare.
func testsIn(t *testing.T, directory string) map[string]ast.Node {
	t.Helper()
	paths, err := fs.Glob(repository, filepath.ToSlash(filepath.Join(directory, "*_test.go")))
	if err != nil || len(paths) == 0 {
		t.Fatalf("directory %s has no tests (%v)", directory, err)
	}
	declarations := map[string]ast.Node{}
	for _, path := range paths {
		text, err := fs.ReadFile(repository, path)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(fmt.Errorf("parsing %s: %w", path, err))
		}
		for _, declaration := range file.Decls {
			declare(declaration, declarations)
		}
	}
	return declarations
}

func declare(declaration ast.Decl, into map[string]ast.Node) {
	switch d := declaration.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			into[d.Name.Name] = d
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if values, ok := spec.(*ast.ValueSpec); ok {
				for _, name := range values.Names {
					into[name.Name] = values
				}
			}
		}
	}
}
