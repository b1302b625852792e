package examples

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(apiVersion: pav\\..*?)```")

// The definitions that users copy from the documentation are valid and can be rendered.
func TestDefinitions_OfTheDocumentation(t *testing.T) {
	for page, want := range map[string]int{"README.md": 1, "docs/tutorial.md": 1} {
		text, err := os.ReadFile(filepath.Join("../..", page))
		if err != nil {
			t.Fatal(err)
		}
		blocks := yamlBlock.FindAllStringSubmatch(string(text), -1)
		if len(blocks) != want {
			t.Errorf("%s has %d definitions, want %d", page, len(blocks), want)
		}
		for _, block := range blocks {
			file := filepath.Join(t.TempDir(), "provisioner.yaml")
			if err := os.WriteFile(file, []byte(block[1]), 0o600); err != nil {
				t.Fatal(err)
			}
			if out, errs, err := pav(t, "lint", file); err != nil || out+errs != "" {
				t.Errorf("%s: lint: %v\n%s%s", page, err, out, errs)
			}
			if out, errs, err := pav(t, "render", file); err != nil || !strings.Contains(out, "kind: Pod") {
				t.Errorf("%s: render: %v\n%s%s", page, err, out, errs)
			}
		}
	}
}

var link = regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)

// All files that the documentation links to exist.
func TestLinks_OfTheDocumentation(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) < 6 {
		t.Fatalf("found %q (%v)", pages, err)
	}
	readmes, err := filepath.Glob("../../examples/*/README.md")
	if err != nil || len(readmes) < 7 {
		t.Fatalf("found %q (%v)", readmes, err)
	}
	for _, page := range append(append(pages, readmes...), "../../README.md") {
		text, err := os.ReadFile(page) //nolint:gosec // The path is that of a documentation page.
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range link.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), match[1])); err != nil {
				t.Errorf("%s points to %s: %v", page, match[1], err)
			}
		}
	}
}
