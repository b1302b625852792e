package licence

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tree writes files into a temporary directory.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	directory := t.TempDir()
	for name, content := range files {
		path := filepath.Join(directory, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return directory
}

// program is a program whose own module has a licence, and that has packages of other modules, replaced or not.
func program(changed map[string]string) map[string]string {
	files := map[string]string{
		"go.mod": "module example.com/program\ngo 1.26\nrequire (\n\texample.com/a v1.0.0\n\texample.com/unused v1.0.0\n)\n" +
			"replace example.com/a => ./a\nreplace example.com/unused => ./unused\n",
		"main.go":       "package main\n\nimport (\n\t\"example.com/a/b\"\n\t\"example.com/a/c\"\n)\n\nfunc main() { b.B(); c.C() }\n",
		"main_arm64.go": "package main\n\nimport _ \"example.com/a/e\"\n",
		"LICENSE":       "own",
		"a/go.mod":      "module example.com/a\n",
		"a/LICENSE":     "of a\n",
		"a/NOTICE.txt":  "notice of a\n\n",
		"a/license.go":  "package a\n",
		"a/b/b.go":      "package b\n\nfunc B() {}\n",
		"a/b/COPYING":   "of b",
		"a/c/linux.go":  "package c\n\nfunc C() {}\n",
		"a/e/e.go":      "package e\n",
		"a/e/LICENCE":   "of e",
		"a/d/d.go":      "package d\n",
		"a/d/LICENSE":   "of d, which is not linked",
		"unused/go.mod": "module example.com/unused\n",
	}
	for name, content := range changed {
		if files[name] = content; content == "" {
			delete(files, name)
		}
	}
	return files
}

func TestCollect(t *testing.T) {
	for name, test := range map[string]struct {
		changed map[string]string
		want    []string // without those of Go
		err     string
	}{
		"the licences of what is linked for the platform, and of its directories": {
			want: []string{"./a: LICENSE", "./a: NOTICE.txt", "./a: b/COPYING", "./a: e/LICENCE"},
		},
		"a directory's licence is not that of the next": {
			changed: map[string]string{"a/LICENSE": "", "a/NOTICE.txt": ""},
			err:     "searching for the licence of example.com/a/c: there is none",
		},
		"a program that cannot be built": {
			changed: map[string]string{"main.go": "package main\n\nimport \"example.com/gone\"\n"},
			err:     "go list -deps",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Collect(t.Context(), Program{Directory: tree(t, program(test.changed)), Package: ".", GOOS: "linux", GOARCH: "arm64"})
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("got %v, want an error with %q", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var headings []string
			for line := range strings.Lines(got) {
				if heading, found := strings.CutPrefix(line, "==== "); found && !strings.HasPrefix(heading, "Go: ") {
					headings = append(headings, strings.TrimSpace(heading))
				}
			}
			if diff := cmp.Diff(test.want, headings); diff != "" {
				t.Errorf("licences (-want +got):\n%s", diff)
			}
			for _, want := range []string{"==== ./a: NOTICE.txt\n\nnotice of a\n\n==== ./a: b/COPYING\n\nof b\n\n", "Copyright 2009 The Go Authors."} {
				if !strings.Contains(got, want) {
					t.Errorf("%q is missing in\n%s", want, got)
				}
			}
		})
	}
}
