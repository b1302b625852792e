package mount

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Cover is Bind for a target whose users are to get another volume while they
// run: if anything else is mounted at target, be it a file system that no longer
// answers, the bind is mounted on top of it. Copies of target in other mount
// namespaces that receive its mounts (HostToContainer) get the new tree, with
// the same options, on top of theirs. Files that are open stay in the old one.
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
	return bindTree(from, to, wanted, options)
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
