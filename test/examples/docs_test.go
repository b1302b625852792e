package examples

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(apiVersion: pav\\..*?)```")

// The definitions that users copy from the documentation are valid and can be rendered.
func TestDefinitions_OfTheDocumentation(t *testing.T) {
	for page, want := range map[string]int{"README.md": 1, "docs/tutorial.md": 1} {
		blocks := yamlBlock.FindAllStringSubmatch(read(t, filepath.Join("../..", page)), -1)
		if len(blocks) != want {
			t.Errorf("%s has %d definitions, want %d", page, len(blocks), want)
		}
		for _, block := range blocks {
			works(t, page, block[1])
		}
	}
}

var (
	fragment = regexp.MustCompile("(?s)```yaml\n((?:volume|snapshot)[A-Z].*?)```")
	lines    = regexp.MustCompile(`(?m)^(.)`)
)

// The sections of a definition that the documentation shows alone are valid, and can be rendered, in one that has the rest.
func TestFragments_OfTheDocumentation(t *testing.T) {
	const dynamic = "  provisioningModes: [Dynamic]\n  volumeDeletion: {}\n"
	for page, rests := range map[string][]string{
		"docs/templates.md": {"  provisioningModes: [Static]\n"},
		"docs/snapshots.md": {dynamic + "  volumeCreation: {capacity: \"{{ requestedMinCapacity }}\"}\n", dynamic},
	} {
		blocks := fragment.FindAllStringSubmatch(read(t, "../../"+page), -1)
		if len(blocks) != len(rests) {
			t.Errorf("%s has %d fragments, want %d", page, len(blocks), len(rests))
			continue
		}
		for i, block := range blocks {
			works(t, page, `apiVersion: pav.albertofaria.github.io/v1alpha1
kind: PavProvisioner
metadata: {name: fragment}
spec:
  volumeStaging: {growsVolumes: true, podTemplate: {spec: {containers: [{name: stage, image: "busybox:1.37.0", command: [mkdir, /pav/volume]}]}}}
`+rests[i]+lines.ReplaceAllString(block[1], "  $1"))
		}
	}
}

// works checks a definition on a page.
func works(t *testing.T, page, definition string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "provisioner.yaml")
	if err := os.WriteFile(file, []byte(definition), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, errs, err := pav(t, "lint", file); err != nil || out+errs != "" {
		t.Errorf("%s: lint: %v\n%s%s", page, err, out, errs)
	}
	if out, errs, err := pav(t, "render", file); err != nil || !strings.Contains(out, "kind: Pod") {
		t.Errorf("%s: render: %v\n%s%s", page, err, out, errs)
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)#:]*)(?:#([^):]*))?\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	code    = regexp.MustCompile("(?s)```.*?```")
	dropped = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// All files that the documentation links to exist, and have the headings.
func TestLinks_OfTheDocumentation(t *testing.T) {
	var pages []string
	for pattern, least := range map[string]int{"../../*.md": 4, "../../docs/*.md": 13, "../../examples/*/README.md": 7} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) < least {
			t.Fatalf("%s: found %q (%v)", pattern, found, err)
		}
		pages = append(pages, found...)
	}
	for _, page := range pages {
		for _, match := range link.FindAllStringSubmatch(read(t, page), -1) {
			target := page
			if match[1] != "" {
				target = filepath.Join(filepath.Dir(page), match[1])
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s points to %s: %v", page, match[1], err)
			} else if match[2] != "" && !slices.Contains(anchors(read(t, target)), match[2]) {
				t.Errorf("%s points to %s, which has no heading %q", page, target, match[2])
			}
		}
	}
}

func read(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(page) //nolint:gosec // The path is that of a documentation page.
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// anchors returns the names that GitHub gives to the headings of a page.
func anchors(page string) (names []string) {
	for _, match := range heading.FindAllStringSubmatch(code.ReplaceAllString(page, ""), -1) {
		names = append(names, strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(match[1]), ""), " ", "-"))
	}
	return names
}

// A visitor reads the README in one sitting.
func TestReadme_IsShort(t *testing.T) {
	const most = 8 << 10
	if size := len(read(t, "../../README.md")); size > most {
		t.Errorf("README.md has %d bytes, and may have %d", size, most)
	}
}

// What "kubectl pav new" prints has nothing that lint would change.
func TestSkeletons_LintClean(t *testing.T) {
	for _, kind := range []string{"dynamic", "local", "fuse", "block", "layer", "bucket"} {
		out, errs, err := pav(t, "new", kind, "my-"+kind)
		if err != nil {
			t.Fatal(err, errs)
		}
		file := filepath.Join(t.TempDir(), "provisioner.yaml")
		if err := os.WriteFile(file, []byte(out), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, errs, err := pav(t, "lint", "--strict", file); err != nil || out+errs != "" {
			t.Errorf("%s: lint: %v\n%s%s", kind, err, out, errs)
		}
	}
	for name, args := range map[string][]string{"no such kind": {"new", "x", "y"}, "no such name": {"new", "local", "Upper"}} {
		if out, errs, err := pav(t, args...); err == nil || out != "" {
			t.Errorf("%s: got %q and %q", name, out, errs)
		}
	}
}

// Prometheus finds the agents by the name of a port.
func TestMonitoring_ScrapesThePortOfTheAgents(t *testing.T) {
	for _, manifest := range []string{"60-controller.yaml", "70-node.yaml"} {
		ports := regexp.MustCompile(`- name: (\S*metrics)\n`).FindAllStringSubmatch(read(t, "../../deploy/chart/templates/"+manifest), -1)
		if len(ports) != 1 {
			t.Fatalf("%s has the ports %q", manifest, ports)
		}
		for page, want := range map[string]string{"prometheus.yaml": "regex: pav;" + ports[0][1] + "\n", "podmonitor.yaml": "port: " + ports[0][1] + "\n", "README.md": "`" + ports[0][1] + "`"} {
			if !strings.Contains(read(t, "../../examples/monitoring/"+page), want) {
				t.Errorf("%s does not have %q", page, want)
			}
		}
	}
}
