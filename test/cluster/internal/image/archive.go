package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// nameAnnotation is the annotation from which containerd takes the name of an imported image, without any change.
const nameAnnotation = "io.containerd.image.name"

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

// Image describes the files and the configuration of an image.
type Image struct {
	Entries []Entry
	Config  v1.Config
}

// Write writes an archive that contains the image under each of the names.
func (i Image) Write(output string, names []string) error {
	if len(names) == 0 {
		return errors.New("an image needs a name")
	}
	built, err := i.build()
	if err != nil {
		return err
	}
	directory, err := os.MkdirTemp("", "pav-cluster-image-")
	if err != nil {
		return fmt.Errorf("making a temporary directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(directory) }() // its content has been packed, or is not needed after an error
	index, err := layout.Write(directory, empty.Index)
	if err != nil {
		return fmt.Errorf("starting an image layout: %w", err)
	}
	for _, name := range names {
		annotations := map[string]string{nameAnnotation: FullName(name)}
		if err := index.AppendImage(built, layout.WithAnnotations(annotations)); err != nil {
			return fmt.Errorf("writing the image %q: %w", name, err)
		}
	}
	return pack(directory, output)
}

func (i Image) build() (v1.Image, error) {
	content, err := layer(i.Entries)
	if err != nil {
		return nil, err
	}
	built, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, fmt.Errorf("making a layer: %w", err)
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.AppendLayers(base, built)
	if err != nil {
		return nil, fmt.Errorf("adding a layer: %w", err)
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading an image's configuration: %w", err)
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Config = "linux", runtime.GOARCH, i.Config
	image, err = mutate.ConfigFile(image, file)
	if err != nil {
		return nil, fmt.Errorf("setting an image's configuration: %w", err)
	}
	return image, nil
}

// layer returns the tar archive of an image's files. It contains no times, so equal files give equal images.
func layer(entries []Entry) ([]byte, error) {
	var content bytes.Buffer
	archive := tar.NewWriter(&content)
	for _, entry := range entries {
		if err := add(archive, entry); err != nil {
			return nil, fmt.Errorf("adding %q to an image: %w", entry.Path, err)
		}
	}
	if err := archive.Close(); err != nil {
		return nil, fmt.Errorf("finishing an image's files: %w", err)
	}
	return content.Bytes(), nil
}

func add(archive *tar.Writer, entry Entry) error {
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

// pack packs the directory of an image layout into one archive file.
func pack(directory, output string) error {
	temporary := output + ".partial"
	file, err := os.Create(temporary)
	if err != nil {
		return fmt.Errorf("writing an image: %w", err)
	}
	// Both matter only after an error. After success, the file is closed and has its final name.
	defer func() { _ = os.Remove(temporary) }()
	defer func() { _ = file.Close() }()
	archive := tar.NewWriter(file)
	if err := archive.AddFS(os.DirFS(directory)); err != nil {
		return fmt.Errorf("writing an image: %w", err)
	}
	if err := errors.Join(archive.Close(), file.Close()); err != nil {
		return fmt.Errorf("writing an image: %w", err)
	}
	if err := os.Rename(temporary, filepath.Clean(output)); err != nil {
		return fmt.Errorf("writing an image: %w", err)
	}
	return nil
}

// FullName completes an image name in the same way as container runtimes do. kubelet asks for the completed name.
func FullName(name string) string {
	first, rest, nested := strings.Cut(name, "/")
	switch {
	case !nested:
		name = "docker.io/library/" + name
	case !strings.ContainsAny(first, ".:") && first != "localhost":
		name = "docker.io/" + name
	case first == "docker.io" && !strings.Contains(rest, "/"):
		name = "docker.io/library/" + rest
	}
	if last := name[strings.LastIndex(name, "/")+1:]; !strings.ContainsAny(last, ":@") {
		name += ":latest"
	}
	return name
}
