package archive

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Entry is a file, symbolic link or directory of an image.
type Entry struct {
	Path string
	Mode fs.FileMode
	// Source is the path of the content on the machine. If Source is empty, Content is the content.
	Source  string
	Content string
	// Link is the target of a symbolic link.
	Link string
	// Owner is the user ID and the group ID.
	Owner int
}

// Image describes the files and the configuration of a Linux image. It has one layer.
type Image struct {
	Entries []Entry
	Config  v1.Config
	// Architecture is, if it is empty, that of this program.
	Architecture string
	// Created may be zero.
	Created time.Time
}

// Build returns the image.
func (i Image) Build() (v1.Image, error) {
	var content bytes.Buffer
	if err := writeEntries(&content, i.Entries); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
	if err != nil {
		return nil, fmt.Errorf("making a layer: %w", err)
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.AppendLayers(base, layer)
	if err != nil {
		return nil, fmt.Errorf("adding a layer: %w", err)
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading an image's configuration: %w", err)
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Config = "linux", i.Architecture, i.Config
	if i.Architecture == "" {
		file.Architecture = runtime.GOARCH
	}
	file.Created = v1.Time{Time: i.Created.UTC()}
	image, err = mutate.ConfigFile(image, file)
	if err != nil {
		return nil, fmt.Errorf("setting an image's configuration: %w", err)
	}
	return image, nil
}

// Write writes an archive that contains the image under each of the names.
func (i Image) Write(output string, names []string) error {
	built, err := i.Build()
	if err != nil {
		return err
	}
	return Write(output, built, names)
}

// writeEntries writes a tar archive, without times.
func writeEntries(w io.Writer, entries []Entry) error {
	archive := tar.NewWriter(w)
	for _, entry := range entries {
		if err := writeEntry(archive, entry); err != nil {
			return fmt.Errorf("adding %q to an archive: %w", entry.Path, err)
		}
	}
	if err := archive.Close(); err != nil {
		return fmt.Errorf("finishing an archive: %w", err)
	}
	return nil
}

func writeEntry(archive *tar.Writer, entry Entry) error {
	header := &tar.Header{
		Name: strings.TrimPrefix(path.Clean(entry.Path), "/"), Uid: entry.Owner, Gid: entry.Owner,
		Mode: int64(entry.Mode.Perm()), Format: tar.FormatPAX,
	}
	if entry.Mode&fs.ModeSticky != 0 {
		header.Mode |= 0o1000
	}
	content := []byte(entry.Content)
	switch {
	case entry.Mode.IsDir():
		header.Typeflag, header.Name = tar.TypeDir, header.Name+"/"
	case entry.Link != "":
		header.Typeflag, header.Linkname, header.Mode = tar.TypeSymlink, entry.Link, 0o777
	case entry.Source != "":
		var err error
		if content, err = os.ReadFile(entry.Source); err != nil {
			return err
		}
	}
	header.Size = int64(len(content))
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err := archive.Write(content)
	return err
}
