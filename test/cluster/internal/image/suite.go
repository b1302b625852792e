package image

import (
	"context"
	"io"
)

// The names that Kubernetes' end-to-end tests of this version give to the images that its storage tests use.
const (
	AgnhostName = "registry.k8s.io/e2e-test-images/agnhost:2.63.0"
	// GNUName is that of an image that is used for its GNU dd.
	GNUName = "registry.k8s.io/e2e-test-images/glibc-dns-testing:2.0.0"
)

// SuiteShellNames are those of the images that are used for nothing but a shell.
var SuiteShellNames = []string{
	"registry.k8s.io/e2e-test-images/busybox:1.37.0-1",
	"registry.k8s.io/e2e-test-images/nginx:1.15-4",
}

// Agnhost is the shell image with the program agnhost, which its containers run if they say nothing.
func Agnhost(ctx context.Context, program string) (Image, error) {
	image, err := Shell(ctx)
	if err != nil {
		return Image{}, err
	}
	image.Entries = append(image.Entries, Entry{Path: "agnhost", Mode: 0o755, Source: program})
	image.Config.Entrypoint, image.Config.Cmd = []string{"/agnhost"}, []string{"pause"}
	return image, nil
}

// GNU is an image of Debian's ordinary commands.
func GNU(ctx context.Context, progress io.Writer) (Image, error) {
	return fromPackages(ctx, progress, []string{"coreutils", "dash", "diffutils", "findutils", "grep", "mount", "sed", "util-linux"})
}
