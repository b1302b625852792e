package reference

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// directory is this directory for tests of packages directly below the directory test.
var directory = filepath.Join("..", "reference")

// Module is a Go module that others wrote.
type Module struct {
	// path is its path, with a version if it is not a dependency of one of the modules below this directory.
	path string

	// of is the module below this directory that depends on it, which has its version and its checksum.
	of string

	// sum is the checksum, if there is no such module.
	sum string
}

// The modules whose files are read.
var (
	LibBucketProvisioner = Module{path: "github.com/kube-object-storage/lib-bucket-provisioner", of: "lib-bucket-provisioner"}
	COSIAPI              = Module{path: "sigs.k8s.io/container-object-storage-interface-api", of: "cosi-sidecar"}

	// COSI can be no dependency: it needs modules that are published under no version.
	COSI = Module{path: "sigs.k8s.io/container-object-storage-interface@v0.2.2", sum: "h1:xlIDp0QEI39XcUxT8fRkpm2TotdZ+/D6OpSoZI/3rs0="}
)

// Directory fetches a module, if that was not done before, and returns the directory of its files.
func (m Module) Directory(t *testing.T) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", m.path)
	command.Dir = filepath.Join(directory, m.of)
	command.Env = append(os.Environ(), "GOWORK=off")
	var messages bytes.Buffer
	command.Stderr = &messages
	output, err := command.Output()
	found := struct{ Dir, Sum, Error string }{}
	if malformed := json.Unmarshal(output, &found); err != nil || malformed != nil || found.Dir == "" {
		t.Fatalf("fetching %s: %v: %s%s", m.path, err, found.Error, messages.String())
	}
	if m.sum != "" && found.Sum != m.sum {
		t.Fatalf("%s has the checksum %s, want %s", m.path, found.Sum, m.sum)
	}
	return found.Dir
}

// Read returns the text of a file of a module.
func (m Module) Read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(m.Directory(t), name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}
