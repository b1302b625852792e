package pavdir

import (
	"fmt"
	"os"

	"github.com/albertofaria/pav/internal/mount"
)

// credentialsName is the directory in the /pav of a grant pod in which it leaves credentials.
const credentialsName = "credentials"

// secretFiles is how many files a grant pod may leave; package credentials has the same limit.
const secretFiles = 64

// ownCredentials is the /pav/credentials of a grant pod. It has room for 128 KiB, and for the pages that files do not fill.
var ownCredentials = mount.Tmpfs{
	Size: 128<<10 + secretFiles*int64(os.Getpagesize()), Inodes: 4 * secretFiles, Mode: 0o777, NoExec: true, NoSwap: true,
}

// createCredentials creates /pav/credentials, and a mount of it, if they do not exist. It must be called before /pav is mounted
// for the pod: then no container ever sees the directory below that mount.
func (p directory) createCredentials() error {
	if err := mount.CreateDir(p.pav(), credentialsName, ownCredentials.Mode); err != nil {
		return err
	}
	return ownCredentials.Mount(p.credentials())
}

// openCredentials opens /pav/credentials if only the mount that the pod has got is there. A pod with rights on the node can have
// unmounted it, or can have mounted something over it, which is not opened, as it may never answer.
func (p directory) openCredentials(pav *mount.Dir) (*mount.Dir, error) {
	mounts, err := mount.At(p.credentials())
	switch {
	case err != nil:
		return nil, err
	case len(mounts) == 0:
		return nil, fmt.Errorf("opening %q: %w", p.credentials(), mount.ErrNotMounted)
	case len(mounts) > 1 || !isOwnCredentials(mounts[0]):
		return nil, fmt.Errorf("opening %q: %w: something is mounted over it", p.credentials(), mount.ErrEscapes)
	}
	return pav.OpenMount(credentialsName, mounts[0])
}

// isOwnCredentials reports whether a mount may be one that createCredentials made.
func isOwnCredentials(m mount.Mount) bool {
	return m.Type == "tmpfs" && m.Root == "/" && m.Options.NoSuid && m.Options.NoDev && m.Options.NoExec
}
