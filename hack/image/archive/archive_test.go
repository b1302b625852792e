package archive

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/albertofaria/pav/hack/image/archivetest"
)

var made = Image{Entries: []Entry{
	{Path: "a", Mode: fs.ModeDir | fs.ModeSticky | 0o777},
	{Path: "/a/b", Mode: 0o640, Content: "x", Owner: 7},
	{Path: "c", Link: "a/b"},
}}

func TestImage_HasItsFiles(t *testing.T) {
	image, err := made.Build()
	if err != nil {
		t.Fatal(err)
	}
	type file struct {
		Mode          int64
		Owner         int
		Link, Content string
	}
	got := map[string]file{}
	for name, f := range archivetest.Layer(t, image) {
		got[name] = file{Mode: f.Mode, Owner: f.Uid, Link: f.Linkname, Content: f.Content}
		if f.ModTime.Unix() != 0 {
			t.Errorf("%s has the time %s", name, f.ModTime)
		}
	}
	want := map[string]file{"a/": {Mode: 0o1777}, "a/b": {Mode: 0o640, Owner: 7, Content: "x"}, "c": {Mode: 0o777, Link: "a/b"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files of the image (-want +got):\n%s", diff)
	}
}

func TestWrite_HasTheImageUnderAllNames(t *testing.T) {
	output := filepath.Join(t.TempDir(), "image.tar")
	if err := made.Write(output, []string{"localhost/pav:dev", "pav"}); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(output)
	if err != nil {
		t.Fatal(err)
	}
	files := archivetest.Read(t, bytes.NewReader(content))
	if files["oci-layout"].Content == "" {
		t.Error("the archive is no image layout")
	}
	var index v1.IndexManifest
	if err := json.Unmarshal([]byte(files["index.json"].Content), &index); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, manifest := range index.Manifests {
		names = append(names, manifest.Annotations[nameAnnotation])
		if _, found := files["blobs/sha256/"+manifest.Digest.Hex]; !found {
			t.Errorf("manifest %s is missing", manifest.Digest)
		}
	}
	if diff := cmp.Diff([]string{"localhost/pav:dev", "docker.io/library/pav:latest"}, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

// Neither times nor the user's umask make a difference.
func TestWrite_EqualFilesMakeEqualArchives(t *testing.T) {
	source := filepath.Join(t.TempDir(), "source")
	image := Image{Entries: []Entry{{Path: "a", Mode: 0o755, Source: source}}}
	archives := map[string]int{}
	for i, umask := range []int{0o022, 0o077} {
		if err := os.WriteFile(source, []byte("content"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(source, time.Time{}, time.Unix(int64(i)*1e6, 0)); err != nil {
			t.Fatal(err)
		}
		former := syscall.Umask(umask)
		output := filepath.Join(t.TempDir(), "image.tar")
		err := image.Write(output, []string{"localhost/pav:dev"})
		syscall.Umask(former)
		if err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(output)
		if err != nil {
			t.Fatal(err)
		}
		archives[string(content)]++
	}
	if len(archives) != 1 {
		t.Errorf("the same files made %d different archives", len(archives))
	}
}

func TestWrite_LeavesNothingAfterAnError(t *testing.T) {
	for name, test := range map[string]struct {
		image Image
		names []string
		want  string
	}{
		"no name":             {image: made, want: "needs a name"},
		"a file that is gone": {image: Image{Entries: []Entry{{Path: "a", Source: "gone"}}}, names: []string{"pav"}, want: `adding "a" to an archive`},
	} {
		t.Run(name, func(t *testing.T) {
			directory := t.TempDir()
			err := test.image.Write(filepath.Join(directory, "image.tar"), test.names)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
			left, err := os.ReadDir(directory)
			if err != nil || len(left) > 0 {
				t.Errorf("it left %v (%v)", left, err)
			}
		})
	}
}

func TestFullName(t *testing.T) {
	for name, want := range map[string]string{
		"busybox":                           "docker.io/library/busybox:latest",
		"busybox:1.37.0":                    "docker.io/library/busybox:1.37.0",
		"pav/pav":                           "docker.io/pav/pav:latest",
		"docker.io/busybox:1":               "docker.io/library/busybox:1",
		"docker.io/library/busybox:1.37.0":  "docker.io/library/busybox:1.37.0",
		"localhost/pav:dev":                 "localhost/pav:dev",
		"localhost:5000/pav":                "localhost:5000/pav:latest",
		"registry.example/group/image:1-2":  "registry.example/group/image:1-2",
		"registry.example/image@sha256:abc": "registry.example/image@sha256:abc",
	} {
		if got := FullName(name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}
