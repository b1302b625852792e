package loop

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// attach attaches a new loop device to a file, and returns the device and its path.
func attach(t *testing.T, file string) (Device, string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "losetup", "--find", "--show", file).CombinedOutput()
	if err != nil {
		t.Fatalf("attaching a loop device to %s: %v: %s", file, err, out)
	}
	path := strings.TrimSpace(string(out))
	t.Cleanup(func() {
		if t.Failed() { // After a success, another user may have the device by now.
			_ = exec.CommandContext(context.WithoutCancel(t.Context()), "losetup", "--detach", path).Run()
		}
	})
	number, err := strconv.Atoi(strings.TrimPrefix(path, "/dev/loop"))
	if err != nil {
		t.Fatal(err)
	}
	device, err := inspect(number)
	if err != nil {
		t.Fatal(err)
	}
	return device, path
}

func TestDetach_ADeviceThatIsAttachedToAnother_WhicheverComesFirst(t *testing.T) {
	for name, order := range map[string]func([]Device){"inner first": func([]Device) {}, "outer first": slices.Reverse[[]Device]} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "volume")
			if err := os.WriteFile(file, make([]byte, 1<<20), 0o600); err != nil {
				t.Fatal(err)
			}
			inner, path := attach(t, file)
			outer, _ := attach(t, path)
			devices := []Device{inner, outer}
			order(devices)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := Detach(ctx, devices); err != nil {
				t.Fatal(err)
			}
			left, err := Devices()
			if err != nil {
				t.Fatal(err)
			}
			for _, device := range left {
				if device.Inode == inner.Inode && device.Filesystem == inner.Filesystem || device.Backing == outer.Backing {
					t.Errorf("%+v is left", device)
				}
			}
		})
	}
}
