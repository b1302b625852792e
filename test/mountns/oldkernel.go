package mountns

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// onOldKernel is the environment variable that is set if the test binary runs as on an old kernel.
const onOldKernel = "PAV_TEST_OLD_KERNEL"

// OnOldKernel runs the tests of this binary again, without the system calls that Linux has only since 6.8. It leaves
// out the tests that match skip, of which the calling test must be one.
func OnOldKernel(t *testing.T, skip string) {
	t.Helper()
	again := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.skip", skip)
	again.Env = append(os.Environ(), onOldKernel+"=1")
	if out, err := again.CombinedOutput(); err != nil {
		t.Errorf("on an old kernel: %v\n%s", err, out)
	}
}

// IsOldKernel reports whether this is the process of OnOldKernel.
func IsOldKernel() bool { return os.Getenv(onOldKernel) != "" }

// Restrict is for TestMain. In the process of OnOldKernel, it makes statmount and listmount fail as on a kernel that
// does not have them.
func Restrict() error {
	if !IsOldKernel() {
		return nil
	}
	const number = 0 // of the system call, in the kernel's struct seccomp_data
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: number},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 1, K: unix.SYS_STATMOUNT},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: unix.SYS_LISTMOUNT},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	// All threads get the filter.
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return fmt.Errorf("taking system calls away: %w", errno)
	}
	return nil
}
