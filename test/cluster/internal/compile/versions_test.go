package compile

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestFindVersion(t *testing.T) {
	for name, test := range map[string]struct {
		name string
		want Version
		err  string
	}{
		"none":         {want: Present},
		"the present":  {name: "v1.36.3", want: Present},
		"an older one": {name: "v1.30.14", want: Version{Name: "v1.30.14", Module: "components/kubernetes-1.30"}},
		"unknown": {
			name: "v1.29.0",
			err:  `no cluster can run Kubernetes "v1.29.0": PAV_KUBERNETES is one of v1.36.3, v1.33.13, v1.30.14`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := FindVersion(test.name)
			if text := errorText(err); got != test.want || text != test.err {
				t.Errorf("got %v, error %q; want %v, error %q", got, text, test.want, test.err)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestEachVersionIsThatOfItsModule(t *testing.T) {
	for _, version := range Versions {
		module := read(t, "..", "..", version.Module, "go.mod")
		if want := "k8s.io/kubernetes " + version.Name + "\n"; !strings.Contains(module, want) {
			t.Errorf("%s/go.mod does not require %q", version.Module, want)
		}
		// A module of Kubernetes itself that has no replacement would be of another version, or of none.
		staging := "v0." + strings.TrimPrefix(version.Name, "v1.")
		for line := range strings.Lines(module) {
			if name, replacement, found := strings.Cut(strings.TrimSpace(line), " => "); found && replacement != name+" "+staging {
				t.Errorf("%s/go.mod replaces %s with %s, not with its version %s", version.Module, name, replacement, staging)
			}
		}
	}
}

func TestArgumentsOfKubernetesProgramsNameTheVersion(t *testing.T) {
	for name, version := range map[string]Version{"36": Versions[0], "33": Versions[1], "30": Versions[2]} {
		arguments := strings.Join(Plan(version, Selection{})[0].arguments("out"), " ")
		for _, want := range []string{
			"-trimpath", "k8s.io/component-base/version.gitVersion=" + version.Name,
			"k8s.io/client-go/pkg/version.gitMajor=1", "version.gitMinor=" + name, "version.gitTreeState=clean",
		} {
			if !strings.Contains(arguments, want) {
				t.Errorf("%s: %q is missing in %q", version.Name, want, arguments)
			}
		}
	}
}

// The tests run on all versions, and the pages say so.
func TestEachVersionIsTestedAndDocumented(t *testing.T) {
	const root = "../../../.."
	makefile, readme, page := read(t, root, "Makefile"), read(t, root, "README.md"), read(t, root, "docs", "conformance.md")
	for _, version := range Versions {
		if minor := version.Name[1:strings.LastIndex(version.Name, ".")]; !strings.Contains(readme, minor) {
			t.Errorf("README.md does not name Kubernetes %s", minor)
		}
		if !strings.Contains(page, "| "+version.Name+" |") {
			t.Errorf("docs/conformance.md does not say what runs on %s", version.Name)
		}
		_, others, _ := strings.Cut(makefile, "\nOTHER_KUBERNETES := ")
		others, _, _ = strings.Cut(others, "\n")
		if listed := slices.Contains(strings.Fields(others), version.Name); listed != (version != Present) {
			t.Errorf("OTHER_KUBERNETES of the Makefile has %s: %t", version.Name, listed)
		}
	}
}

// read returns the content of a file of the checkout.
func read(t *testing.T, path ...string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
