package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/albertofaria/pav/hack/image/archivetest"
)

const (
	version  = "1.2.3-test"
	revision = "0123456789abcdef0123456789abcdef01234567"
	created  = 1764158400
)

// labels are those of the images, and the annotations of their index.
var labels = map[string]string{
	"org.opencontainers.image.title":       "PaV",
	"org.opencontainers.image.description": "Pods-as-Volumes: Kubernetes volumes defined by pod templates",
	"org.opencontainers.image.source":      "https://github.com/albertofaria/pav",
	"org.opencontainers.image.version":     version,
	"org.opencontainers.image.revision":    revision,
	"org.opencontainers.image.created":     "2025-11-26T12:00:00Z",
	"org.opencontainers.image.licenses":    "MIT",
}

// makeImage copies the source to another directory, makes the image there for this machine, and returns the directory.
func makeImage(t *testing.T) string {
	t.Helper()
	directory := t.TempDir()
	for _, file := range []string{"Makefile", "LICENSE", "go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join("..", "..", file))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(directory, file), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tree := range []string{"cmd", "hack", "internal", "jinja"} {
		if err := os.CopyFS(filepath.Join(directory, tree), os.DirFS(filepath.Join("..", "..", tree))); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.CommandContext(t.Context(), "make", "-C", directory, "bin/pav.tar",
		"VERSION="+version, "REVISION="+revision, fmt.Sprint("SOURCE_DATE_EPOCH=", created))
	// This test may be run by make.
	command.Env = slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "MAKE") || strings.HasPrefix(e, "MFLAGS=") })
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return directory
}

// otherProgram compiles a program for a machine that is not this one.
func otherProgram(t *testing.T, settings ...string) string {
	t.Helper()
	directory := t.TempDir()
	for file, content := range map[string]string{"go.mod": "module example.com/program\n", "main.go": "package main\n\nfunc main() {}\n"} {
		if err := os.WriteFile(filepath.Join(directory, file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.CommandContext(t.Context(), "go", "build", "-o", "program", ".")
	command.Dir, command.Env = directory, append(append(os.Environ(), "CGO_ENABLED=0"), settings...)
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return filepath.Join(directory, "program")
}

// otherArchitecture is the one of the two that this machine does not have.
func otherArchitecture() string {
	if runtime.GOARCH == "arm64" {
		return "amd64"
	}
	return "arm64"
}

// startRegistry starts a registry, and returns its address. If there is a password, the user "pusher" needs it.
func startRegistry(t *testing.T, password string) string {
	t.Helper()
	images := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, given, _ := r.BasicAuth(); password != "" && (user != "pusher" || given != password) {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		images.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// call makes an image in the root of the checkout, and returns the digest that is printed.
func call(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	t.Chdir(filepath.Join("..", ".."))
	err := run(t.Context(), append([]string{"-version", version, "-revision", revision, "-created", fmt.Sprint(created)}, args...), &out)
	return strings.TrimSpace(out.String()), err
}

func TestMake_TwoBuildsOfTheSameSourceAreEqual_AndAreTheImageThatIsPushed(t *testing.T) {
	first, second := makeImage(t), makeImage(t)
	var made [2][]byte
	for i, directory := range []string{first, second} {
		var err error
		if made[i], err = os.ReadFile(filepath.Join(directory, "bin", "pav.tar")); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(made[0], made[1]) {
		t.Error("two builds of the same source made different images")
	}
	archived := archivetest.Read(t, bytes.NewReader(made[0]))

	program, other := filepath.Join(first, "bin", "pav"), otherProgram(t, "GOOS=linux", "GOARCH="+otherArchitecture())
	full := startRegistry(t, "") + "/group/pav:" + version
	output := filepath.Join(t.TempDir(), "pav.oci.tar")
	digest, err := call(t, "-name", full, "-push", "-out", output, program, other)
	if err != nil {
		t.Fatal(err)
	}
	checkArchive(t, output, full, digest)
	images := pull(t, full, digest)
	if got, want := slices.Sorted(maps.Keys(images)), []string{"linux/amd64", "linux/arm64"}; !slices.Equal(got, want) {
		t.Fatalf("the index has %q, want %q", got, want)
	}
	for platform, image := range images {
		t.Run(platform, func(t *testing.T) { checkConfig(t, image, platform) })
	}
	image := images["linux/"+runtime.GOARCH]
	if image == nil {
		t.Fatalf("there is no image for %s", runtime.GOARCH)
	}
	checkFiles(t, archivetest.Layer(t, image), program)
	imageDigest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if _, found := archived["blobs/sha256/"+imageDigest.Hex]; !found {
		t.Error("bin/pav.tar has another image than the registry")
	}
}

// checkArchive checks that an archive names an index.
func checkArchive(t *testing.T, path, full, digest string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var layout v1.IndexManifest
	if err := json.Unmarshal([]byte(archivetest.Read(t, bytes.NewReader(content))["index.json"].Content), &layout); err != nil {
		t.Fatal(err)
	}
	if len(layout.Manifests) != 1 || layout.Manifests[0].Digest.String() != digest || layout.Manifests[0].Annotations["io.containerd.image.name"] != full {
		t.Errorf("the archive has %+v, want %s with the name %s", layout.Manifests, digest, full)
	}
}

// pull returns the images of an index by platform.
func pull(t *testing.T, full, digest string) map[string]v1.Image {
	t.Helper()
	reference, err := name.ParseReference(full)
	if err != nil {
		t.Fatal(err)
	}
	index, err := remote.Index(reference, remote.WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	got, err := index.Digest()
	if err != nil || got.String() != digest {
		t.Errorf("the registry has %s (%v), printed was %s", got, err, digest)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(labels, manifest.Annotations); diff != "" {
		t.Errorf("annotations of the index (-want +got):\n%s", diff)
	}
	images := map[string]v1.Image{}
	for _, described := range manifest.Manifests {
		if images[described.Platform.String()], err = index.Image(described.Digest); err != nil {
			t.Fatal(err)
		}
	}
	return images
}

func checkConfig(t *testing.T, image v1.Image, platform string) {
	t.Helper()
	file, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if got := file.Platform().String(); got != platform || !file.Created.Equal(time.Unix(created, 0)) {
		t.Errorf("the image is for %s, and of %s", got, file.Created)
	}
	if diff := cmp.Diff(v1.Config{Entrypoint: []string{"/pav"}, WorkingDir: "/", Labels: labels}, file.Config); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
}

// checkFiles checks that an image has a program that runs, all licences, and nothing else.
func checkFiles(t *testing.T, files map[string]archivetest.File, program string) {
	t.Helper()
	modes := map[string]int64{}
	for name, file := range files {
		modes[name] = file.Mode
	}
	if diff := cmp.Diff(map[string]int64{"pav": 0o755, "licenses/": 0o755, "licenses/LICENSE": 0o644, "licenses/third-party.txt": 0o644}, modes); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}

	extracted := filepath.Join(t.TempDir(), "pav")
	if err := os.WriteFile(extracted, []byte(files["pav"].Content), 0o700); err != nil {
		t.Fatal(err)
	}
	output, err := exec.CommandContext(t.Context(), extracted, "--version").Output()
	if want := "pav version " + version + "\n"; err != nil || string(output) != want {
		t.Errorf("the program says %q (%v), want %q", output, err, want)
	}

	own, err := os.ReadFile("LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	if files["licenses/LICENSE"].Content != string(own) {
		t.Error("PaV's licence is another one")
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil || len(info.Deps) < 50 {
		t.Fatalf("the program names %d modules (%v)", len(info.Deps), err)
	}
	for _, module := range info.Deps {
		if heading := fmt.Sprintf("==== %s %s: ", module.Path, module.Version); !strings.Contains(files["licenses/third-party.txt"].Content, heading) {
			t.Errorf("the licence of %s %s is missing", module.Path, module.Version)
		}
	}
}

func TestPush_HasTheCredentialsOfTheUser(t *testing.T) {
	program := otherProgram(t, "GOOS=linux")
	address := startRegistry(t, "secret")
	for name, test := range map[string]struct{ password, want string }{
		"the password":     {password: "secret"},
		"another password": {password: "guess", want: "401 Unauthorized"},
	} {
		t.Run(name, func(t *testing.T) {
			config := t.TempDir()
			auth := base64.StdEncoding.EncodeToString([]byte("pusher:" + test.password))
			if err := os.WriteFile(filepath.Join(config, "config.json"), fmt.Appendf(nil, `{"auths":{%q:{"auth":%q}}}`, address, auth), 0o600); err != nil {
				t.Fatal(err)
			}
			t.Setenv("DOCKER_CONFIG", config)
			_, err := call(t, "-name", address+"/pav:1", "-push", "-out", filepath.Join(t.TempDir(), "pav.tar"), program)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestRun_RefusesWhatCannotBeAnImage(t *testing.T) {
	linux := otherProgram(t, "GOOS=linux")
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"a name without a registry":       {args: []string{"-name", "pav/pav:1", linux}, want: "reading the name"},
		"a name without a tag":            {args: []string{"-name", "registry.example/pav", linux}, want: "reading the name"},
		"no revision":                     {args: []string{"-revision", "", linux}, want: "-revision is missing"},
		"no number of seconds":            {args: []string{"-created", "now", linux}, want: "reading the time"},
		"no program":                      {want: "needs a program"},
		"a file that is no program":       {args: []string{"LICENSE"}, want: "reading what LICENSE was built from"},
		"a program for another system":    {args: []string{otherProgram(t, "GOOS=windows")}, want: "no program for Linux"},
		"a program with cgo":              {args: []string{otherProgram(t, "GOOS=linux", "CGO_ENABLED=1")}, want: "built with CGO_ENABLED=0"},
		"two programs for one platform":   {args: []string{linux, linux}, want: "are programs for linux/"},
		"a directory that does not exist": {args: []string{"-out", "gone/pav.tar", linux}, want: "writing an image"},
	} {
		t.Run(name, func(t *testing.T) {
			// The last value of a flag counts.
			_, err := call(t, append([]string{"-name", "registry.example/pav:1", "-out", filepath.Join(t.TempDir(), "pav.tar")}, test.args...)...)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}
