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

func TestCheckoutIsFoundFromAnyDirectoryInIt(t *testing.T) {
	root := writeCheckout(t)
	for _, directory := range []string{".", "test", "test/cluster/internal"} {
		t.Chdir(filepath.Join(root, directory))
		found, err := Checkout()
		if err != nil || found != root {
			t.Errorf("from %q: got %q, %v; want %q", directory, found, err, root)
		}
	}
}

func TestCheckoutsHaveDifferentStateDirectoriesInTheCache(t *testing.T) {
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
		if !strings.HasPrefix(state.Directory, filepath.Join(cache, "clusters")+"/") {
			t.Errorf("state directory %q is not in the cache %q", state.Directory, cache)
		}
		states = append(states, state)
	}
	if states[0] == states[1] || states[0].ID() == states[1].ID() {
		t.Errorf("two checkouts share the state directory %q", states[0].Directory)
	}
}

func TestStateDirectoryAskedForWinsOverTheEnvironment(t *testing.T) {
	directory, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(StateVariable, filepath.Join(directory, "environment"))
	for asked, want := range map[string]string{"": "environment", filepath.Join(directory, "asked", "..", "asked"): "asked"} {
		state, err := FindState(asked)
		if err != nil || state.Directory != filepath.Join(directory, want) {
			t.Errorf("asked for %q: got %q, %v; want %q", asked, state.Directory, err, want)
		}
	}
}

func TestStateDirectoryHasOneNameThroughSymbolicLinks(t *testing.T) {
	directory := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(directory, "real"), 0o755),
		os.Symlink("real", filepath.Join(directory, "link"))); err != nil {
		t.Fatal(err)
	}
	first, err := FindState(filepath.Join(directory, "real", "new"))
	if err != nil {
		t.Fatal(err)
	}
	second, err := FindState(filepath.Join(directory, "link", "new"))
	if err != nil || first != second {
		t.Errorf("got %q and %q, %v; want one name", first.Directory, second.Directory, err)
	}
}
