package mount

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// loopDevice is a loop device with a number that nobody else is likely to use.
type loopDevice struct {
	number  int
	backing string
	// bound reports whether the device has a backing file.
	bound bool
}

// newLoop creates a loop device. Its backing file is outside of the working directory, which it would keep busy.
func newLoop(t *testing.T, size int64, flags uint32) *loopDevice {
	t.Helper()
	l := &loopDevice{backing: filepath.Join(t.TempDir(), "backing")}
	writeFile(t, l.backing, "")
	must(t, os.Truncate(l.backing, size))
	err := error(unix.EEXIST)
	for errors.Is(err, unix.EEXIST) {
		l.number = 10_000 + rand.IntN(1<<19)
		err = loopControl(unix.LOOP_CTL_ADD, l.number)
	}
	must(t, err)
	t.Cleanup(func() { l.remove(t) })
	file, err := os.OpenFile(l.backing, os.O_RDWR, 0)
	must(t, err)
	defer release(file)
	l.do(t, func(fd int) error {
		config := unix.LoopConfig{Fd: uint32(file.Fd()), Info: unix.LoopInfo64{Flags: flags}}
		return unix.IoctlLoopConfigure(fd, &config)
	})
	l.bound = true
	return l
}

func loopControl(request uint, number int) error {
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer release(control)
	return unix.IoctlSetInt(int(control.Fd()), request, number)
}

// node makes a device file for the loop device.
func (l *loopDevice) node(t *testing.T, path string) {
	t.Helper()
	must(t, mknod(path, unix.S_IFBLK, l.device())())
}

func (l *loopDevice) device() uint64 { return unix.Mkdev(7, uint32(l.number)) }

// do runs f on the opened device.
func (l *loopDevice) do(t *testing.T, f func(fd int) error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "device")
	l.node(t, path)
	// A device that is configured through a read-only descriptor is read-only.
	device, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	defer release(device)
	must(t, f(int(device.Fd())))
}

// detach removes the backing file from the device.
func (l *loopDevice) detach(t *testing.T) {
	t.Helper()
	l.do(t, func(fd int) error { return unix.IoctlSetInt(fd, unix.LOOP_CLR_FD, 0) })
	l.bound = false
}

// remove removes the device. It waits for processes that open new devices, such as udev.
func (l *loopDevice) remove(t *testing.T) {
	t.Helper()
	if l.bound {
		l.detach(t)
	}
	deadline := time.Now().Add(10 * time.Second)
	err := loopControl(unix.LOOP_CTL_REMOVE, l.number)
	for errors.Is(err, unix.EBUSY) && time.Now().Before(deadline) {
		runtime.Gosched()
		err = loopControl(unix.LOOP_CTL_REMOVE, l.number)
	}
	must(t, err)
}
