package commands

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../.."

// glob returns the files that match patterns, relative to the root.
func glob(t *testing.T, patterns ...string) []string {
	t.Helper()
	var files []string
	for _, pattern := range patterns {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: found nothing (%v)", pattern, err)
		}
		for _, file := range found {
			name, err := filepath.Rel(root, file)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, name)
		}
	}
	return files
}

// sources returns the Go files of the programs.
func sources(t *testing.T) []string {
	t.Helper()
	var files []string
	for _, directory := range []string{"cmd", "internal"} {
		err := filepath.WalkDir(filepath.Join(root, directory), func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() && entry.Name() == "testdata" {
				return fs.SkipDir
			}
			if err == nil && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
				var name string
				if name, err = filepath.Rel(root, path); err == nil {
					files = append(files, name)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// printed returns all commands that PaV prints.
func printed(t *testing.T) map[string][]Printed {
	t.Helper()
	found := map[string][]Printed{}
	for what, kind := range map[string]struct {
		files []string
		read  func(root, file string) ([]Printed, error)
	}{
		"pages":    {glob(t, "*.md", "docs/*.md", "examples/*/README.md", "jinja/README.md"), OfPage},
		"messages": {sources(t), OfSource},
		"help":     {[]string{"Makefile"}, OfMakefile},
		"files":    {glob(t, "internal/kubectl/skeleton/files/*.yaml", "examples/monitoring/*.yaml"), OfText},
	} {
		for _, file := range kind.files {
			some, err := kind.read(root, file)
			if err != nil {
				t.Error(err)
			}
			found[what] = append(found[what], some...)
		}
	}
	return found
}

func TestPrintedCommands_RunAsPrinted(t *testing.T) {
	checker, err := NewChecker(root)
	if err != nil {
		t.Fatal(err)
	}
	// There are far more: if nothing is found, nothing is checked.
	least := map[string]int{"pages": 150, "messages": 60, "files": 8, "help": 8}
	for what, commands := range printed(t) {
		t.Logf("%s: %d commands", what, len(commands))
		if len(commands) < least[what] {
			t.Errorf("%s: found %d commands, want at least %d", what, len(commands), least[what])
		}
		checked := map[string]bool{}
		for _, p := range commands {
			text := strings.Join(p.Words, "\x00")
			if checked[text] {
				continue
			}
			checked[text] = true
			if err := checker.Check(t.Context(), p); err != nil {
				t.Error(err)
			}
		}
	}
}
