package pavdir

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/albertofaria/pav/internal/mount"
)

// directoryVolume and deviceVolume are the attachments of most volumes.
var (
	directoryVolume = Attachment{Mode: mount.Filesystem}
	deviceVolume    = Attachment{Mode: mount.Block}
)

func TestAttach_MakesTheVolumeAvailable_AndTheKernelRefusesWritesToAReadOnlyOne(t *testing.T) {
	for name, readOnly := range map[string]bool{"for writing": false, "for reading": true} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			ctx := t.Context()
			must(t, h.Prepare(ctx, "s"))
			tmpfs(t, h.pav("s")+"/volume")
			tmpfs(t, h.pav("s")+"/volume/below")
			write(t, h.pav("s")+"/volume/below/file", "data")
			mustSay(t, false)(h.Attached(ctx, "s"))
			for range 2 {
				must(t, h.Attach(ctx, "s", Attachment{Mode: mount.Filesystem, ReadOnly: readOnly}))
			}
			mustSay(t, true)(h.Attached(ctx, "s"))
			wantFile(t, h.Volume("s")+"/below/file", "data")
			h.wantMounts(t, h.Volume("s"), "below")
			for _, place := range []string{"/new", "/below/new"} {
				err := os.WriteFile(h.Volume("s")+place, nil, 0o600)
				if readOnly != errors.Is(err, unix.EROFS) || !readOnly && err != nil {
					t.Errorf("writing %s: %v", place, err)
				}
			}
			write(t, h.pav("s")+"/volume/below/own", "") // The staging pod may go on writing.

			for range 2 {
				must(t, h.Detach(ctx, "s"))
			}
			mustSay(t, false)(h.Attached(ctx, "s"))
			h.wantMounts(t, h.stagePath("s"), "pav", "pav/volume", "pav/volume/below")
			must(t, h.Remove(ctx, "s"))
		})
	}
}

// mib is the size of the devices of these tests, in bytes.
const mib = 1 << 20

// loopDevice creates a block device of one MiB, and removes it at the end of the test.
func loopDevice(t *testing.T, options ...string) string {
	t.Helper()
	file := t.TempDir() + "/device"
	must(t, os.WriteFile(file, nil, 0o600))
	must(t, os.Truncate(file, mib))
	out, err := exec.CommandContext(t.Context(), "losetup", append(options, "--find", "--show", file)...).CombinedOutput()
	if err != nil {
		t.Fatalf("making a loop device: %v: %s", err, out)
	}
	device := strings.TrimSpace(string(out))
	t.Cleanup(func() {
		if out, err := exec.CommandContext(context.WithoutCancel(t.Context()), "losetup", "--detach", device).CombinedOutput(); err != nil {
			t.Errorf("taking a loop device away: %v: %s", err, out)
		}
	})
	return device
}

// deviceNode creates another special file for a device.
func deviceNode(t *testing.T, device, path string) {
	t.Helper()
	var st unix.Stat_t
	must(t, unix.Stat(device, &st))
	must(t, unix.Mknod(path, st.Mode&unix.S_IFMT|0o600, int(st.Rdev)))
}

func TestAttach_MakesADeviceAvailable(t *testing.T) {
	for name, test := range map[string]struct {
		options []string
		leave   func(t *testing.T, h *host, device string)
		as      Attachment
	}{
		"that the pod made": {
			leave: func(t *testing.T, h *host, device string) { t.Helper(); deviceNode(t, device, h.pav("s")+"/volume") },
			as:    deviceVolume,
		},
		"that the pod bound to a file": {
			leave: func(t *testing.T, h *host, device string) {
				t.Helper()
				write(t, h.pav("s")+"/volume", "")
				must(t, unix.Mount(device, h.pav("s")+"/volume", "", unix.MS_BIND, ""))
			},
			as: Attachment{Mode: mount.Block, Capacity: mib},
		},
		"that a link inside leads to, larger than it has to be": {
			leave: func(t *testing.T, h *host, device string) {
				t.Helper()
				must(t, os.Mkdir(h.pav("s")+"/devices", 0o755))
				deviceNode(t, device, h.pav("s")+"/devices/0")
				must(t, os.Symlink("devices/0", h.pav("s")+"/volume"))
			},
			as: Attachment{Mode: mount.Block, Capacity: mib - 512},
		},
		"that refuses writes": {
			options: []string{"--read-only"},
			leave:   func(t *testing.T, h *host, device string) { t.Helper(); deviceNode(t, device, h.pav("s")+"/volume") },
			as:      Attachment{Mode: mount.Block, Capacity: mib, ReadOnly: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			ctx := t.Context()
			device := loopDevice(t, test.options...)
			must(t, h.Prepare(ctx, "s"))
			test.leave(t, h, device)
			mustSay(t, false)(h.Attached(ctx, "s"))
			for range 2 {
				must(t, h.Attach(ctx, "s", test.as))
			}
			mustSay(t, true)(h.Attached(ctx, "s"))
			var want, got unix.Stat_t
			must(t, unix.Stat(device, &want))
			must(t, unix.Stat(h.Volume("s"), &got))
			if got.Mode&unix.S_IFMT != unix.S_IFBLK || got.Rdev != want.Rdev {
				t.Errorf("clients get %o, device %d; want device %d", got.Mode, got.Rdev, want.Rdev)
			}
			for range 2 {
				must(t, h.Detach(ctx, "s"))
			}
			mustSay(t, false)(h.Attached(ctx, "s"))
			must(t, h.Attach(ctx, "s", test.as))
			must(t, h.Renew(ctx, "s"))
			mustSay(t, false)(h.Attached(ctx, "s"))
			must(t, h.Remove(ctx, "s"))
			mustSay(t, false)(h.Exists(ctx, "s"))
		})
	}
}

// If a staging pod leaves anything else, Attach returns ErrNoVolume at once, and attaches nothing.
func TestAttach_RefusesEverythingButVolumes(t *testing.T) {
	h := newHost(t)
	ctx := t.Context()
	must(t, h.Prepare(ctx, "s"))
	device := loopDevice(t)
	outside := t.TempDir()
	deviceNode(t, device, outside+"/device")
	volume := h.pav("s") + "/volume"
	const unused = 250 // the minor number of a device that does not exist
	for name, test := range map[string]struct {
		leave func() error
		as    []Attachment // both directoryVolume and deviceVolume if empty
		words string
	}{
		"nothing":                      {leave: func() error { return nil }, words: "there is no /pav/volume"},
		"a file":                       {leave: func() error { return os.WriteFile(volume, nil, 0o644) }, words: "a regular file"},
		"a pipe":                       {leave: func() error { return unix.Mkfifo(volume, 0o644) }, words: "a named pipe"},
		"a socket":                     {leave: func() error { return unix.Mknod(volume, unix.S_IFSOCK|0o600, 0) }, words: "a socket"},
		"a terminal":                   {leave: func() error { return unix.Mknod(volume, unix.S_IFCHR|0o600, int(unix.Mkdev(5, 0))) }, words: "a character device"},
		"a link to nothing":            {leave: func() error { return os.Symlink("nothing", volume) }, words: "there is no /pav/volume"},
		"a link to itself":             {leave: func() error { return os.Symlink("volume", volume) }},
		"a link to an outer directory": {leave: func() error { return os.Symlink("../..", volume) }},
		"a link to the root":           {leave: func() error { return os.Symlink("/", volume) }},
		"a link to a device":           {leave: func() error { return os.Symlink(device, volume) }},
		"a link to an outer device":    {leave: func() error { return os.Symlink(outside+"/device", volume) }},
		"a link to /pav":               {leave: func() error { return os.Symlink(".", volume) }, as: []Attachment{directoryVolume}, words: "is /pav itself"},
		"a bind of /pav": {leave: func() error {
			return errors.Join(os.Mkdir(volume, 0o755), unix.Mount(h.pav("s"), volume, "", unix.MS_BIND, ""))
		}, as: []Attachment{directoryVolume}, words: "is /pav itself"},
		"a link by a descriptor": {leave: func() error { return os.Symlink("/proc/self/root", volume) }},
		"a device for a file system": {
			leave: func() error { deviceNode(t, device, volume); return nil }, as: []Attachment{directoryVolume}, words: "must be a directory",
		},
		"a directory for a device": {
			leave: func() error { return os.Mkdir(volume, 0o755) }, as: []Attachment{deviceVolume}, words: "must be a block special file",
		},
		"a device that is not there": {
			leave: func() error { return unix.Mknod(volume, unix.S_IFBLK|0o600, int(unix.Mkdev(42, unused))) }, as: []Attachment{deviceVolume}, words: "is not there",
		},
		"a device that is too small": {
			leave: func() error { deviceNode(t, device, volume); return nil },
			as:    []Attachment{{Mode: mount.Block, Capacity: mib + 1}}, words: strconv.Itoa(mib) + " bytes, less than the " + strconv.Itoa(mib+1),
		},
		"a device that may be written to": {
			leave: func() error { deviceNode(t, device, volume); return nil },
			as:    []Attachment{{Mode: mount.Block, Capacity: mib, ReadOnly: true}}, words: "`losetup -r` or `blockdev --setro`",
		},
	} {
		t.Run(name, func(t *testing.T) {
			must(t, os.RemoveAll(volume))
			must(t, test.leave())
			as := test.as
			if as == nil {
				as = []Attachment{directoryVolume, deviceVolume}
			}
			for _, a := range as {
				atOnce, cancel := context.WithTimeout(ctx, time.Minute)
				err := h.Attach(atOnce, "s", a)
				cancel()
				if !errors.Is(err, ErrNoVolume) || !strings.Contains(err.Error(), test.words) {
					t.Errorf("as %v: got error %v, want %q", a, err, test.words)
				}
			}
			mustSay(t, false)(h.Attached(ctx, "s"))
			must(t, mount.Unmount(ctx, volume))
		})
	}
	must(t, os.RemoveAll(volume))
	must(t, os.Mkdir(h.pav("s")+"/inside", 0o755))
	must(t, os.Symlink("inside", volume))
	must(t, h.Attach(ctx, "s", directoryVolume)) // A link that stays inside is fine.
	must(t, h.Remove(ctx, "s"))
}

// The agent is stopped after each of its effects in turn. The next agent completes the attachment.
func TestAttach_InterruptedAtAnyPoint(t *testing.T) {
	device := loopDevice(t)
	for name, as := range map[string]Attachment{"directory": directoryVolume, "device": deviceVolume} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			ctx := t.Context()
			for point, stopped := 1, true; stopped; point++ {
				must(t, h.Prepare(ctx, "s"))
				if as == deviceVolume {
					deviceNode(t, device, h.pav("s")+"/volume")
				} else {
					tmpfs(t, h.pav("s")+"/volume")
				}
				stopped = h.stopAt(t, point, func() error { return h.Attach(ctx, "s", as) })
				must(t, h.Attach(ctx, "s", as))
				mustSay(t, true)(h.Attached(ctx, "s"))
				must(t, h.Detach(ctx, "s"))
				h.wantMounts(t, h.Volume("s"))
				must(t, h.Remove(ctx, "s"))
			}
		})
	}
}

func TestAttach_RefusesADeviceWithoutASize(t *testing.T) {
	h := newHost(t)
	device := loopDevice(t)
	must(t, h.Prepare(t.Context(), "s"))
	deviceNode(t, device, h.pav("s")+"/volume")
	must(t, os.Truncate(loopFile(t, device), 0))
	if out, err := exec.CommandContext(t.Context(), "losetup", "--set-capacity", device).CombinedOutput(); err != nil {
		t.Fatalf("emptying a loop device: %v: %s", err, out)
	}
	if err := h.Attach(t.Context(), "s", deviceVolume); !errors.Is(err, ErrNoVolume) {
		t.Errorf("got error %v", err)
	}
	must(t, h.Remove(t.Context(), "s"))
}

// loopFile returns the backing file of a loop device.
func loopFile(t *testing.T, device string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "losetup", "--noheadings", "--output", "BACK-FILE", device).Output()
	must(t, err)
	return strings.TrimSpace(string(out))
}
