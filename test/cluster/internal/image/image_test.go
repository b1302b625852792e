package image

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// entries returns the headers and the contents of a tar archive by name.
func entries(t *testing.T, content []byte) (map[string]*tar.Header, map[string][]byte) {
	t.Helper()
	headers, files := map[string]*tar.Header{}, map[string][]byte{}
	archive := tar.NewReader(bytes.NewReader(content))
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return headers, files
		}
		if err != nil {
			t.Fatal(err)
		}
		headers[header.Name] = header
		if files[header.Name], err = io.ReadAll(archive); err != nil {
			t.Fatal(err)
		}
	}
}

func program(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte("binary"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestArchiveHasTheImageUnderAllNames(t *testing.T) {
	output := filepath.Join(t.TempDir(), "image.tar")
	if err := Single(program(t), "/pav").Write(output, []string{"localhost/pav:dev", "pav"}); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(output)
	if err != nil {
		t.Fatal(err)
	}
	_, files := entries(t, content)
	if len(files["oci-layout"]) == 0 {
		t.Error("the archive is no image layout")
	}
	var index v1.IndexManifest
	if err := json.Unmarshal(files["index.json"], &index); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, manifest := range index.Manifests {
		names[manifest.Annotations[nameAnnotation]] = true
		if _, found := files["blobs/sha256/"+manifest.Digest.Hex]; !found {
			t.Errorf("manifest %s is missing", manifest.Digest)
		}
	}
	if len(names) != 2 || !names["localhost/pav:dev"] || !names["docker.io/library/pav:latest"] {
		t.Errorf("names are %v", names)
	}
}

func TestSingleImageHasOneProgram(t *testing.T) {
	image := Single(program(t), "/bin/pav")
	content, err := layer(image.Entries)
	if err != nil {
		t.Fatal(err)
	}
	headers, files := entries(t, content)
	if len(headers) != 1 || string(files["bin/pav"]) != "binary" || headers["bin/pav"].Mode != 0o755 {
		t.Errorf("got %v", headers)
	}
	if len(image.Config.Entrypoint) != 1 || image.Config.Entrypoint[0] != "/bin/pav" {
		t.Errorf("the entry point is %v", image.Config.Entrypoint)
	}
}

func TestShellImageHasCommandsUsersAndADirectoryForTemporaryFiles(t *testing.T) {
	path := program(t)
	content, err := layer(shell(path, path, []string{"sh", "busybox", "ls"}).Entries)
	if err != nil {
		t.Fatal(err)
	}
	headers, files := entries(t, content)
	for _, name := range []string{"bin/sh", "bin/ls"} {
		if header := headers[name]; header == nil || header.Typeflag != tar.TypeSymlink || header.Linkname != "busybox" {
			t.Errorf("%s is %+v, want a link to busybox", name, header)
		}
	}
	if headers["bin/busybox"].Typeflag != tar.TypeReg || string(files["bin/bash"]) != "binary" {
		t.Error("busybox or bash is not a file")
	}
	if headers["tmp/"].Mode != 0o1777 {
		t.Errorf("permissions of /tmp are %o", headers["tmp/"].Mode)
	}
	if !bytes.Contains(files["etc/passwd"], []byte("\nnonroot:x:65532:65532:")) {
		t.Errorf("no user nonroot in %q", files["etc/passwd"])
	}
	if header := headers["home/nonroot/"]; header.Uid != Nonroot || header.Typeflag != tar.TypeDir {
		t.Errorf("the home directory is %+v", header)
	}
}

func TestToolsComeWithTheirLibrariesAndDirectories(t *testing.T) {
	const listed = "\tlinux-vdso.so.1 (0x1)\n\tlibc.so.6 => /lib/libc.so.6 (0x2)\n\t/lib64/ld.so.2 (0x3)\n\tlibx.so => /usr/lib/x/libx.so (0x4)\n"
	want := []string{"/lib/libc.so.6", "/lib64/ld.so.2", "/usr/lib/x/libx.so"}
	if got := paths(listed); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	var names []string
	for _, entry := range withFiles([]Entry{{Path: "usr", Mode: directoryMode}}, append(want, want...)) {
		names = append(names, entry.Path)
	}
	wantNames := []string{"usr", "lib", "lib/libc.so.6", "lib64", "lib64/ld.so.2", "usr/lib", "usr/lib/x", "usr/lib/x/libx.so"}
	if !slices.Equal(names, wantNames) {
		t.Errorf("the image has %v, want %v", names, wantNames)
	}
}

// Tests use another image than users. Both must have the same packages and the same name.
func TestExamplesImageIsThatOfTheContainerfile(t *testing.T) {
	examples := filepath.Join("..", "..", "..", "..", "examples")
	text, err := os.ReadFile(filepath.Join(examples, "Containerfile"))
	if err != nil {
		t.Fatal(err)
	}
	_, installed, _ := strings.Cut(string(text), "--no-install-recommends")
	installed, _, _ = strings.Cut(installed, "&&")
	if got := strings.Fields(strings.ReplaceAll(installed, "\\", "")); !slices.Equal(got, ExamplesPackages) {
		t.Errorf("the Containerfile installs %q, the image has %q", got, ExamplesPackages)
	}
	files, err := filepath.Glob(filepath.Join(examples, "*", "provisioner.yaml"))
	if err != nil || len(files) < 6 {
		t.Fatalf("found %q (%v)", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`image: (\S+)`).FindAllStringSubmatch(string(text), -1) {
			if full := FullName(name[1]); full != ExamplesName && full != ShellName {
				t.Errorf("%s names the image %s", file, full)
			}
		}
	}
}

func TestEqualFilesMakeEqualLayers(t *testing.T) {
	made := []Entry{{Path: "a", Mode: fs.ModeDir | 0o755}, {Path: "a/b", Mode: 0o644, Content: "x"}}
	first, err := layer(made)
	if err != nil {
		t.Fatal(err)
	}
	second, err := layer(made)
	if err != nil || !bytes.Equal(first, second) {
		t.Errorf("two layers of the same files differ (%v)", err)
	}
}

func TestImageWithoutNameIsRefused(t *testing.T) {
	if err := (Image{}).Write(filepath.Join(t.TempDir(), "image.tar"), nil); err == nil {
		t.Error("got no error")
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
