package image

import (
	"archive/tar"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/albertofaria/pav/hack/image/archive"
	"github.com/albertofaria/pav/hack/image/archivetest"
)

// files returns the files of an image by name.
func files(t *testing.T, image archive.Image) map[string]archivetest.File {
	t.Helper()
	built, err := image.Build()
	if err != nil {
		t.Fatal(err)
	}
	return archivetest.Layer(t, built)
}

func program(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte("binary"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSingleImageHasOneProgram(t *testing.T) {
	image := Single(program(t), "/bin/pav")
	if got := files(t, image); len(got) != 1 || got["bin/pav"].Content != "binary" || got["bin/pav"].Mode != 0o755 {
		t.Errorf("got %v", got)
	}
	if len(image.Config.Entrypoint) != 1 || image.Config.Entrypoint[0] != "/bin/pav" {
		t.Errorf("the entry point is %v", image.Config.Entrypoint)
	}
}

func TestShellImageHasCommandsUsersAndADirectoryForTemporaryFiles(t *testing.T) {
	path := program(t)
	got := files(t, shell(path, path, []string{"sh", "busybox", "ls"}))
	for _, name := range []string{"bin/sh", "bin/ls"} {
		if file := got[name]; file.Typeflag != tar.TypeSymlink || file.Linkname != "busybox" {
			t.Errorf("%s is %+v, want a link to busybox", name, file)
		}
	}
	if got["bin/busybox"].Typeflag != tar.TypeReg || got["bin/bash"].Content != "binary" {
		t.Error("busybox or bash is not a file")
	}
	if got["tmp/"].Mode != 0o1777 {
		t.Errorf("permissions of /tmp are %o", got["tmp/"].Mode)
	}
	if passwd := got["etc/passwd"].Content; !strings.Contains(passwd, "\nnonroot:x:65532:65532:") {
		t.Errorf("no user nonroot in %q", passwd)
	}
	if home := got["home/nonroot/"]; home.Uid != Nonroot || home.Typeflag != tar.TypeDir {
		t.Errorf("the home directory is %+v", home)
	}
}

func TestToolsComeWithTheirLibrariesAndDirectories(t *testing.T) {
	const listed = "\tlinux-vdso.so.1 (0x1)\n\tlibc.so.6 => /lib/libc.so.6 (0x2)\n\t/lib64/ld.so.2 (0x3)\n\tlibx.so => /usr/lib/x/libx.so (0x4)\n"
	want := []string{"/lib/libc.so.6", "/lib64/ld.so.2", "/usr/lib/x/libx.so"}
	if got := paths(listed); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	var names []string
	for _, entry := range withFiles([]archive.Entry{{Path: "usr", Mode: directoryMode}}, append(want, want...)) {
		names = append(names, entry.Path)
	}
	wantNames := []string{"usr", "lib", "lib/libc.so.6", "lib64", "lib64/ld.so.2", "usr/lib", "usr/lib/x", "usr/lib/x/libx.so"}
	if !slices.Equal(names, wantNames) {
		t.Errorf("the image has %v, want %v", names, wantNames)
	}
}

// installed returns the packages that a Containerfile installs, and its text.
func installed(t *testing.T, path string) (packages []string, text string) {
	t.Helper()
	content, err := os.ReadFile(path) //nolint:gosec // The path is that of a file of the repository.
	if err != nil {
		t.Fatal(err)
	}
	_, listed, _ := strings.Cut(string(content), "--no-install-recommends")
	listed, _, _ = strings.Cut(listed, "&&")
	return strings.Fields(strings.ReplaceAll(listed, "\\", "")), string(content)
}

// Tests use other images than users. Both must have the same packages and the same names.
func TestExamplesImagesAreThoseOfTheContainerfiles(t *testing.T) {
	examples := filepath.Join("..", "..", "..", "..", "examples")
	if got, _ := installed(t, filepath.Join(examples, "Containerfile")); !slices.Equal(got, ExamplesPackages) {
		t.Errorf("the Containerfile installs %q, the image has %q", got, ExamplesPackages)
	}
	const certificates, xxd = "ca-certificates", "xxd" // the image of the tests has no authorities, and the xxd of busybox
	want := slices.Sorted(slices.Values(append([]string{certificates, xxd}, s3Packages...)))
	if got, text := installed(t, filepath.Join(examples, "9-buckets", "Containerfile")); !slices.Equal(got, want) || !strings.Contains(text, "/usr/bin/s3.sh") {
		t.Errorf("the Containerfile of buckets installs %q, want %q, and s3.sh", got, want)
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
		for _, name := range regexp.MustCompile(`image: "?([^\s",}]+)`).FindAllStringSubmatch(string(text), -1) {
			if full := archive.FullName(name[1]); full != ExamplesName && full != S3Name && full != ShellName {
				t.Errorf("%s names the image %s", file, full)
			}
		}
	}
}
