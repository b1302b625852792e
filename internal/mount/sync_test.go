package mount

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// newFileSystem makes a file system on a new loop device, and mounts it at path.
func newFileSystem(t *testing.T, kind, path string) *loopDevice {
	t.Helper()
	size := int64(16 << 20)
	if kind == "xfs" {
		size = 320 << 20 // It takes no less than 300 MiB.
	}
	l := newLoop(t, size, 0)
	device := t.TempDir() + "/device"
	l.node(t, device)
	out, err := exec.CommandContext(t.Context(), "mkfs."+kind, device).CombinedOutput()
	if err != nil {
		t.Fatalf("mkfs.%s: %v\n%s", kind, err, out)
	}
	must(t, unix.Mount(device, path, kind, 0, ""))
	return l
}

// writeOpen writes to a file, and keeps it open without a sync.
func writeOpen(t *testing.T, path, content string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	must(t, err)
	t.Cleanup(func() { release(file) })
	_, err = file.WriteString(content)
	must(t, err)
}

// wantStored checks that the backing file has a text that was written through the device.
func (l *loopDevice) wantStored(t *testing.T, text string) {
	t.Helper()
	stored, err := os.ReadFile(l.backing)
	must(t, err)
	if !bytes.Contains(stored, []byte(text)) {
		t.Errorf("the storage lacks %q", text)
	}
}

func TestSync_StoresWhatWasWritten(t *testing.T) {
	for _, kind := range []string{"ext4", "xfs"} {
		t.Run(kind, func(t *testing.T) {
			dir := workDir(t)
			staged, target := makeDir(t, dir, "staged"), makeDir(t, dir, "target")
			l := newFileSystem(t, kind, staged)
			must(t, Bind(staged, target, BindOptions{}))
			must(t, os.WriteFile(target+"/file", []byte("written by a client of "+kind), 0o600))
			must(t, Sync(staged))
			l.wantStored(t, "written by a client of "+kind)
			unmountAllOf(t, target, staged)
		})
	}
}

// A volume may have further file systems in it.
func TestSync_StoresWhatWasWrittenBelow(t *testing.T) {
	dir := workDir(t)
	staged := makeDir(t, dir, "staged")
	must(t, mountTmpfs(staged))
	inner := newFileSystem(t, "ext4", makeDir(t, staged, "in", "ner"))
	must(t, os.WriteFile(staged+"/in/ner/file", []byte("written below"), 0o600))
	single := newFileSystem(t, "ext4", makeDir(t, dir, "single"))
	writeFile(t, dir+"/single/file", "")
	writeFile(t, staged+"/file", "")
	must(t, Bind(dir+"/single/file", staged+"/file", BindOptions{}))
	must(t, os.WriteFile(staged+"/file", []byte("written to a file"), 0o600))
	must(t, unix.Mkfifo(dir+"/single/pipe", 0o600))
	pipes := makeDir(t, dir, "pipes")
	must(t, mountTmpfs(pipes))
	must(t, unix.Mkfifo(pipes+"/pipe", 0o600))
	writeFile(t, staged+"/pipe", "")
	must(t, Bind(pipes+"/pipe", staged+"/pipe", BindOptions{}))
	must(t, Sync(staged))
	inner.wantStored(t, "written below")
	single.wantStored(t, "written to a file")
	unmountAllOf(t, staged, dir+"/single", pipes)
}

func TestSync_OfADevice(t *testing.T) {
	dir := workDir(t)
	l := newLoop(t, 1<<20, 0)
	l.node(t, dir+"/device")
	writeFile(t, dir+"/staged", "")
	must(t, Bind(dir+"/device", dir+"/staged", BindOptions{}))
	writeOpen(t, dir+"/staged", "written to the device")
	must(t, Sync(dir+"/staged"))
	l.wantStored(t, "written to the device")
	unmountAllOf(t, dir+"/staged")
}

func TestSync_OfWhatIsNotMounted(t *testing.T) {
	dir := workDir(t)
	wantError(t, Sync(dir+"/missing"), fs.ErrNotExist)
	wantError(t, Sync(makeDir(t, dir, "plain")), ErrNotMounted)
	must(t, os.Symlink("plain", dir+"/link"))
	wantError(t, Sync(dir+"/link"), ErrEscapes)
	must(t, unix.Mkfifo(dir+"/pipe", 0o600))
	writeFile(t, dir+"/target", "")
	must(t, Bind(dir+"/pipe", dir+"/target", BindOptions{}))
	wantError(t, Sync(dir+"/target"), ErrNotVolume)
	unmountAllOf(t, dir+"/target")
}

func TestSync_OfFUSE(t *testing.T) {
	dir := workDir(t)
	staged := makeDir(t, dir, "staged")
	server := serveFUSE(t, staged)
	own := here(t)
	must(t, own.Do(t.Context(), func() error { return Sync(staged) }))
	server.silent.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := own.Do(ctx, func() error { return Sync(staged) })
	wantError(t, err, context.DeadlineExceeded)
	server.close()
	if err := Sync(staged); !errors.Is(err, unix.ENOTCONN) {
		t.Errorf("without its daemon: got %v", err)
	}
	unmountAllOf(t, staged)
}
