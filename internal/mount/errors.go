package mount

import "errors"

// Errors that callers decide on with errors.Is. A missing file or directory is
// fs.ErrNotExist.
var (
	// ErrEscapes says that a name leads out of its directory, across a mount
	// that must not be crossed, or through a symbolic link that is not allowed.
	ErrEscapes = errors.New("leads out of its directory")
	// ErrInvalidName says that a name or path is not of the form asked for.
	ErrInvalidName = errors.New("invalid name")
	// ErrNotRegular says that a result, or the target of a device, is not a
	// regular file.
	ErrNotRegular = errors.New("not a regular file")
	// ErrNotDirectory says that what should hold results is not a directory.
	ErrNotDirectory = errors.New("not a directory")
	// ErrTooMany says that a directory has more entries than its limit.
	ErrTooMany = errors.New("too many entries")
	// ErrTooLarge says that a result is larger than its limit.
	ErrTooLarge = errors.New("too large")
	// ErrNotUTF8 says that a result is not valid UTF-8.
	ErrNotUTF8 = errors.New("not valid UTF-8")
	// ErrControlCharacter says that a result has a control character that does
	// not belong into a text.
	ErrControlCharacter = errors.New("has a control character")
	// ErrNotVolume says that a volume is neither a directory nor a block device.
	ErrNotVolume = errors.New("neither a directory nor a block device")

	// ErrOccupied says that something else is mounted where a mount should go,
	// or the same thing with other options.
	ErrOccupied = errors.New("something else is mounted there")
	// ErrMismatch says that a directory was to be mounted on a file, or the other
	// way round.
	ErrMismatch = errors.New("one is a directory and the other is not")
	// ErrNotMounted says that a path is not a mount point.
	ErrNotMounted = errors.New("not a mount point")
	// ErrNotShared says that the source of a shared bind is in no peer group.
	ErrNotShared = errors.New("mount is in no peer group")
	// ErrStacked says that several mounts lie on one another, of which only the
	// uppermost can be reached.
	ErrStacked = errors.New("several mounts are stacked")
	// ErrStillMounted says that mounts remain where all were to be unmounted.
	ErrStillMounted = errors.New("still mounted")
	// ErrBusyMount says that a tree holds a mount, and so is not deleted.
	ErrBusyMount = errors.New("a mount is in the way")

	// ErrHangs says that earlier work at the same path has not returned from the
	// kernel, and so was not begun once more.
	ErrHangs = errors.New("an earlier attempt still waits for an answer of what is mounted or to be mounted")
	// ErrDead says that what is mounted will never answer again, and that nothing
	// written to it reaches a storage any more.
	ErrDead = errors.New("dead for good")

	// ErrUnsupported says that the kernel, or /proc, lacks what this package
	// needs.
	ErrUnsupported = errors.New("not supported by this node")
	// ErrNotNamespace says that a file is not a mount namespace.
	ErrNotNamespace = errors.New("not a mount namespace")
	// ErrPanic says that a function panicked, or left its goroutine, in a
	// namespace.
	ErrPanic = errors.New("function did not return")
)
