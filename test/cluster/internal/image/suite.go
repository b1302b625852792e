package image

import (
	"context"
	"io"

	"github.com/albertofaria/pav/hack/image/archive"
)

// Names of the images that Kubernetes' storage tests use, as given in the end-to-end tests of this Kubernetes version.
const (
	AgnhostName = "registry.k8s.io/e2e-test-images/agnhost:2.63.0"
	// GNUName is the name of an image that the tests use for GNU dd.
	GNUName = "registry.k8s.io/e2e-test-images/glibc-dns-testing:2.0.0"
)

// SuiteShellNames are the names of images that the tests use only for a shell.
var SuiteShellNames = []string{
	"registry.k8s.io/e2e-test-images/busybox:1.37.0-1",
	"registry.k8s.io/e2e-test-images/nginx:1.15-4",
}

// Agnhost returns the shell image plus the program agnhost. Containers run "agnhost pause" by default.
func Agnhost(ctx context.Context, program string) (archive.Image, error) {
	image, err := Shell(ctx)
	if err != nil {
		return archive.Image{}, err
	}
	image.Entries = append(image.Entries, archive.Entry{Path: "agnhost", Mode: 0o755, Source: program})
	image.Config.Entrypoint, image.Config.Cmd = []string{"/agnhost"}, []string{"pause"}
	return image, nil
}

// GNU returns an image of Debian's standard commands.
func GNU(ctx context.Context, progress io.Writer) (archive.Image, error) {
	return fromPackages(ctx, progress, []string{"coreutils", "dash", "diffutils", "findutils", "grep", "mount", "sed", "util-linux"})
}
