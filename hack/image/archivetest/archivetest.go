// Package archivetest reads archives and images in tests. It makes none.
package archivetest

import (
	"archive/tar"
	"errors"
	"io"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// File is a file, symbolic link or directory of an archive.
type File struct {
	tar.Header
	Content string
}

// Read returns the files of a tar archive by name.
func Read(t *testing.T, r io.Reader) map[string]File {
	t.Helper()
	files := map[string]File{}
	archive := tar.NewReader(r)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		if _, found := files[header.Name]; found {
			t.Errorf("the archive has %q twice", header.Name)
		}
		files[header.Name] = File{Header: *header, Content: string(content)}
	}
}

// Layer returns the files of an image that has one layer.
func Layer(t *testing.T, image v1.Image) map[string]File {
	t.Helper()
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	if len(layers) != 1 {
		t.Fatalf("the image has %d layers, want 1", len(layers))
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = content.Close() }() // it was only read
	return Read(t, content)
}
