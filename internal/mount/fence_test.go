package mount

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// While a FUSE daemon cannot reach its servers, it may itself return the error with which the kernel answers for a dead
// daemon. Fence makes sure that such a daemon stays dead.
func TestFenceEndsALivingDaemon(t *testing.T) {
	dir := workDir(t)
	volume, target, other := makeDir(t, dir, "volume"), makeDir(t, dir, "target"), makeDir(t, dir, "other")
	server, bystander := serveFUSE(t, volume), serveFUSE(t, other)
	must(t, Bind(volume, target, BindOptions{}))
	server.failure.Store(uint32(unix.ENOTCONN))
	wantError(t, Probe(target), ErrDead)
	server.failure.Store(0)
	must(t, Probe(target))

	for range 2 {
		must(t, Fence(target))
	}
	for _, path := range []string{volume, target} {
		wantError(t, Probe(path), ErrDead)
		if _, err := os.Stat(path + "/any"); !errors.Is(err, unix.ENOTCONN) {
			t.Errorf("%s gives %v, want ENOTCONN", path, err)
		}
	}
	<-server.ended
	must(t, Probe(other))
	unmountAllOf(t, target, volume, other)
	bystander.close()
}

func TestFenceLeavesAloneWhatIsNoFUSE(t *testing.T) {
	dir := workDir(t)
	path := makeDir(t, dir, "volume")
	wantError(t, Fence(path), ErrNotMounted)
	must(t, mountTmpfs(path))
	must(t, Fence(path))
	writeFile(t, path+"/file", "data")
	wantFile(t, path+"/file", "data")
	unmountAllOf(t, path)
}
