package definition

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/albertofaria/pav/internal/template"
)

// expected is a line "# finding: …" of a file in testdata; see testdata/README.md.
type expected struct {
	severity Severity
	line     int
	field    string
	words    string
}

func (e expected) matches(f Finding) bool {
	return f.Severity == e.severity && f.Field == e.field && strings.Contains(f.Message, e.words)
}

func expectations(t *testing.T, text string) []expected {
	t.Helper()
	var list []expected
	for line := range strings.Lines(text) {
		rest, found := strings.CutPrefix(strings.TrimSpace(line), "# finding: ")
		if !found {
			continue
		}
		parts := strings.SplitN(rest, " ", 4)
		if len(parts) < 4 {
			t.Fatalf("%q is no expectation", line)
		}
		number, err := strconv.Atoi(parts[1])
		if err != nil {
			t.Fatalf("%q is no expectation: %v", line, err)
		}
		list = append(list, expected{Severity(parts[0]), number, parts[2], parts[3]})
	}
	return list
}

func read(t *testing.T, file string) (text string, object map[string]any) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(raw, &object); err != nil {
		t.Fatal(err)
	}
	return string(raw), object
}

func files(t *testing.T, pattern string, atLeast int) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < atLeast {
		t.Fatalf("%s: there are %d files, want at least %d", pattern, len(found), atLeast)
	}
	return found
}

func show(f Finding) string { return fmt.Sprintf("%s %s", f.Severity, f) }

func TestCheck_ReportsEachMistake_AndNothingElse(t *testing.T) {
	checker := NewChecker(template.DefaultLimits())
	for _, file := range files(t, "testdata/mistakes/*.yaml", 60) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			text, object := read(t, file)
			wanted := expectations(t, text)
			if len(wanted) == 0 {
				t.Fatal("the file expects nothing")
			}
			for _, finding := range checker.Check(object) {
				found := false
				for i, want := range wanted {
					if want.matches(finding) {
						wanted = append(wanted[:i:i], wanted[i+1:]...)
						found = true
						break
					}
				}
				if !found {
					t.Errorf("unexpected: %s", show(finding))
				}
			}
			for _, want := range wanted {
				t.Errorf("not found: %s %s: %s", want.severity, want.field, want.words)
			}
		})
	}
}

func TestCheck_FindsNothingInCorrectDefinitions(t *testing.T) {
	checker := NewChecker(template.DefaultLimits())
	correct := append(files(t, "testdata/correct/*.yaml", 20), files(t, "../../examples/*/provisioner.yaml", 1)...)
	for _, file := range correct {
		t.Run(strings.TrimSuffix(file, ".yaml"), func(t *testing.T) {
			_, object := read(t, file)
			for _, finding := range checker.Check(object) {
				t.Errorf("unexpected: %s", show(finding))
			}
		})
	}
}
