package loop

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func numbers(devices []Device) []int {
	var numbers []int
	for _, device := range devices {
		numbers = append(numbers, device.Number)
	}
	return numbers
}

func TestOwned_IdentifiesDevicesByTheirBackingFilesNotByPaths(t *testing.T) {
	directory, elsewhere := t.TempDir(), t.TempDir()
	device := func(number int, path string) Device {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		var stat unix.Stat_t
		if err := unix.Stat(path, &stat); err != nil {
			t.Fatal(err)
		}
		// All paths are equal, because the kernel reports the paths that the nodes see.
		return Device{Number: number, Path: "/var/lib/volume", Filesystem: stat.Dev, Inode: stat.Ino}
	}
	devices := []Device{
		device(0, filepath.Join(elsewhere, "volume")),
		device(1, filepath.Join(directory, "deep", "volume")),
		{Number: 2, Filesystem: 6, Inode: 94, Backing: unix.Mkdev(major, 1)},
		{Number: 3, Filesystem: 6, Inode: 95, Backing: unix.Mkdev(major, 2)},
		{Number: 4, Filesystem: 6, Inode: 93, Backing: unix.Mkdev(major, 0)},
		{Number: 5, Filesystem: 77, Inode: 2},
		{Number: 6, Filesystem: 78, Inode: 2},
	}
	owned, err := Place{Directory: directory, Filesystems: []uint64{77}}.Owned(devices, devices[6:])
	if err != nil {
		t.Fatal(err)
	}
	got := numbers(owned)
	slices.Sort(got)
	if want := []int{1, 2, 3, 5, 6}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestHeld_AFilesystemWithoutADevice_MayBeAnothersLater(t *testing.T) {
	got := Held([]uint64{77, 78, 79}, []Device{{Number: 1, Filesystem: 78}, {Number: 2, Filesystem: 80}})
	if want := []uint64{78}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestOwnedIsEmptyWithoutADirectory(t *testing.T) {
	owned, err := Place{Directory: filepath.Join(t.TempDir(), "gone")}.Owned([]Device{{Number: 1, Inode: 5}}, nil)
	if err != nil || len(owned) > 0 {
		t.Errorf("got %v, %v; want nothing", owned, err)
	}
}

func TestBelow(t *testing.T) {
	for path, want := range map[string]bool{
		"/state/nodes/a": true, "/state/nodes/a (deleted)": true, "/state": false, "/states/a": false, "/other/state/a": false,
	} {
		if got := below(path, "/state/"); got != want {
			t.Errorf("%q: got %v, want %v", path, got, want)
		}
	}
	if below("/anything", "") {
		t.Error("everything counts as below no directory")
	}
}

func TestVanished_FindsDeletedFilesWhoseMountIsGone(t *testing.T) {
	before := []Device{
		{Number: 0, Inode: 10, Path: "/var/lib/volume (deleted)"},
		{Number: 1, Inode: 11, Path: "/var/lib/volume (deleted)"},
		{Number: 2, Inode: 12, Path: "/var/lib/volume"},
		{Number: 3, Inode: 13, Path: "/elsewhere/volume (deleted)"},
		{Number: 4, Inode: 14, Path: "/tmp/volume (deleted)"},
	}
	after := []Device{
		{Number: 0, Inode: 10, Path: "/volume (deleted)"},
		// The file belongs to another node, which still runs.
		{Number: 1, Inode: 11, Path: "/var/lib/volume (deleted)"},
		// The file is not deleted, so a search can find it.
		{Number: 2, Inode: 12, Path: "/volume"},
		// The mount is not one of a node's directories.
		{Number: 3, Inode: 13, Path: "/volume (deleted)"},
		// The device was attached to another file in the meantime.
		{Number: 4, Inode: 99, Path: "/volume (deleted)"},
	}
	if got := numbers(Vanished(before, after, []string{"/var/lib", "/tmp"})); !slices.Equal(got, []int{0}) {
		t.Errorf("got %v, want device 0 only", got)
	}
}

func TestFilesystems(t *testing.T) {
	got := filesystems("27 1 254:0 / / rw - ext4 /dev/vda rw\n31 27 0:28 / /run rw - tmpfs tmpfs rw\n32 27 0:28 / /tmp rw - tmpfs tmpfs rw\nx\n")
	if want := []uint64{28, unix.Mkdev(254, 0)}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestMovedDevices_AreThoseWhoseMountIsGone(t *testing.T) {
	before := []Device{
		{Number: 0, Inode: 1, Path: "/var/lib/shared/a"},
		{Number: 1, Inode: 2, Path: "/var/lib/shared/b"},
		{Number: 2, Inode: 3, Path: "/pod/c (deleted)"},
		{Number: 3, Inode: 4, Path: "/var/lib/shared/d"},
		{Number: 4, Inode: 5, Path: "/e"},
	}
	after := []Device{
		{Number: 0, Inode: 1, Path: "/a"},
		{Number: 1, Inode: 2, Path: "/var/lib/shared/b"},
		{Number: 2, Inode: 3, Path: "/c (deleted)"},
		{Number: 3, Inode: 9, Path: "/d"}, // another file in the meantime
		{Number: 4, Inode: 5, Path: "/renamed"},
		{Number: 5, Inode: 6, Path: "/new"},
	}
	if got := numbers(Moved(before, after)); !slices.Equal(got, []int{0, 2}) {
		t.Errorf("got %v, want 0 and 2", got)
	}
}
