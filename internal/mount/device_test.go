package mount

import (
	"bytes"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestDevice_HasSizeAndReadOnlyFlag(t *testing.T) {
	for name, test := range map[string]struct {
		flags    uint32
		readOnly bool
	}{
		"writable":  {},
		"read-only": {flags: unix.LO_FLAGS_READ_ONLY, readOnly: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := workDir(t)
			newLoop(t, 3<<20, test.flags).node(t, dir+"/volume")
			volume := openVolume(t, dir)
			size, readOnly, err := volume.Device()
			if size != 3<<20 || readOnly != test.readOnly || err != nil {
				t.Errorf("got %d, %v, %v", size, readOnly, err)
			}
			must(t, volume.Close())
		})
	}
}

func TestDevice_OfAFileThatIsNotADevice(t *testing.T) {
	dir := workDir(t)
	makeDir(t, dir, "volume")
	volume := openVolume(t, dir)
	_, _, err := volume.Device()
	wantError(t, err, unix.ENOTBLK)
	must(t, volume.Close())
	must(t, os.Remove(dir+"/volume"))

	must(t, mknod(dir+"/volume", unix.S_IFBLK, unix.Mkdev(250, 99))())
	volume = openVolume(t, dir)
	_, _, err = volume.Device()
	wantError(t, err, unix.ENXIO)
	must(t, volume.Close())
}

// write writes a whole page through a device file, so that the kernel need not read it first. It checks the content of
// the device and of the backing file.
func (l *loopDevice) write(t *testing.T, path string, content byte) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_RDWR|unix.O_SYNC, 0)
	must(t, err)
	defer release(file)
	page := bytes.Repeat([]byte{content}, os.Getpagesize())
	_, err = file.WriteAt(page, 0)
	must(t, err)
	must(t, file.Sync())
	read := make([]byte, len(page))
	for _, from := range []string{path, l.backing} {
		file, err := os.Open(from)
		must(t, err)
		if _, err := file.ReadAt(read, 0); err != nil || !bytes.Equal(read, page) {
			t.Errorf("%s has not what was written: %v", from, err)
		}
		must(t, file.Close())
	}
}

// A device works with all bind options, even if kubelet's directory is on a file system that is mounted with nodev.
func TestDeviceIsOfUseInAllBinds(t *testing.T) {
	dir := workDir(t)
	nodev := makeDir(t, dir, "nodev")
	must(t, unix.Mount("test", nodev, "tmpfs", unix.MS_NODEV, "mode=755"))
	loop := newLoop(t, 1<<20, 0)
	loop.node(t, nodev+"/volume")
	_, err := os.Open(nodev + "/volume")
	wantError(t, err, unix.EACCES)

	volume := openVolume(t, nodev)
	if size, readOnly, err := volume.Device(); size != 1<<20 || readOnly || err != nil {
		t.Errorf("got %d, %v, %v", size, readOnly, err)
	}
	all := BindOptions{NoSuid: true, NoDev: true, NoExec: true, NoAtime: true}
	staged, one, two := nodev+"/staged", nodev+"/one", nodev+"/two"
	for _, name := range []string{"staged", "one", "two"} {
		must(t, CreateFile(nodev, name, 0o600))
	}
	for range 2 {
		must(t, volume.Attach(staged, all))
		must(t, Bind(staged, one, all))
		must(t, Cover(staged, two, all))
	}
	must(t, volume.Close())
	want := all
	want.NoDev = false
	for content, path := range []string{staged, one, two} {
		loop.write(t, path, byte(content+1))
		mounts, err := Mounts(path)
		must(t, err)
		if len(mounts) != 1 || mounts[0].Options != want {
			t.Errorf("%s: %+v", path, mounts)
		}
		must(t, Probe(path))
	}
	unmountAllOf(t, one, two, staged, nodev)
}

// A read-only bind of a device does not prevent writes. So callers need Volume.Device, which reports whether the device
// is read-only.
func TestReadOnlyBindOfADeviceTakesWrites(t *testing.T) {
	dir := workDir(t)
	loop := newLoop(t, 1<<20, 0)
	loop.node(t, dir+"/volume")
	must(t, CreateFile(dir, "target", 0o600))
	must(t, Bind(dir+"/volume", dir+"/target", BindOptions{ReadOnly: true}))
	loop.write(t, dir+"/target", 7)
	must(t, Unmount(t.Context(), dir+"/target"))
}
