package mount

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestRemoveDir_RemovesOnlyWhatIsEmpty(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "full", "file")
	must(t, os.MkdirAll(filepath.Dir(file), 0o700))
	must(t, os.WriteFile(file, []byte("data"), 0o600))
	wantError(t, RemoveDir(filepath.Dir(file)), unix.ENOTEMPTY)
	if _, err := os.Stat(file); err != nil {
		t.Errorf("what was in the directory is gone: %v", err)
	}

	must(t, os.Remove(file))
	must(t, RemoveDir(filepath.Dir(file)))
	must(t, RemoveDir(filepath.Dir(file))) // It may be repeated.
	if _, err := os.Stat(filepath.Dir(file)); !os.IsNotExist(err) {
		t.Errorf("the empty directory is still there: %v", err)
	}
}
