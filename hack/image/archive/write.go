package archive

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// nameAnnotation is the annotation from which containerd takes the name of an imported image, without any change.
const nameAnnotation = "io.containerd.image.name"

// Write writes an archive that contains an image, or an index of images, under each of the names.
func Write(output string, content mutate.Appendable, names []string) error {
	if len(names) == 0 {
		return errors.New("an image needs a name")
	}
	named := make([]mutate.IndexAddendum, 0, len(names))
	for _, name := range names {
		named = append(named, mutate.IndexAddendum{
			Add: content, Descriptor: v1.Descriptor{Annotations: map[string]string{nameAnnotation: FullName(name)}},
		})
	}
	directory, err := os.MkdirTemp("", "pav-image-")
	if err != nil {
		return fmt.Errorf("making a temporary directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(directory) }() // its content has been packed, or is not needed after an error
	if _, err := layout.Write(directory, mutate.AppendManifests(empty.Index, named...)); err != nil {
		return fmt.Errorf("writing the image %q: %w", names, err)
	}
	return pack(directory, output)
}

// pack packs a directory into one archive file.
func pack(directory, output string) error {
	entries, err := content(directory)
	if err != nil {
		return fmt.Errorf("listing the files of an image: %w", err)
	}
	temporary := output + ".partial"
	file, err := os.Create(temporary)
	if err != nil {
		return fmt.Errorf("writing an image: %w", err)
	}
	// Both matter only after an error. After success, the file is closed and has its final name.
	defer func() { _ = os.Remove(temporary) }()
	defer func() { _ = file.Close() }()
	if err := errors.Join(writeEntries(file, entries), file.Close()); err != nil {
		return fmt.Errorf("writing an image: %w", err)
	}
	if err := os.Rename(temporary, filepath.Clean(output)); err != nil {
		return fmt.Errorf("writing an image: %w", err)
	}
	return nil
}

// content returns the files and directories below a directory, in the order of their names. Their modes do not depend
// on the user's umask.
func content(directory string) ([]Entry, error) {
	var entries []Entry
	err := filepath.WalkDir(directory, func(path string, found fs.DirEntry, err error) error {
		if err != nil || path == directory {
			return err
		}
		name, err := filepath.Rel(directory, path)
		if found.IsDir() {
			entries = append(entries, Entry{Path: name, Mode: fs.ModeDir | 0o755})
		} else {
			entries = append(entries, Entry{Path: name, Mode: 0o644, Source: path})
		}
		return err
	})
	return entries, err
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
