package mount

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// swapRounds is how often a test opens a file that a pod may swap, and at least how often the file is swapped
// meanwhile.
const swapRounds = 100_000

// rounds returns swapRounds if PAV_LONG is set, and few otherwise. It is for tests that take over 20 seconds for
// swapRounds.
func rounds(few int) int {
	if os.Getenv("PAV_LONG") == "" {
		return few
	}
	return swapRounds
}

// race runs try until it and the swaps of the two names have each happened this many times, and until try has both
// succeeded and been refused.
func race(t *testing.T, rounds int, one, other string, try func() (through bool)) {
	t.Helper()
	var swaps atomic.Int64
	stop := repeatedly(t, func(int) {
		exchange(one, other)
		swaps.Add(1)
	})
	defer stop()
	through, refused := 0, 0
	for tries := 0; tries < rounds || swaps.Load() < int64(rounds) || through == 0 || refused == 0; tries++ {
		if t.Failed() || tries == 100*rounds {
			t.Fatalf("given up: got through %d times, refused %d times, %d swaps", through, refused, swaps.Load())
		}
		if try() {
			through++
		} else {
			refused++
		}
	}
	t.Logf("got through %d times, refused %d times, %d swaps", through, refused, swaps.Load())
}

// during runs call while disturb runs again and again beside it. It returns how often disturb succeeded between the begin
// and the end of call.
func during(t *testing.T, disturb func() bool, call func()) (struck int) {
	t.Helper()
	var running atomic.Bool
	begun := make(chan struct{})
	stop := repeatedly(t, func(round int) {
		if round == 1 {
			close(begun)
		}
		within := running.Load()
		if disturb() && within && running.Load() {
			struck++
		}
	})
	func() {
		defer stop()
		<-begun
		running.Store(true)
		defer running.Store(false)
		call()
	}()
	return struck
}

// strike repeats round, which returns how often its call was disturbed, at least this many times, and until all calls
// together were disturbed as often. On a machine that hardly runs two threads at once, it ends after some minutes, unless
// no call was ever disturbed.
func strike(t *testing.T, rounds int, round func() (struck int)) {
	t.Helper()
	all, calls, until := 0, 0, time.Now().Add(2*time.Minute)
	for calls < rounds || all < rounds && time.Now().Before(until) {
		all += round()
		calls++
	}
	if all == 0 {
		t.Fatalf("none of %d calls was disturbed: that says nothing", calls)
	}
	t.Logf("%d calls were disturbed %d times", calls, all)
}

// host has files outside of a pod's directory, which must not change.
type host struct {
	dir, file, device string
}

func newHost(t *testing.T, dir string) host {
	t.Helper()
	h := host{dir: makeDir(t, dir, "outside"), file: dir + "/outside/canary", device: dir + "/outside/device"}
	makeDir(t, h.dir, "real")
	writeFile(t, h.file, "canary")
	must(t, mknod(h.device, unix.S_IFBLK, unix.Mkdev(250, 99))())
	return h
}

// watch returns a function that fails the test if the files have changed.
func (h host) watch(t *testing.T) (check func()) {
	t.Helper()
	look := func() (all []unix.Stat_t) {
		for _, path := range []string{h.dir, h.file, h.device, h.dir + "/real"} {
			var st unix.Stat_t
			must(t, unix.Lstat(path, &st))
			st.Atim = unix.Timespec{}
			all = append(all, st)
		}
		return all
	}
	before := look()
	return func() {
		t.Helper()
		wantFile(t, h.file, "canary")
		for i, after := range look() {
			if before[i] != after {
				t.Errorf("the host's files were changed: %+v, now %+v", before[i], after)
			}
		}
	}
}

func TestReadFileNeverReadsAReplacedFile(t *testing.T) {
	for name, spare := range map[string]func(h host, path string) error{
		"link to a file":      func(_ host, path string) error { return os.Symlink("../outside/canary", path) },
		"link to a directory": func(h host, path string) error { return os.Symlink(h.dir, path) },
		"link to a device":    func(h host, path string) error { return os.Symlink(h.device, path) },
		"named pipe":          func(_ host, path string) error { return unix.Mkfifo(path, 0o666) },
		"directory":           func(_ host, path string) error { return os.Mkdir(path, 0o777) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := workDir(t)
			outside, pav := newHost(t, dir), makeDir(t, dir, "pav")
			writeFile(t, pav+"/handle", "good")
			must(t, spare(outside, pav+"/spare"))
			check := outside.watch(t)
			held := openDir(t, pav)
			race(t, rounds(20_000), pav+"/handle", pav+"/spare", func() bool {
				got, err := held.ReadText("handle", handleLimit)
				if err == nil && got == "good" {
					return true
				}
				if err == nil || (!errors.Is(err, ErrEscapes) && !errors.Is(err, ErrNotRegular)) {
					t.Errorf("got %q, %v", got, err)
				}
				return false
			})
			must(t, held.Close())
			check()
		})
	}
}

// A pod constantly swaps the volume, or a directory in its path, with links that lead outside.
func TestOpenVolumeNeverMountsAReplacedVolume(t *testing.T) {
	directory := func(path string) error { return os.MkdirAll(path, 0o755) }
	device := func(path string) error { return mknod(path, unix.S_IFBLK, unix.Mkdev(250, 1))() }
	for name, test := range map[string]struct {
		make func(path string) error
		// link is the content of a symbolic link to the volume, through a directory that is swapped.
		link string
		to   func(h host) string
	}{
		"directory, absolute link":          {make: directory, to: func(h host) string { return h.dir }},
		"directory, link to a file":         {make: directory, to: func(h host) string { return h.file }},
		"device, link to a device":          {make: device, to: func(h host) string { return h.device }},
		"relative link over a directory":    {make: directory, link: "way/real", to: func(h host) string { return h.dir }},
		"link with parent directories":      {make: directory, link: "way/../way/./real", to: func(h host) string { return h.dir }},
		"link to a device over a directory": {make: device, link: "way/device", to: func(h host) string { return h.dir }},
	} {
		t.Run(name, func(t *testing.T) {
			dir := workDir(t)
			outside, pav, target := newHost(t, dir), makeDir(t, dir, "pav"), dir+"/target"
			swapped, good := pav+"/volume", pav+"/volume"
			if test.link != "" {
				must(t, os.Symlink(test.link, swapped))
				swapped = makeDir(t, pav, "way")
				good = filepath.Join(swapped, filepath.Base(test.link))
			}
			must(t, test.make(good))
			must(t, os.Symlink(test.to(outside), pav+"/spare"))
			var want unix.Stat_t
			must(t, unix.Stat(good, &want))
			if want.Mode&unix.S_IFMT == unix.S_IFDIR {
				makeDir(t, target)
			} else {
				writeFile(t, target, "")
			}
			check := outside.watch(t)
			held := openDir(t, pav)
			race(t, rounds(20_000), swapped, pav+"/spare", func() bool { return attached(t, held, target, want) })
			must(t, held.Close())
			check()
		})
	}
}

// attached reports whether the volume may be opened. If so, it mounts the volume, and checks that nothing else was
// mounted.
func attached(t *testing.T, held *Dir, target string, want unix.Stat_t) bool {
	t.Helper()
	volume, err := held.OpenVolume("volume")
	if errors.Is(err, ErrEscapes) || errors.Is(err, unix.EAGAIN) {
		return false
	}
	must(t, err)
	must(t, volume.Attach(target, BindOptions{}))
	must(t, volume.Close())
	var found unix.Stat_t
	must(t, unix.Stat(target, &found))
	if found.Dev != want.Dev || found.Ino != want.Ino {
		t.Errorf("something else was mounted: inode %d, want %d", found.Ino, want.Ino)
	}
	must(t, unix.Unmount(target, unix.UMOUNT_NOFOLLOW))
	return true
}

// Files that PaV creates for a pod are never created outside of the pod's directory.
func TestCreateNeverFollowsWhatIsSwappedIn(t *testing.T) {
	for name, test := range map[string]struct {
		create func(root, name string, mode fs.FileMode) error
		swap   string
		name   string
		link   string
	}{
		"directory below a link":  {create: CreateDir, swap: "way", name: "way/new", link: "../outside"},
		"directory that is one":   {create: CreateDir, swap: "way", name: "way", link: "../outside"},
		"file below a link":       {create: CreateFile, swap: "way", name: "way/new", link: "../outside"},
		"file that is one":        {create: CreateFile, swap: "file", name: "file", link: "../outside/canary"},
		"file that is dangling":   {create: CreateFile, swap: "file", name: "file", link: "../outside/new"},
		"directory, dangling one": {create: CreateDir, swap: "way", name: "way", link: "../outside/new"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := workDir(t)
			outside, pav := newHost(t, dir), makeDir(t, dir, "pav")
			makeDir(t, pav, "way")
			writeFile(t, pav+"/file", "")
			must(t, os.Symlink(test.link, pav+"/spare"))
			check := outside.watch(t)
			race(t, rounds(10_000), pav+"/"+test.swap, pav+"/spare", func() bool {
				err := test.create(pav, test.name, 0o777)
				if err != nil && !errors.Is(err, ErrEscapes) {
					t.Errorf("got %v", err)
				}
				return err == nil
			})
			check()
		})
	}
}
