package mount

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Cover is Bind for a target whose users are to get another volume while they
// run: if anything else is mounted at target, be it a file system that no longer
// answers, the bind is mounted on top of it. Copies of target in other mount
// namespaces that receive its mounts (HostToContainer) get the new tree, with
// the same options, on top of theirs. Files that are open stay in the old one.
//
// A container that was started after an earlier Cover has a copy of the layer of
// that time, and gets only what is mounted on it. So layers stay, but no more than
// maxLayers: when those are reached, all but the lowest are taken away first, in
// the copies too, and containers that were started on one of them have to be
// started once more.
//
// If the uppermost mount at target is such a bind of source already, nothing is
// done. Unmount takes away all layers.
func Cover(source, target string, options BindOptions) error {
	from, wanted, err := openMountable(source)
	if err != nil {
		return err
	}
	defer release(from)
	to, at, err := openCovered(target, wanted)
	if err != nil {
		return err
	}
	defer release(to)
	if at.mountRoot {
		if err := mustBeBound(wanted, at, target, options); !errors.Is(err, ErrOccupied) {
			return err
		}
	}
	bare, err := uncover(target, at)
	if err != nil {
		return err
	}
	if bare != nil {
		defer release(bare)
		to = bare
	}
	return bindTree(from, to, wanted, options)
}

// maxLayers keeps a volume that is made again for days from filling the mount table.
const maxLayers = 16

// uncover takes away all mounts at path but the lowest where they are too many,
// and returns what is to be mounted on then; otherwise nil. They are detached,
// for they may be dead, or in use.
func uncover(path string, uppermost node) (*os.File, error) {
	layers, err := layersBelow(path, uppermost)
	if err != nil || layers+1 < maxLayers {
		return nil, err
	}
	where, err := locate(path)
	if err != nil {
		return nil, err
	}
	defer where.close()
	for range layers {
		if err := unix.Unmount(procPath(where.parent)+"/"+where.base, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
			return nil, fmt.Errorf("detaching a covered layer of %q: %w", path, err)
		}
		Traced("umount2")
	}
	return openTrusted(path, unix.O_PATH|unix.O_NOFOLLOW)
}

// layersBelow counts the mounts at path on which the uppermost one lies. Others may be listed for the
// same path that do not, where its directory is a copy of another.
func layersBelow(path string, uppermost node) (int, error) {
	mounts, err := At(path)
	if err != nil {
		return 0, err
	}
	parents := make(map[int]int, len(mounts))
	for _, mount := range mounts {
		parents[mount.ID] = mount.Parent
	}
	count := 0
	for id := parents[uppermost.mountID]; parents[id] != 0 && count < len(mounts); id = parents[id] {
		count++
	}
	return count, nil
}

// openCovered is openTarget for a target on which a file system may be mounted
// that refuses to be looked at: some do so for good after an error of their disk.
func openCovered(path string, wanted node) (*os.File, node, error) {
	to, at, err := openTarget(path, wanted)
	if err == nil || errors.Is(err, ErrMismatch) || errors.Is(err, ErrEscapes) {
		return to, at, err
	}
	if mounted, tableErr := IsMountPoint(path); tableErr != nil || !mounted {
		return nil, node{}, err
	}
	to, err = openTrusted(path, unix.O_PATH|unix.O_NOFOLLOW)
	return to, node{}, err
}
