package mount

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// BindOptions restrict what can be done through a bind, in all mounts of its
// tree. What the source forbids stays forbidden. NoDev, also that of the source,
// does not count for a block device, and ReadOnly does not keep anyone from
// writing to one: see Volume.Device.
type BindOptions struct {
	ReadOnly bool
	NoSuid   bool
	NoDev    bool
	NoExec   bool
	NoAtime  bool
}

// attributes gives the options as the kernel's mount attributes.
func (o BindOptions) attributes() uint64 {
	var set uint64
	for _, option := range []struct {
		on        bool
		attribute uint64
	}{
		{o.ReadOnly, unix.MOUNT_ATTR_RDONLY},
		{o.NoSuid, unix.MOUNT_ATTR_NOSUID},
		{o.NoDev, unix.MOUNT_ATTR_NODEV},
		{o.NoExec, unix.MOUNT_ATTR_NOEXEC},
		{o.NoAtime, unix.MOUNT_ATTR_NOATIME},
	} {
		if option.on {
			set |= option.attribute
		}
	}
	return set
}

// and gives the options that result from both.
func (o BindOptions) and(other BindOptions) BindOptions {
	return BindOptions{
		ReadOnly: o.ReadOnly || other.ReadOnly,
		NoSuid:   o.NoSuid || other.NoSuid,
		NoDev:    o.NoDev || other.NoDev,
		NoExec:   o.NoExec || other.NoExec,
		NoAtime:  o.NoAtime || other.NoAtime,
	}
}

// on gives what of the options holds on a file: a device that may not be opened
// would be of no use.
func (o BindOptions) on(file node) BindOptions {
	if file.kind == unix.S_IFBLK {
		o.NoDev = false
	}
	return o
}

// copyFor copies a mount tree for a mount with these options.
func copyFor(from *os.File, wanted node, options BindOptions) (*tree, error) {
	copied, err := cloneTree(from)
	if err != nil {
		return nil, err
	}
	if wanted.kind == unix.S_IFBLK {
		err = copied.allowDevices()
	}
	if err == nil {
		err = copied.restrict(options.on(wanted))
	}
	if err != nil {
		copied.close()
		return nil, err
	}
	return copied, nil
}

// Bind mounts source, with all mounts below it, at target. The options hold from
// the first moment that the bind can be seen.
//
// What is mounted or unmounted at source later reaches target, and what happens
// at target never reaches source or its other binds. So unpublish all targets
// before the source is unmounted, or they lose what is mounted below it. Only a
// read-only bind does not follow: later mounts would bring their own, writable,
// options along.
//
// If source is bound at target with these options already, nothing is done; if
// anything else is mounted there, the error is ErrOccupied.
func Bind(source, target string, options BindOptions) error {
	from, wanted, err := openMountable(source)
	if err != nil {
		return err
	}
	defer release(from)
	to, at, err := openTarget(target, wanted)
	if err != nil {
		return err
	}
	defer release(to)
	if at.mountRoot {
		return mustBeBound(wanted, at, target, options)
	}
	return bindTree(from, to, wanted, options)
}

// bindTree mounts what Bind describes.
func bindTree(from, to *os.File, wanted node, options BindOptions) error {
	copied, err := copyFor(from, wanted, options)
	if err != nil {
		return err
	}
	defer copied.close()
	propagate := copied.follow
	if options.ReadOnly {
		propagate = copied.leaveGroups
	}
	if err := propagate(); err != nil {
		return err
	}
	return copied.attach(to)
}

// mustBeBound reports whether target is what Bind would have made of it.
func mustBeBound(wanted, at node, target string, options BindOptions) error {
	if err := mustBeSame(wanted, at, target); err != nil {
		return err
	}
	source, err := wanted.mount()
	if err != nil {
		return err
	}
	bound, err := at.mount()
	if err != nil {
		return err
	}
	if bound.Options != options.and(source.Options).on(wanted) {
		return fmt.Errorf("binding at %q: %w, with other options", target, ErrOccupied)
	}
	return nil
}

// SelfBind makes a directory a mount of its own, in a peer group of its own. If
// it is a mount point already, only what is missing of that is made up for.
func SelfBind(path string) error {
	dir, at, err := openMountable(path)
	if err != nil {
		return err
	}
	defer release(dir)
	if at.mountRoot {
		found, err := at.mount()
		if err != nil || found.PeerGroup != 0 {
			return err
		}
		return setPropagation(dir, unix.MS_SHARED)
	}
	copied, err := cloneTree(dir)
	if err != nil {
		return err
	}
	defer copied.close()
	if err := copied.leaveGroups(); err != nil {
		return err
	}
	return copied.attach(dir)
}

// BindShared mounts source, with all mounts below it, at target and keeps the
// two in one peer group: what is mounted below one appears below the other. If
// that is so already, nothing is done; if anything else is mounted at target,
// the error is ErrOccupied. The source must be a shared mount, as SelfBind makes
// it: ErrNotMounted, ErrNotShared.
func BindShared(source, target string) error {
	from, wanted, err := openMountable(source)
	if err != nil {
		return err
	}
	defer release(from)
	if !wanted.mountRoot {
		return fmt.Errorf("binding %q: %w", source, ErrNotMounted)
	}
	shared, err := wanted.mount()
	if err != nil {
		return err
	}
	if shared.PeerGroup == 0 {
		return fmt.Errorf("binding %q: %w", source, ErrNotShared)
	}
	to, at, err := openTarget(target, wanted)
	if err != nil {
		return err
	}
	defer release(to)
	if at.mountRoot {
		return mustBePeer(wanted, at, shared.PeerGroup, target)
	}
	copied, err := cloneTree(from)
	if err != nil {
		return err
	}
	defer copied.close()
	return copied.attach(to)
}

// mustBePeer reports whether target is what BindShared would have made of it.
func mustBePeer(wanted, at node, group int, target string) error {
	if err := mustBeSame(wanted, at, target); err != nil {
		return err
	}
	bound, err := at.mount()
	if err != nil {
		return err
	}
	if bound.PeerGroup != group {
		return fmt.Errorf("binding at %q: %w, in another peer group", target, ErrOccupied)
	}
	return nil
}

// Separate takes the mount at path, with all mounts below it, out of its peer
// groups and puts each into a new one of its own. Everything that it was in a
// group with stops hearing from it, live pods included. Doing it again does no
// harm.
//
// Separate cannot reach a mount that another was mounted over, and would leave
// it in its group: then nothing is done and the error is ErrStacked. If path is
// no mount point, the error is ErrNotMounted.
func Separate(path string) error {
	file, found, err := openMountable(path)
	if err != nil {
		return err
	}
	defer release(file)
	if !found.mountRoot {
		return fmt.Errorf("separating %q: %w", path, ErrNotMounted)
	}
	here, err := mountsAt(path, found.unique)
	if err != nil {
		return err
	}
	if len(here) > 1 {
		return fmt.Errorf("separating %q: %w", path, ErrStacked)
	}
	return setPropagation(file, unix.MS_PRIVATE, unix.MS_SHARED)
}

// Isolate takes the mount at path, with all mounts below it, out of its peer
// groups and puts them into none: unmounting them then takes nothing away from
// anything else. Copies in other namespaces stay, so Separate the source instead
// where path is its last copy. If path is no mount point, the error is
// ErrNotMounted.
func Isolate(path string) error {
	file, at, err := openMountable(path)
	if err != nil {
		return err
	}
	defer release(file)
	if !at.mountRoot {
		return fmt.Errorf("isolating %q: %w", path, ErrNotMounted)
	}
	return setPropagation(file, unix.MS_PRIVATE)
}
