package mount

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// uniqueID is the number of a mount that the kernel never gives to another one, as it does with the IDs of the
// mount table. It is zero if it is not known, as before Linux 6.8.
type uniqueID uint64

// uniqueIDOf returns the unique ID of the mount that an open file is on. It asks the file system for nothing.
func uniqueIDOf(file *os.File) uniqueID {
	const flags = unix.AT_EMPTY_PATH | unix.AT_STATX_DONT_SYNC | unix.AT_NO_AUTOMOUNT
	var st unix.Statx_t
	err := unix.Statx(int(file.Fd()), "", flags, unix.STATX_MNT_ID_UNIQUE, &st)
	if err != nil || st.Mask&unix.STATX_MNT_ID_UNIQUE == 0 {
		return 0
	}
	return uniqueID(st.Mnt_id)
}

// mountRequest is the kernel's struct mnt_id_req in its first version.
type mountRequest struct {
	size  uint32
	_     uint32
	mount uniqueID
	param uint64
}

// What statmount is asked for. Linux 6.8 has all of it.
const (
	statmountSuperblock = 1 << 0 // STATMOUNT_SB_BASIC
	statmountBasic      = 1 << 1 // STATMOUNT_MNT_BASIC
	statmountRoot       = 1 << 3 // STATMOUNT_MNT_ROOT
	statmountPoint      = 1 << 4 // STATMOUNT_MNT_POINT
	statmountType       = 1 << 5 // STATMOUNT_FS_TYPE

	statmountAll = statmountSuperblock | statmountBasic | statmountRoot | statmountPoint | statmountType
)

// mountStatus is the kernel's struct statmount. Strings are given by where they begin in text, and end with NUL.
type mountStatus struct {
	_            [2]uint32
	mask         uint64
	major, minor uint32
	_            [3]uint32
	fsType       uint32
	_, parent    uniqueID
	oldID        uint32
	oldParent    uint32
	attributes   uint64
	_            uint64
	peerGroup    uint64
	master       uint64
	_            uint64
	root, point  uint32
	_            [50]uint64
	text         [4096]byte
}

// description is what statmount says of a mount.
type description struct {
	Mount
	on uniqueID // the mount that it lies on
}

// describe describes a mount of the calling thread's namespace without reading the mount table. It returns false if
// the kernel does not know the mount, or cannot say all of it; then the table decides.
func (id uniqueID) describe() (description, bool) {
	if id == 0 {
		return description{}, false
	}
	request := mountRequest{size: uint32(unsafe.Sizeof(mountRequest{})), mount: id, param: statmountAll}
	var status mountStatus
	_, _, errno := unix.Syscall6(unix.SYS_STATMOUNT, uintptr(unsafe.Pointer(&request)), uintptr(unsafe.Pointer(&status)), unsafe.Sizeof(status), 0, 0, 0)
	if errno != 0 || status.mask&statmountAll != statmountAll {
		return description{}, false
	}
	found := description{on: status.parent, Mount: Mount{
		ID:        int(status.oldID),
		Parent:    int(status.oldParent),
		Point:     status.string(status.point),
		Root:      status.string(status.root),
		Type:      status.string(status.fsType),
		Major:     int(status.major),
		Minor:     int(status.minor),
		Options:   optionsOf(status.attributes),
		PeerGroup: int(status.peerGroup),
		Master:    int(status.master),
	}}
	// The table leaves out what the thread's root does not lead to.
	return found, found.Point != ""
}

func (s *mountStatus) string(start uint32) string {
	if int(start) >= len(s.text) {
		return ""
	}
	return unix.ByteSliceToString(s.text[start:])
}

// optionsOf is the inverse of BindOptions.attributes.
func optionsOf(attributes uint64) BindOptions {
	return BindOptions{
		ReadOnly: attributes&unix.MOUNT_ATTR_RDONLY != 0,
		NoSuid:   attributes&unix.MOUNT_ATTR_NOSUID != 0,
		NoDev:    attributes&unix.MOUNT_ATTR_NODEV != 0,
		NoExec:   attributes&unix.MOUNT_ATTR_NOEXEC != 0,
		NoAtime:  attributes&unix.MOUNT_ATTR__ATIME == unix.MOUNT_ATTR_NOATIME,
	}
}

// maxListed limits how many mounts are asked about one by one. With more, the mount table is as fast.
const maxListed = 64

// below lists the mounts that lie on a mount, and those on them. It returns false if there are more than maxListed, or
// if the kernel does not say.
func (id uniqueID) below() ([]uniqueID, bool) {
	request := mountRequest{size: uint32(unsafe.Sizeof(mountRequest{})), mount: id}
	list := make([]uniqueID, maxListed+1)
	count, _, errno := unix.Syscall6(unix.SYS_LISTMOUNT, uintptr(unsafe.Pointer(&request)), uintptr(unsafe.Pointer(&list[0])), uintptr(len(list)), 0, 0, 0)
	if errno != 0 || int(count) > maxListed {
		return nil, false
	}
	return list[:count], true
}
