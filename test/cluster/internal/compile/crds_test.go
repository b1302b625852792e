package compile

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestCopyCRDsTakesThoseOfSnapshotsOnly(t *testing.T) {
	source, bin := t.TempDir(), t.TempDir()
	for _, name := range []string{
		"groupsnapshot.storage.k8s.io_volumegroupsnapshots.yaml", "kustomization.yaml",
		"snapshot.storage.k8s.io_volumesnapshotclasses.yaml", "snapshot.storage.k8s.io_volumesnapshots.yaml",
	} {
		// Files of a module cannot be written to.
		if err := os.WriteFile(filepath.Join(source, name), []byte(name), 0o444); err != nil {
			t.Fatal(err)
		}
	}
	// An interrupted copy of another version has left this.
	if err := os.MkdirAll(filepath.Join(bin, ".crds.partial", "old.yaml"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := copyCRDs(source, filepath.Join(bin, "crds")); err != nil {
		t.Fatal(err)
	}
	want := []string{"snapshot.storage.k8s.io_volumesnapshotclasses.yaml", "snapshot.storage.k8s.io_volumesnapshots.yaml"}
	if names := namesIn(t, filepath.Join(bin, "crds")); !slices.Equal(names, want) {
		t.Errorf("got the files %v, want %v", names, want)
	}
	if names := namesIn(t, bin); !slices.Equal(names, []string{"crds"}) {
		t.Errorf("the directory of programs has %v, want nothing but the CRDs", names)
	}
	content, err := os.ReadFile(filepath.Join(bin, "crds", want[1]))
	if err != nil || string(content) != want[1] {
		t.Errorf("got the content %q, %v; want that of the source", content, err)
	}
}

func TestCopyCRDsFailsWithoutCRDs(t *testing.T) {
	bin := t.TempDir()
	if err := copyCRDs(t.TempDir(), filepath.Join(bin, "crds")); err == nil {
		t.Error("no error")
	}
	if names := namesIn(t, bin); len(names) != 0 {
		t.Errorf("it made %v", names)
	}
}

func namesIn(t *testing.T, directory string) []string {
	t.Helper()
	entries, err := os.ReadDir(directory)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// The controller's own requirement of the CRDs' module is older than the CRDs that it was released with.
func TestCRDsAreThoseOfTheController(t *testing.T) {
	module := read(t, "..", "..", snapshotsModule, "go.mod")
	version := regexp.MustCompile(regexp.QuoteMeta(snapshotter+"v8") + ` (v\S+)`).FindStringSubmatch(module)
	if version == nil || !strings.Contains(module, snapshotter+"client/v8 "+version[1]+"\n") {
		t.Errorf("%s/go.mod does not require both in one version: %v", snapshotsModule, version)
	} else if page := read(t, "../../../..", "docs", "conformance.md"); !strings.Contains(page, "external-snapshotter "+version[1]) {
		t.Errorf("docs/conformance.md does not name external-snapshotter %s", version[1])
	}
}
