package compile

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/albertofaria/pav/test/cluster/internal/paths"
	"github.com/albertofaria/pav/test/cluster/internal/process"
)

// Builder compiles programs.
type Builder struct {
	// Source is the directory of the test/cluster module in the checkout.
	Source string
	// Cache is the directory that all clusters share.
	Cache string
	// Version is the version of Kubernetes.
	Version Version
	// Progress receives one or two lines for each program.
	Progress io.Writer
}

// Directory returns the directory for the compiled programs. Its name changes with everything that determines the
// programs: the pinned modules, the build arguments, the pause program and the Go version.
func (b Builder) Directory(ctx context.Context) (string, error) {
	sum := sha256.New()
	files := []string{
		Present.Module + "/go.mod", Present.Module + "/go.sum",
		containerdModule + "/go.mod", containerdModule + "/go.sum",
		snapshotsModule + "/go.mod", snapshotsModule + "/go.sum", "pause/main.go",
	}
	if b.Version != Present {
		files = append(files, b.Version.Module+"/go.mod", b.Version.Module+"/go.sum")
	}
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(b.Source, file))
		if err != nil {
			return "", fmt.Errorf("reading the sources of the cluster's programs: %w", err)
		}
		sum.Write(fmt.Appendf(nil, "%s %d\n%s", file, len(content), content))
	}
	for _, program := range Plan(b.Version, Selection{Kubectl: true, Agnhost: true}) {
		sum.Write(fmt.Appendln(nil, program.arguments(program.Name), program.environment()))
	}
	command := exec.CommandContext(ctx, "go", "env", "GOVERSION", "GOARCH")
	command.Dir = filepath.Join(b.Source, containerdModule)
	version, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("asking the go command for its version: %w", err)
	}
	sum.Write(version)
	return filepath.Join(b.Cache, "bin", b.Version.Name+"-"+hex.EncodeToString(sum.Sum(nil)[:6])), nil
}

// Build compiles the selected programs that are missing and returns their directory, which also has the CRDs of
// snapshots. Two builds at the same time wait for each other. An interrupted build leaves no incomplete program.
func (b Builder) Build(ctx context.Context, selected Selection) (string, error) {
	directory, err := b.Directory(ctx)
	if err != nil {
		return "", err
	}
	lock, err := process.Lock(ctx, filepath.Join(b.Cache, "locks", filepath.Base(directory)), func() {
		b.tellf("waiting for another build of the same programs")
	})
	if err != nil {
		return "", fmt.Errorf("locking the build: %w", err)
	}
	defer func() { _ = lock.Close() }()

	missing := Missing(directory, Plan(b.Version, selected))
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return "", fmt.Errorf("making the directory of programs: %w", err)
	}
	for i, program := range missing {
		b.tellf("[%2d/%d] compiling %s", i+1, len(missing), program.Name)
		start := time.Now()
		if err := b.compile(ctx, directory, program); err != nil {
			return "", err
		}
		b.tellf("[%2d/%d] compiled %s in %.1f s", i+1, len(missing), program.Name, time.Since(start).Seconds())
	}
	return directory, b.addCRDs(ctx, paths.SnapshotCRDs(directory))
}

// tellf writes a line of progress. It ignores errors, because a lost line is no reason to stop.
func (b Builder) tellf(format string, arguments ...any) {
	_, _ = fmt.Fprintf(b.Progress, format+"\n", arguments...)
}

// Missing returns the programs that are not in the directory.
func Missing(directory string, programs []Program) []Program {
	var missing []Program
	for _, program := range programs {
		if _, err := os.Stat(filepath.Join(directory, program.Name)); err != nil {
			missing = append(missing, program)
		}
	}
	return missing
}

func (b Builder) compile(ctx context.Context, directory string, program Program) error {
	// No program has this hidden name, and the next build overwrites the file.
	temporary := filepath.Join(directory, "."+program.Name+".partial")
	command := exec.CommandContext(ctx, "go", program.arguments(temporary)...)
	command.Dir = filepath.Join(b.Source, program.Module)
	command.Env = append(os.Environ(), program.environment()...)
	if output, err := command.CombinedOutput(); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return fmt.Errorf("compiling %s: %w\n%s", program.Name, err, lastLines(string(output), 30))
	}
	if err := os.Rename(temporary, filepath.Join(directory, program.Name)); err != nil {
		return fmt.Errorf("putting %s in place: %w", program.Name, err)
	}
	return nil
}

// HasKubectl reports whether kubectl is installed on the machine.
func HasKubectl() bool {
	_, err := exec.LookPath("kubectl")
	return !errors.Is(err, exec.ErrNotFound)
}

func lastLines(text string, count int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-count):], "\n")
}
