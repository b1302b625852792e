package mount

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/albertofaria/pav/test/mountns"
)

// The tests that take seconds each do not depend on how a mount is described.
func TestOnAnOldKernel(t *testing.T) {
	mountns.OnOldKernel(t, "TestOnAnOldKernel|Never|NoWritableMoment|GivenUp")
}

// hasStatmount reports whether the kernel describes single mounts. TestOnAnOldKernel runs the tests where it does not.
func hasStatmount(t *testing.T) bool {
	t.Helper()
	root, _, err := openMountable("/proc")
	must(t, err)
	defer release(root)
	_, is := uniqueIDOf(root).describe()
	if is && mountns.IsOldKernel() {
		t.Fatal("statmount was not taken away")
	}
	return is
}

// byTable is At by the mount table alone.
func byTable(t *testing.T, path string) []Mount {
	t.Helper()
	mounts, err := located(path, (*location).mounts)
	must(t, err)
	return mounts
}

// isOnly reports whether Known.At needs no mount table for path.
func isOnly(t *testing.T, known *Known, path string) bool {
	t.Helper()
	only, err := located(path, func(where *location) (bool, error) {
		_, is := where.only(known.ids[path])
		return is, nil
	})
	must(t, err)
	return only
}

// wantAgreement compares what is said of a path with the mount table.
func wantAgreement(t *testing.T, known *Known, path string) {
	t.Helper()
	want := byTable(t, path)
	for name, get := range map[string]func(string) ([]Mount, error){"At": At, "Known.At": known.At} {
		got, err := get(path)
		must(t, err)
		if len(got) != len(want) || len(want) > 0 && !cmp.Equal(got, want) {
			t.Errorf("%s(%q): got %+v, want %+v", name, path, got, want)
		}
	}
	if mounted, err := IsMountPoint(path); err != nil || mounted != (len(want) > 0) {
		t.Errorf("IsMountPoint(%q): got %t, %v; the table has %+v", path, mounted, err, want)
	}
}

func TestKnownAt_NeedsNoTableOnlyWhereTheMountIsAlone(t *testing.T) {
	for name, test := range map[string]struct {
		change func(t *testing.T, dir, path string) (undo func())
		only   bool
	}{
		"nothing happens": {func(*testing.T, string, string) func() { return func() {} }, true},
		"something is mounted below it": {func(t *testing.T, _, path string) func() {
			t.Helper()
			must(t, mountTmpfs(path+"/below"))
			must(t, mountTmpfs(path+"/below/that"))
			return func() { must(t, Unmount(t.Context(), path+"/below")) }
		}, true},
		"its options and its peer group change": {func(t *testing.T, _, path string) func() {
			t.Helper()
			must(t, unix.Mount("", path, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOEXEC, ""))
			must(t, unix.Mount("", path, "", unix.MS_PRIVATE, ""))
			return func() {}
		}, true},
		"more is mounted below it than is asked about": {func(t *testing.T, _, path string) func() {
			t.Helper()
			for i := range maxListed + 1 {
				must(t, mountTmpfs(fmt.Sprintf("%s/below/%d", path, i)))
			}
			return func() {
				for i := range maxListed + 1 {
					must(t, unix.Unmount(fmt.Sprintf("%s/below/%d", path, i), 0))
				}
			}
		}, false},
		"something is mounted over it": {func(t *testing.T, _, path string) func() {
			t.Helper()
			must(t, unix.Mount("proc", path, "proc", 0, ""))
			return func() { must(t, unix.Unmount(path, 0)) }
		}, false},
		"an older mount is moved over it": {func(t *testing.T, dir, path string) func() {
			t.Helper()
			must(t, unix.Mount("", dir, "", unix.MS_PRIVATE|unix.MS_REC, "")) // Mounts cannot be moved out of shared ones.
			must(t, unix.Mount(dir+"/older", path, "", unix.MS_MOVE, ""))
			return func() {
				must(t, unix.Mount(path, dir+"/older", "", unix.MS_MOVE, ""))
				must(t, unix.Mount("", dir, "", unix.MS_SHARED, ""))
			}
		}, false},
		"it is bound on itself": {func(t *testing.T, _, path string) func() {
			t.Helper()
			must(t, unix.Mount(path, path, "", unix.MS_BIND, ""))
			return func() { must(t, unix.Unmount(path, 0)) }
		}, false},
		"the directory above it is bound on itself": {func(t *testing.T, dir, _ string) func() {
			t.Helper()
			must(t, unix.Mount(dir+"/in", dir+"/in", "", unix.MS_BIND, ""))
			return func() { must(t, unix.Unmount(dir+"/in", 0)) }
		}, false},
		"the directory above it is bound on itself, with it": {func(t *testing.T, dir, _ string) func() {
			t.Helper()
			must(t, unix.Mount(dir+"/in", dir+"/in", "", unix.MS_BIND|unix.MS_REC, ""))
			return func() { must(t, unix.Unmount(dir+"/in", unix.MNT_DETACH)) }
		}, false},
		"it is unmounted": {func(t *testing.T, _, path string) func() {
			t.Helper()
			must(t, unix.Unmount(path, 0))
			return func() { must(t, mountTmpfs(path)) }
		}, false},
		"another is mounted in its place": {func(t *testing.T, _, path string) func() {
			t.Helper()
			must(t, unix.Unmount(path, 0))
			must(t, mountTmpfs(path))
			return func() {}
		}, false},
		"the directory above it is renamed, and another is in its place": {func(t *testing.T, dir, path string) func() {
			t.Helper()
			must(t, os.Rename(dir+"/in", dir+"/out"))
			must(t, mountTmpfs(path))
			return func() {
				must(t, unix.Unmount(path, 0))
				must(t, os.RemoveAll(dir+"/in"))
				must(t, os.Rename(dir+"/out", dir+"/in"))
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := workDir(t)
			path := makeDir(t, dir, "in", "path")
			must(t, mountTmpfs(dir+"/older"))
			must(t, mountTmpfs(path))
			var known Known
			known.Note(path)
			undo := test.change(t, dir, path)
			wantAgreement(t, &known, path)
			if got, want := isOnly(t, &known, path), test.only && hasStatmount(t); got != want {
				t.Errorf("alone: got %t, want %t", got, want)
			}
			undo()
			wantAgreement(t, &known, path)
			unmountAllOf(t, path, dir+"/older")
		})
	}
}

// A copy of a mount namespace has other mounts at the same paths.
func TestKnownAt_KnowsNoMountsOfOtherNamespaces(t *testing.T) {
	dir := workDir(t)
	path := makeDir(t, dir, "in", "path")
	must(t, mountTmpfs(path))
	var known Known
	known.Note(path)
	other := newNamespace(t, dir, unix.MS_PRIVATE)
	in(t, other, func() error {
		wantAgreement(t, &known, path)
		if isOnly(t, &known, path) {
			t.Error("the mount of one namespace is known in the other")
		}
		return unix.Unmount(path, 0)
	})
	in(t, other, func() error { wantAgreement(t, &known, path); return nil })
	wantAgreement(t, &known, path)
	unmountAllOf(t, path)
}

// Nothing of this waits for a file system: one that is silent at the path, over the mount at the path, or at the
// directory of the path.
func TestIsMountPointAndKnownAt_AskNoFileSystem(t *testing.T) {
	for name, end := range map[string]func(*deadServer){
		"silent": func(s *deadServer) { s.silent.Store(true) },
		"dead":   (*deadServer).close,
	} {
		t.Run(name, func(t *testing.T) {
			dir := workDir(t)
			alone, covered := makeDir(t, dir, "in", "alone"), makeDir(t, dir, "in", "covered")
			servers := []*deadServer{serveFUSE(t, alone)}
			must(t, SelfBind(covered))
			var known Known
			known.Note(alone)
			known.Note(covered)
			servers = append(servers, serveFUSE(t, covered))
			for _, server := range servers {
				end(server)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			must(t, here(t).Do(ctx, func() error {
				wantAgreement(t, &known, alone)
				wantAgreement(t, &known, covered)
				wantAgreement(t, &known, alone+"/name")
				wantAgreement(t, &known, covered+"/name")
				if hasStatmount(t) != isOnly(t, &known, alone) || isOnly(t, &known, covered) {
					t.Error("the mount that is alone is not told from that which is covered")
				}
				return nil
			}))
			for _, server := range servers {
				server.close()
			}
			unmountAllOf(t, alone, covered)
		})
	}
}

func TestKnownAttach_KnowsWhatItMounted(t *testing.T) {
	dir := workDir(t)
	pav, target := makeDir(t, dir, "in", "pav"), makeDir(t, dir, "in", "target")
	must(t, mountTmpfs(pav+"/volume"))
	directory := openDir(t, pav)
	volume, err := directory.OpenVolume("volume")
	must(t, err)
	for range 2 {
		var known Known
		must(t, known.Attach(volume, target, BindOptions{ReadOnly: true}))
		wantAgreement(t, &known, target)
		if got := isOnly(t, &known, target); got != hasStatmount(t) {
			t.Errorf("known: got %t", got)
		}
		known.Forget(target)
		wantAgreement(t, &known, target)
	}
	must(t, volume.Close())
	must(t, directory.Close())
	unmountAllOf(t, target, pav+"/volume")
}

func TestKnownAt_OfAFile(t *testing.T) {
	dir := workDir(t)
	path := makeDir(t, dir, "in") + "/file"
	writeFile(t, path, "")
	must(t, unix.Mount("/dev/null", path, "", unix.MS_BIND, ""))
	var known Known
	known.Note(path)
	wantAgreement(t, &known, path)
	wantSameDescription(t, path)
	if got := isOnly(t, &known, path); got != hasStatmount(t) {
		t.Errorf("known: got %t", got)
	}
	must(t, unix.Mount("/dev/zero", path, "", unix.MS_BIND, ""))
	wantAgreement(t, &known, path)
	unmountAllOf(t, path)
	wantAgreement(t, &known, path)
}

// Random mounts, of which many are stacked or hidden, and of which those that are known are often gone.
func TestRandomMounts_AreWhatTheTableSays(t *testing.T) {
	const rounds, steps = 12, 50
	alone := 0
	for seed := range uint64(rounds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := randomMounts{Rand: rand.New(rand.NewPCG(seed, 0)), dir: workDir(t)}
			for _, path := range []string{"a", "a/b", "a/b/c", "d \n\\040", "d \n\\040/e"} {
				w.paths = append(w.paths, makeDir(t, w.dir, path))
			}
			// All of it is gone with the namespace.
			in(t, newNamespace(t, w.dir, unix.MS_PRIVATE), func() error {
				for range steps {
					w.step(t)
					for _, path := range w.paths {
						wantAgreement(t, &w.known, path)
						wantSameDescription(t, path)
						if isOnly(t, &w.known, path) {
							alone++
						}
					}
				}
				return nil
			})
		})
	}
	if hasStatmount(t) != (alone > rounds) {
		t.Errorf("%d mounts were found without the table", alone)
	}
}

// wantSameDescription compares the description of the mount that is seen at path with its line of the table.
func wantSameDescription(t *testing.T, path string) {
	t.Helper()
	file, found, err := openMountable(path)
	if errors.Is(err, fs.ErrNotExist) {
		return // A mount hides it.
	}
	must(t, err)
	defer release(file)
	got, err := found.mount()
	must(t, err)
	want, err := mountByID(found.mountID)
	must(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("at %q (-table +statmount):\n%s", path, diff)
	}
}

// randomMounts changes mounts at random.
type randomMounts struct {
	*rand.Rand
	dir   string
	paths []string
	known Known
}

func (w *randomMounts) step(t *testing.T) {
	t.Helper()
	path, other := w.paths[w.IntN(len(w.paths))], w.paths[w.IntN(len(w.paths))]
	// Some of these fail, as a path is hidden or nothing is mounted there.
	switch w.IntN(9) {
	case 0:
		_ = unix.Mount(other, path, "", unix.MS_BIND, "")
	case 1:
		_ = unix.Mount(other, path, "", unix.MS_BIND|unix.MS_REC, "")
	case 2:
		_ = unix.Mount("test", path, "tmpfs", 0, "mode=755")
	case 3:
		_ = unix.Mount("", path, "", []uintptr{unix.MS_SHARED, unix.MS_PRIVATE, unix.MS_SLAVE}[w.IntN(3)], "")
	case 4:
		flags := []uintptr{unix.MS_RDONLY, unix.MS_NOSUID, unix.MS_NODEV, unix.MS_NOEXEC, unix.MS_NOATIME, unix.MS_STRICTATIME, unix.MS_NODIRATIME}
		_ = unix.Mount("", path, "", unix.MS_REMOUNT|unix.MS_BIND|flags[w.IntN(len(flags))]|flags[w.IntN(len(flags))], "")
	case 5:
		_ = unix.Mount(other, path, "", unix.MS_MOVE, "")
	case 6:
		if w.IntN(4) == 0 {
			_ = unix.Mount(w.dir, w.dir, "", unix.MS_BIND, "")
		}
	default:
		_ = unix.Unmount(path, unix.MNT_DETACH)
	}
	if w.IntN(2) == 0 {
		w.known.Note(w.paths[w.IntN(len(w.paths))])
	}
}
