package mount

import (
	"io/fs"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestUsageOf(t *testing.T) {
	dir := workDir(t)
	disk, served := makeDir(t, dir, "disk"), makeDir(t, dir, "served")
	must(t, unix.Mount("test", disk, "tmpfs", 0, "size=1M,nr_inodes=100"))
	writeFile(t, disk+"/file", "data")
	server := serveFUSE(t, served)
	newLoop(t, 3<<20, 0).node(t, dir+"/device")
	for path, want := range map[string]Usage{
		disk: {
			Bytes:  Amounts{Total: 1 << 20, Available: 1<<20 - 4<<10, Used: 4 << 10},
			Inodes: Amounts{Total: 100, Available: 98, Used: 2},
		},
		served:          {Bytes: Amounts{Total: 100 << 10, Available: 30 << 10, Used: 60 << 10}},
		dir + "/device": {Bytes: Amounts{Total: 3 << 20}},
	} {
		got, err := UsageOf(path)
		must(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
	server.close()
	_, err := UsageOf(served)
	wantError(t, err, unix.ENOTCONN)
	_, err = UsageOf(dir + "/missing")
	wantError(t, err, fs.ErrNotExist)
	unmountAllOf(t, served, disk)
}

func TestUsageOfAnyNumbers(t *testing.T) {
	got := usage(&unix.Statfs_t{
		Blocks: math.MaxUint64, Bfree: math.MaxUint64, Bavail: 1 << 62, Bsize: 4096, Files: 3, Ffree: 5,
	})
	want := Usage{
		Bytes:  Amounts{Total: math.MaxInt64, Available: math.MaxInt64},
		Inodes: Amounts{Total: 3, Available: 5},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
