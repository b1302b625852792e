package mount

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Supported tries out, without any effect, what this package needs: Linux 5.12
// or newer, the right to mount, and a /proc that shows this process. The error
// is ErrUnsupported and says what is missing.
func Supported() error {
	root, err := openTrusted("/", unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer release(root)
	for _, need := range []struct {
		what string
		try  func(*os.File) error
	}{
		{"openat2 (Linux 5.6)", tryOpenat2},
		{"statx with mount IDs (Linux 5.8)", tryStatx},
		{"open_tree and mount_setattr (Linux 5.12, CAP_SYS_ADMIN)", tryTree},
		{"move_mount (Linux 5.2)", tryMoveMount},
		{"/proc of this PID namespace", tryProc},
	} {
		if err := need.try(root); err != nil {
			return fmt.Errorf("%w: %s on kernel %s: %w", ErrUnsupported, need.what, kernelRelease(), err)
		}
	}
	return nil
}

func tryOpenat2(root *os.File) error {
	file, err := openBeneath(root, ".", unix.O_PATH, sameMount)
	if err != nil {
		return err
	}
	return file.Close()
}

func tryStatx(root *os.File) error {
	var st unix.Statx_t
	if err := unix.Statx(int(root.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &st); err != nil {
		return err
	}
	if st.Mask&unix.STATX_MNT_ID == 0 || st.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT == 0 {
		return errors.New("not filled in")
	}
	return nil
}

// tryTree works on a copy that is dropped again.
func tryTree(root *os.File) error {
	fd, err := unix.OpenTree(int(root.Fd()), "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
	if err != nil {
		return err
	}
	copied := os.NewFile(uintptr(fd), "/")
	defer release(copied)
	return unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &unix.MountAttr{
		Attr_set:    unix.MOUNT_ATTR_RDONLY,
		Propagation: unix.MS_PRIVATE,
	})
}

// tryMoveMount asks for something impossible: a kernel without the call says so
// before it looks at the arguments.
func tryMoveMount(*os.File) error {
	err := unix.MoveMount(-1, "", -1, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		return err
	}
	return nil
}

func kernelRelease() string {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(name.Release[:])
}

func tryProc(*os.File) error {
	_, err := mountsBelow("/")
	return err
}
