package image

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/albertofaria/pav/hack/image/archive"
	"github.com/albertofaria/pav/test/cluster/internal/debian"
)

// ExamplesName is the name of the image that is built from examples/Containerfile.
const ExamplesName = "docker.io/albertofaria/pav-example-tools:0.2.0"

// ExamplesPackages are the Debian packages that examples/Containerfile installs.
var ExamplesPackages = []string{
	"ca-certificates", "cryptsetup-bin", "e2fsprogs", "fuse", "gocryptfs", "mount", "s3cmd", "s3fs", "util-linux", "xfsprogs",
}

// base are packages of every Debian image that the examples use.
var base = []string{"coreutils", "dash", "findutils", "grep"}

// s3cmdNeeds are the packages that s3cmd depends on.
var s3cmdNeeds = []string{
	"libpython3.11-minimal", "libpython3.11-stdlib", "python3-dateutil", "python3-magic", "python3-minimal", "python3-six", "python3.11-minimal",
}

// Examples returns an image with the packages of examples/Containerfile: their programs, their configuration, and the
// shared libraries that they need. The files come from the machine. Missing packages are installed on the machine
// first.
func Examples(ctx context.Context, progress io.Writer) (archive.Image, error) {
	return fromPackages(ctx, progress, slices.Concat(base, s3cmdNeeds, ExamplesPackages))
}

// fromPackages returns an image of Debian packages, as described for Examples.
func fromPackages(ctx context.Context, progress io.Writer, packages []string) (archive.Image, error) {
	files, err := filesOf(ctx, progress, packages)
	if err != nil {
		return archive.Image{}, err
	}
	entries := []archive.Entry{
		{Path: "tmp", Mode: fs.ModeDir | fs.ModeSticky | 0o777},
		{Path: "etc", Mode: directoryMode},
		{Path: "etc/passwd", Mode: 0o644, Content: "root:x:0:0:root:/root:/bin/sh\n"},
		{Path: "etc/group", Mode: 0o644, Content: "root:x:0:\n"},
	}
	return archive.Image{
		Entries: withFiles(entries, files),
		Config:  v1.Config{Cmd: []string{"sh"}, Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}},
	}, nil
}

// filesOf returns the needed files of packages, and the shared libraries that they need. It installs missing packages.
func filesOf(ctx context.Context, progress io.Writer, packages []string) ([]string, error) {
	if err := debian.EnsurePackages(ctx, progress, packages); err != nil {
		return nil, err
	}
	var files []string
	for _, name := range packages {
		listed, err := debian.Files(ctx, name)
		if err != nil {
			return nil, err
		}
		files = append(files, needed(listed)...)
	}
	libraries, err := librariesOf(ctx, files)
	if err != nil {
		return nil, err
	}
	return append(files, libraries...), nil
}

// needed returns the files of a package that are programs, configuration or Python modules.
func needed(files []string) []string {
	var found []string
	for _, file := range files {
		for _, directory := range []string{"/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/", "/etc/", "/usr/lib/python3"} {
			info, err := os.Stat(file)
			if strings.HasPrefix(file, directory) && err == nil && info.Mode().IsRegular() {
				found = append(found, file)
			}
		}
	}
	return found
}

// librariesOf returns the shared libraries that programs need. It ignores other files, such as scripts.
func librariesOf(ctx context.Context, files []string) ([]string, error) {
	var found []string
	for _, file := range files {
		isProgram, err := isELF(file)
		if err != nil {
			return nil, err
		}
		if !isProgram {
			continue
		}
		// ldd fails for a static program, so its error is ignored.
		listed, err := exec.CommandContext(ctx, "ldd", file).Output()
		if ctx.Err() != nil {
			return nil, fmt.Errorf("listing the libraries of %s: %w", file, err)
		}
		found = append(found, paths(string(listed))...)
	}
	return found, nil
}

func isELF(path string) (bool, error) {
	file, err := os.Open(path)
	if err != nil {
		return false, fmt.Errorf("looking at a program: %w", err)
	}
	defer func() { _ = file.Close() }() // the file was only read
	magic := make([]byte, 4)
	_, err = io.ReadFull(file, magic)
	return err == nil && string(magic) == "\x7fELF", nil
}
