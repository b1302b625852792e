package mount

import (
	"errors"
	"os"
	"strconv"
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
