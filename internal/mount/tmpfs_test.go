package mount

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestTmpfs_IsLimited_AndAMountOfItsOwn(t *testing.T) {
	dir := makeDir(t, workDir(t), "pav")
	for range 2 {
		must(t, Tmpfs{Size: 1 << 20, Inodes: 16, Mode: 0o777}.Mount(dir))
		writeFile(t, dir+"/file", "stays")
	}
	wantFile(t, dir+"/file", "stays")
	mounts, err := At(dir)
	must(t, err)
	if len(mounts) != 1 || mounts[0].PeerGroup == 0 || !mounts[0].Options.NoSuid || !mounts[0].Options.NoDev {
		t.Errorf("mounted is %+v", mounts)
	}
	info, err := os.Stat(dir)
	must(t, err)
	if info.Mode().Perm() != 0o777 {
		t.Errorf("the mode is %s", info.Mode())
	}
	if err := os.WriteFile(dir+"/large", make([]byte, 2<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("writing too much: got %v", err)
	}
	must(t, os.Remove(dir+"/large"))
	for i := range 32 {
		if err = os.WriteFile(dir+"/"+strconv.Itoa(i), nil, 0o600); err != nil {
			break
		}
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Errorf("making too many files: got %v", err)
	}
	must(t, Unmount(t.Context(), dir))
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("in the directory below is %v, %v", entries, err)
	}
}

func TestTmpfs_OfSecrets_IsNeitherSwappedNorExecuted(t *testing.T) {
	dir := makeDir(t, workDir(t), "secret")
	must(t, Tmpfs{Size: 1 << 20, Inodes: 16, Mode: 0o777, NoExec: true, NoSwap: true}.Mount(dir))
	mounts, err := At(dir)
	must(t, err)
	if len(mounts) != 1 || !mounts[0].Options.NoExec || !mounts[0].Options.NoSuid || !mounts[0].Options.NoDev {
		t.Errorf("mounted is %+v", mounts)
	}
	if options := fileSystemOptions(t, dir); atLeast(t, 6, 4) && !slices.Contains(options, "noswap") {
		t.Errorf("the file system has the options %q", options)
	}
	must(t, Unmount(t.Context(), dir))
}

// fileSystemOptions returns the options of the file system that is mounted at a path.
func fileSystemOptions(t *testing.T, path string) []string {
	t.Helper()
	table, err := os.ReadFile("/proc/thread-self/mountinfo")
	must(t, err)
	for line := range strings.Lines(string(table)) {
		if fields := strings.Fields(line); fields[4] == path {
			return strings.Split(fields[len(fields)-1], ",")
		}
	}
	t.Fatalf("nothing is mounted at %s", path)
	return nil
}

// atLeast reports whether the kernel has a version.
func atLeast(t *testing.T, major, minor int) bool {
	t.Helper()
	var name unix.Utsname
	must(t, unix.Uname(&name))
	parts := strings.FieldsFunc(unix.ByteSliceToString(name.Release[:]), func(r rune) bool { return r < '0' || r > '9' })
	first, err := strconv.Atoi(parts[0])
	must(t, err)
	second, err := strconv.Atoi(parts[1])
	must(t, err)
	return first > major || first == major && second >= minor
}

// Older kernels do not know noswap. What they do not know leaves the file system usable.
func TestSetIfKnown_LeavesAFileSystemThatDoesNotKnowIt(t *testing.T) {
	context, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	must(t, err)
	defer func() { must(t, unix.Close(context)) }()
	must(t, setIfKnown(context, "of-the-future"))
	must(t, unix.FsconfigCreate(context))
	if err := setIfKnown(context, "noswap"); !errors.Is(err, unix.EBUSY) {
		t.Errorf("of a file system that is made already: got %v", err)
	}
}
