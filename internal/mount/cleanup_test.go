package mount

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Mounts that pods leave in their directory prevent its removal. They are unmounted, whether in use or not, and their
// content stays intact.
func TestCleanUpSparesWhatIsMounted(t *testing.T) {
	for name, leave := range map[string]func(outside, pav string) error{
		"bind":     func(outside, pav string) error { return bindAt(outside, pav+"/volume") },
		"at a top": bindAt,
		"bind of a file": func(outside, pav string) error {
			return errors.Join(text(pav+"/volume", "")(), bindPlain(outside+"/canary", pav+"/volume"))
		},
		"tmpfs": func(_, pav string) error { return mountTmpfs(pav + "/volume") },
		"layers": func(outside, pav string) error {
			volume := pav + "/volume"
			return errors.Join(bindAt(outside, volume), mountTmpfs(volume), bindAt(outside, volume), mountTmpfs(volume))
		},
		"layers that hide": func(outside, pav string) error {
			volume := pav + "/volume"
			return errors.Join(bindAt(outside, volume+"/a/b"), mountTmpfs(volume+"/a"), bindAt(outside, volume),
				mountTmpfs(volume+"/sub"), bindAt(outside, volume+"/sub"))
		},
		"binds within a bind": func(outside, pav string) error {
			volume := pav + "/volume"
			return errors.Join(bindAt(outside, volume), bindAt(outside, volume+"/sub"), bindAt(outside, volume+"/sub/sub"))
		},
		"what it lies in itself": func(_, pav string) error { return bindAt(filepath.Dir(pav), pav+"/volume") },
		"dead FUSE over it": func(outside, pav string) error {
			err := bindAt(outside, pav+"/volume")
			serveFUSE(t, pav+"/volume").close()
			return err
		},
	} {
		for use, busy := range map[string]bool{"idle": false, "busy": true} {
			t.Run(name+", "+use, func(t *testing.T) { cleanUp(t, leave, busy) })
		}
	}
}

// bindAt binds a directory with all mounts below it. The new mounts are private.
func bindAt(from, at string) error {
	return errors.Join(os.MkdirAll(at, 0o755),
		unix.Mount(from, at, "", unix.MS_BIND|unix.MS_REC, ""),
		unix.Mount("", at, "", unix.MS_PRIVATE|unix.MS_REC, ""))
}

func cleanUp(t *testing.T, leave func(outside, pav string) error, busy bool) {
	t.Helper()
	dir := workDir(t)
	// Mounts of a pod do not propagate out of its directory.
	outside, pav := makeDir(t, dir, "outside"), makeDir(t, dir, "pav")
	must(t, mountTmpfs(outside))
	must(t, unix.Mount("", outside, "", unix.MS_PRIVATE, ""))
	makeDir(t, outside, "sub", "sub")
	writeFile(t, outside+"/canary", "canary")
	writeFile(t, outside+"/sub/sub/canary", "canary")
	writeFile(t, makeDir(t, pav, "own")+"/file", "")
	must(t, leave(outside, pav))
	var users []*os.File
	if busy {
		mounts, err := Mounts(pav)
		must(t, err)
		for _, mount := range mounts {
			// Hidden mounts, and mounts that do not answer any more, cannot get new users.
			if user, err := os.Open(mount.Point); err == nil {
				users = append(users, user)
			}
		}
	}

	err := RemoveTree(t.Context(), pav)
	wantError(t, err, ErrBusyMount)
	if err != nil && !strings.Contains(err.Error(), pav) {
		t.Errorf("%v names no place", err)
	}
	wantCanaries(t, outside)
	must(t, Unmount(t.Context(), pav))
	must(t, RemoveTree(t.Context(), pav))
	wantGone(t, pav)
	wantCanaries(t, outside)
	for _, user := range users {
		must(t, user.Close())
	}
	wantCanaries(t, outside)
	must(t, Unmount(t.Context(), outside))
}

func wantCanaries(t *testing.T, outside string) {
	t.Helper()
	wantFile(t, outside+"/canary", "canary")
	wantFile(t, outside+"/sub/sub/canary", "canary")
}
