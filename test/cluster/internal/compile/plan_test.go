package compile

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestPlanHasOptionalProgramsOnlyOnRequest(t *testing.T) {
	for name, test := range map[string]struct {
		selected Selection
		want     []string
		absent   []string
	}{
		"nothing optional": {want: []string{"kubelet", "etcd", "snapshot-controller", "runc", "pause"}, absent: []string{"kubectl", "agnhost"}},
		"kubectl":          {selected: Selection{Kubectl: true}, want: []string{"kubectl"}, absent: []string{"agnhost"}},
		"agnhost":          {selected: Selection{Agnhost: true}, want: []string{"agnhost"}, absent: []string{"kubectl"}},
	} {
		t.Run(name, func(t *testing.T) {
			var names []string
			for _, program := range Plan(Present, test.selected) {
				names = append(names, program.Name)
			}
			for _, want := range test.want {
				if !slices.Contains(names, want) {
					t.Errorf("%q is missing in %v", want, names)
				}
			}
			for _, absent := range test.absent {
				if slices.Contains(names, absent) {
					t.Errorf("%q is in %v", absent, names)
				}
			}
		})
	}
}

func TestEveryPackageIsPinnedByItsModule(t *testing.T) {
	for _, version := range Versions {
		for _, program := range Plan(version, Selection{Kubectl: true, Agnhost: true}) {
			if program.Module == "." {
				continue
			}
			content, err := os.ReadFile(filepath.Join("..", "..", program.Module, "tools.go"))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(content), "\t_ \""+program.Package+"\"\n") {
				t.Errorf("%s/tools.go does not import %q", program.Module, program.Package)
			}
		}
	}
}

func TestDirectoryChangesWithTheModules(t *testing.T) {
	source, older := t.TempDir(), Versions[1]
	builder := Builder{Source: source, Cache: "/cache", Version: Present}
	write := func(name, content string) {
		t.Helper()
		path := filepath.Join(source, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, module := range []string{Present.Module, older.Module, containerdModule, snapshotsModule} {
		write(module+"/go.mod", "module example.com/m\n\ngo 1.26\n")
		write(module+"/go.sum", "")
	}
	write("pause/main.go", "package main\n")
	first, err := builder.Directory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	again, err := builder.Directory(t.Context())
	if err != nil || again != first {
		t.Errorf("got %q, %v; want %q again", again, err, first)
	}
	write(older.Module+"/go.sum", "changed")
	again, err = builder.Directory(t.Context())
	if err != nil || again != first {
		t.Errorf("after a change of another version: got %q, %v; want %q again", again, err, first)
	}
	for _, module := range []string{containerdModule, snapshotsModule} {
		write(module+"/go.sum", "changed")
		changed, err := builder.Directory(t.Context())
		if err != nil || changed == first {
			t.Errorf("after a change of %s: got %q, %v; want another directory", module, changed, err)
		}
		first = changed
	}
}

func TestMissingNamesProgramsThatAreNotThere(t *testing.T) {
	directory := t.TempDir()
	if err := os.WriteFile(filepath.Join(directory, "etcd"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	// A partial file of an interrupted build does not count as a program.
	if err := os.WriteFile(filepath.Join(directory, ".runc.partial"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	missing := Missing(directory, []Program{{Name: "etcd"}, {Name: "runc"}})
	if len(missing) != 1 || missing[0].Name != "runc" {
		t.Errorf("got %v, want runc", missing)
	}
}
