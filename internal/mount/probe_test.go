package mount

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestProbeOfWhatAnswers(t *testing.T) {
	dir := workDir(t)
	staged := stagedTree(t, dir)
	target, served := makeDir(t, dir, "target"), makeDir(t, dir, "served")
	must(t, Bind(staged, target, BindOptions{ReadOnly: true}))
	server := serveFUSE(t, served)
	for _, path := range []string{staged, target, served} {
		must(t, Probe(path))
	}
	// A file system that refuses a request is alive.
	for _, failure := range []unix.Errno{unix.EACCES, unix.EPERM, unix.ENOSYS} {
		server.failure.Store(uint32(failure))
		must(t, Probe(served))
	}
	for _, failure := range []unix.Errno{unix.EIO, unix.ESTALE, unix.ETIMEDOUT, unix.EHOSTDOWN} {
		server.failure.Store(uint32(failure))
		err := Probe(served)
		wantError(t, err, failure)
		wantNotDead(t, err)
	}
	server.failure.Store(0)
	must(t, Probe(served))
	unmountAllOf(t, target, staged, served)
	server.close()
}

func wantNotDead(t *testing.T, err error) {
	t.Helper()
	if errors.Is(err, ErrDead) {
		t.Errorf("taken for dead: %v", err)
	}
}

func TestProbeOfWhatIsNotMounted(t *testing.T) {
	dir := workDir(t)
	wantError(t, Probe(dir+"/missing"), fs.ErrNotExist)
	wantError(t, Probe(makeDir(t, dir, "plain")), ErrNotMounted)
	writeFile(t, dir+"/file", "")
	writeFile(t, dir+"/other", "")
	must(t, Bind(dir+"/file", dir+"/other", BindOptions{}))
	wantError(t, Probe(dir+"/other"), ErrNotVolume)
	must(t, Unmount(t.Context(), dir+"/other"))
}

func TestProbeOfDeadFUSE(t *testing.T) {
	dir := workDir(t)
	staged, target := makeDir(t, dir, "staged"), makeDir(t, dir, "target")
	server := serveFUSE(t, staged)
	must(t, Bind(staged, target, BindOptions{}))
	server.close()
	for _, path := range []string{staged, target} {
		err := Probe(path)
		wantError(t, err, ErrDead)
		wantError(t, err, unix.ENOTCONN)
	}
	unmountAllOf(t, target, staged)
}

func TestProbeOfHangingFUSEEndsWithItsContext(t *testing.T) {
	dir := workDir(t)
	before := openDescriptors()
	server := serveFUSE(t, makeDir(t, dir, "staged"))
	own := here(t)
	must(t, own.Do(t.Context(), func() error { return Probe(dir + "/staged") }))
	server.silent.Store(true)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	woken := make(chan error, 1)
	err := own.Do(ctx, func() error {
		time.AfterFunc(time.Second/5, cancel) // The timer starts here, so that the function is certain to have begun.
		err := Probe(dir + "/staged")
		woken <- err
		return err
	})
	wantError(t, err, context.Canceled)
	wantNotDead(t, err)
	select {
	case err := <-woken:
		t.Errorf("the probe came back: %v", err)
	default:
	}
	server.close()
	if <-woken == nil {
		t.Error("the probe got an answer")
	}
	wantError(t, Probe(dir+"/staged"), ErrDead)
	must(t, Unmount(t.Context(), dir+"/staged"))
	must(t, own.Close())
	wantDescriptorsAgain(t, before)
}

func TestProbeOfDevices(t *testing.T) {
	dir := workDir(t)
	loop := newLoop(t, 1<<20, 0)
	loop.node(t, dir+"/volume")
	must(t, CreateFile(dir, "target", 0o600))
	target := dir + "/target"
	must(t, Bind(dir+"/volume", target, BindOptions{}))
	must(t, Probe(target))

	// The device still has its backing file: a write still reaches it.
	must(t, os.Truncate(loop.backing, 0))
	err := Probe(target)
	wantError(t, err, unix.EIO)
	wantNotDead(t, err)
	loop.write(t, target, 7)

	loop.detach(t)
	wantError(t, Probe(target), ErrDead)
	must(t, Unmount(t.Context(), target))
}

func TestProbeOfADeviceThatIsGone(t *testing.T) {
	dir := workDir(t)
	must(t, mknod(dir+"/volume", unix.S_IFBLK, unix.Mkdev(250, 99))())
	must(t, CreateFile(dir, "target", 0o600))
	must(t, Bind(dir+"/volume", dir+"/target", BindOptions{}))
	err := Probe(dir + "/target")
	wantError(t, err, ErrDead)
	wantError(t, err, unix.ENXIO)
	must(t, Unmount(t.Context(), dir+"/target"))
}
