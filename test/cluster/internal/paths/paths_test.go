package paths

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func writeCheckout(t *testing.T) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	module := filepath.Join(root, "test", "cluster")
	if err := os.MkdirAll(filepath.Join(module, "internal"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(module, "go.mod"), []byte("module "+clusterModule+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return root
}

func TestCheckoutIsFoundFromAnyFolderInIt(t *testing.T) {
	root := writeCheckout(t)
	for _, folder := range []string{".", "test", "test/cluster/internal"} {
		t.Chdir(filepath.Join(root, folder))
		found, err := Checkout()
		if err != nil || found != root {
			t.Errorf("from %q: got %q, %v; want %q", folder, found, err, root)
		}
	}
}

func TestCheckoutsHaveDifferentStateFoldersInTheCache(t *testing.T) {
	t.Setenv(StateVariable, "")
	t.Setenv(CacheVariable, t.TempDir())
	cache, err := Cache()
	if err != nil {
		t.Fatal(err)
	}
	var states []State
	for range 2 {
		t.Chdir(writeCheckout(t))
		state, err := FindState("")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(state.Folder, filepath.Join(cache, "clusters")+"/") {
			t.Errorf("state directory %q is not in the cache %q", state.Folder, cache)
		}
		states = append(states, state)
	}
	if states[0] == states[1] || states[0].ID() == states[1].ID() {
		t.Errorf("two checkouts share the state directory %q", states[0].Folder)
	}
}

func TestStateFolderAskedForWinsOverTheEnvironment(t *testing.T) {
	folder, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(StateVariable, filepath.Join(folder, "environment"))
	for asked, want := range map[string]string{"": "environment", filepath.Join(folder, "asked", "..", "asked"): "asked"} {
		state, err := FindState(asked)
		if err != nil || state.Folder != filepath.Join(folder, want) {
			t.Errorf("asked for %q: got %q, %v; want %q", asked, state.Folder, err, want)
		}
	}
}

func TestStateFolderHasOneNameThroughSymbolicLinks(t *testing.T) {
	folder := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(folder, "real"), 0o755),
		os.Symlink("real", filepath.Join(folder, "link"))); err != nil {
		t.Fatal(err)
	}
	first, err := FindState(filepath.Join(folder, "real", "new"))
	if err != nil {
		t.Fatal(err)
	}
	second, err := FindState(filepath.Join(folder, "link", "new"))
	if err != nil || first != second {
		t.Errorf("got %q and %q, %v; want one name", first.Folder, second.Folder, err)
	}
}
