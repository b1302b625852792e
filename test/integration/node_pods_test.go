package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/test/kubelet"
)

// deviceContent is what the loop device has at its beginning.
const deviceContent = "the content of the loop device"

// workers returns the script of pods that do what the volume's handle begins with: "made" has a directory
// that the pod makes before it ends; "served" is mounted by a pod that goes on until it is stopped; and
// "block" is a device. Unstaging fails unless /pav is as the staging pod left it.
func workers(tb testing.TB, device *devices) kubelet.Script {
	tb.Helper()
	return func(ctx context.Context, pod *kubelet.Pod) int32 {
		code, err := int32(1), fmt.Errorf("workflow %q of %q", pod.Workflow(), pod.Handle())
		switch pod.Workflow() {
		case pavv1.WorkflowStaging:
			code, err = stageByHand(ctx, pod, device)
		case pavv1.WorkflowUnstaging:
			code, err = unstageByHand(pod)
		case pavv1.WorkflowNodeExpansion:
			code, err = 0, expandByHand(pod)
		}
		if err != nil {
			tb.Errorf("pod %s of volume %q: %v", pod.Name, pod.Handle(), err)
		}
		return code
	}
}

// mark is what staging pods leave in /pav for the unstaging pod.
const mark = "staged"

func stageByHand(ctx context.Context, pod *kubelet.Pod, device *devices) (int32, error) {
	volume, handle := filepath.Join(pod.Pav, "volume"), pod.Handle()
	if err := os.WriteFile(filepath.Join(pod.Pav, mark), nil, 0o600); err != nil {
		return 1, err
	}
	if strings.HasPrefix(handle, "block") {
		number := device.writable
		if strings.EqualFold(pod.Annotations[readOnlyAnnotation], "true") {
			number = device.readOnly
		}
		return 0, unix.Mknod(volume, unix.S_IFBLK|0o600, number)
	}
	if err := os.Mkdir(volume, 0o755); err != nil {
		return 1, err
	}
	if strings.HasPrefix(handle, "served") {
		if err := unix.Mount("tmpfs", volume, "tmpfs", 0, "mode=755"); err != nil {
			return 1, err
		}
	}
	if err := os.WriteFile(filepath.Join(volume, "name"), []byte(handle), 0o600); err != nil {
		return 1, err
	}
	if !strings.HasPrefix(handle, "served") {
		return 0, nil
	}
	if err := os.WriteFile(filepath.Join(pod.Pav, "ready"), nil, 0o600); err != nil {
		return 1, err
	}
	<-ctx.Done()
	return 143, nil // as a container that SIGTERM ends
}

// expandByHand fails unless the volume is there as the staging pod made it.
func expandByHand(pod *kubelet.Pod) error {
	if strings.HasPrefix(pod.Handle(), "block") {
		_, err := os.Lstat(filepath.Join(pod.Pav, "volume"))
		return err
	}
	name, err := os.ReadFile(filepath.Join(pod.Pav, "volume", "name"))
	if err == nil && string(name) != pod.Handle() {
		err = fmt.Errorf("the volume is %q", name)
	}
	return err
}

func unstageByHand(pod *kubelet.Pod) (int32, error) {
	if err := os.Remove(filepath.Join(pod.Pav, mark)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return 1, err
	}
	volume := filepath.Join(pod.Pav, "volume")
	if _, err := os.Lstat(volume); err != nil {
		return 1, fmt.Errorf("what the staging pod left: %w", err)
	}
	if strings.HasPrefix(pod.Handle(), "served") {
		if err := unix.Unmount(volume, 0); err != nil {
			return 1, err
		}
	}
	return 0, os.RemoveAll(volume)
}

// workerTemplate is the template of all pods. What the pods are to do, their scripts know.
const workerTemplate = `{
	"metadata": {"annotations": {"` + readOnlyAnnotation + `": "{{ readOnly }}"}},
	"spec": {"containers": [{"name": "main", "image": "none", "securityContext": {"privileged": true}}]}
}`

// readOnlyAnnotation reports whether the volume is staged for reading only.
const readOnlyAnnotation = "read-only"

// devices are the numbers of two loop devices of 4 MiB with the same content, one of which cannot be written to.
type devices struct{ writable, readOnly int }

// newDevices returns loop devices that are there until the test ends.
func newDevices(t *testing.T) *devices {
	t.Helper()
	backing := filepath.Join(t.TempDir(), "backing")
	if err := os.WriteFile(backing, append([]byte(deviceContent), make([]byte, 4<<20-len(deviceContent))...), 0o600); err != nil {
		t.Fatal(err)
	}
	return &devices{writable: newDevice(t, backing, os.O_RDWR), readOnly: newDevice(t, backing, os.O_RDONLY)}
}

func newDevice(t *testing.T, backing string, access int) int {
	t.Helper()
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = control.Close() }()
	file, err := os.OpenFile(backing, access, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	for range 20 { // Someone else may be faster.
		free, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			t.Fatal("looking for a free loop device:", err)
		}
		if attach(t, file, free, access) {
			return int(unix.Mkdev(7, uint32(free))) //nolint:gosec // They are small numbers.
		}
	}
	t.Fatal("there is no free loop device")
	return 0
}

// attach reports whether the loop device was still free. The kernel makes it read-only where it cannot write to the file.
func attach(t *testing.T, file *os.File, number, access int) bool {
	t.Helper()
	device, err := os.OpenFile(fmt.Sprintf("/dev/loop%d", number), access, 0)
	if err != nil {
		return false
	}
	if err := unix.IoctlSetInt(int(device.Fd()), unix.LOOP_SET_FD, int(file.Fd())); err != nil {
		_ = device.Close()
		return false
	}
	t.Cleanup(func() {
		if err := unix.IoctlSetInt(int(device.Fd()), unix.LOOP_CLR_FD, 0); err != nil {
			t.Error("detaching the loop device:", err)
		}
		_ = device.Close()
	})
	return true
}
