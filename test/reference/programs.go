package reference

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Program is one that others wrote, or one around what others wrote.
type Program struct {
	// module is the module below this directory that it is built in.
	module string

	// pkg is its package.
	pkg string
}

// The programs. The Makefile builds them as well.
var (
	Library = Program{module: "lib-bucket-provisioner", pkg: "github.com/albertofaria/pav/test/reference/lib-bucket-provisioner"}
	Driver  = Program{module: "cosi-sidecar", pkg: "github.com/albertofaria/pav/test/reference/cosi-sidecar/cosi-driver"}
	Sidecar = Program{module: "cosi-sidecar", pkg: "sigs.k8s.io/container-object-storage-interface-provisioner-sidecar/cmd/objectstorage-sidecar"}

	// Validator is a program that checks a file by a JSON schema.
	Validator = Program{module: "check-jsonschema", pkg: "github.com/albertofaria/pav/test/reference/check-jsonschema"}
)

// File builds a program where make does, if the file is not up to date, and returns its path.
func (p Program) File(t *testing.T) string {
	t.Helper()
	file, err := filepath.Abs(filepath.Join(directory, "..", "..", "bin", filepath.Base(p.pkg)))
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "go", "-C", filepath.Join(directory, p.module), "build", "-trimpath", "-ldflags", "-s -w", "-o", file, p.pkg)
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", p.pkg, err, output)
	}
	return file
}

// endsWithin is how long a program may take to end after it was asked to.
const endsWithin = time.Minute

// Process is a program that runs until the end of the test.
type Process struct {
	mu    sync.Mutex
	calls []map[string]any
	log   bytes.Buffer

	command *exec.Cmd
	read    chan struct{} // closed when all output was read
}

// Start starts a program, which ends with the test.
func (p Program) Start(t *testing.T, environment []string, arguments ...string) *Process {
	t.Helper()
	r := &Process{command: exec.Command(p.File(t), arguments...), read: make(chan struct{})} //nolint:noctx // stop ends it
	r.command.Env = append(os.Environ(), environment...)
	r.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	output, err := r.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	r.command.Stderr = r
	if err := r.command.Start(); err != nil {
		t.Fatal("starting the program:", err)
	}
	go r.readCalls(output)
	t.Cleanup(func() { r.stop(t) })
	return r
}

// Write adds to the log of the program.
func (r *Process) Write(text []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.Write(text)
}

// readCalls reads the calls that a program writes, one a line.
func (r *Process) readCalls(output io.Reader) {
	defer close(r.read)
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		made := map[string]any{}
		if err := json.Unmarshal(lines.Bytes(), &made); err != nil {
			made["malformed"] = lines.Text()
		}
		r.mu.Lock()
		r.calls = append(r.calls, made)
		r.mu.Unlock()
	}
}

// Calls returns the calls that were made of the store behind the program.
func (r *Process) Calls() []map[string]any {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]map[string]any{}, r.calls...)
}

// Log returns what the program has logged.
func (r *Process) Log() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.String()
}

// stop ends the program, and fails the test if it has ended before.
func (r *Process) stop(t *testing.T) {
	t.Helper()
	if err := r.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Errorf("asking the program to end: %v", err)
	}
	killer := time.AfterFunc(endsWithin, func() { _ = r.command.Process.Kill() })
	<-r.read
	_ = r.command.Wait() // that it was asked to end is an error of some programs
	if !killer.Stop() {
		t.Errorf("the program did not end within %s", endsWithin)
	}
	if t.Failed() {
		t.Logf("log of the program:\n%s", r.Log())
	}
}
