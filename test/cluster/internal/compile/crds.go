package compile

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// addCRDs copies the CRDs of snapshots to a directory, unless the directory exists.
func (b Builder) addCRDs(ctx context.Context, directory string) error {
	if _, err := os.Stat(directory); err == nil {
		return nil
	}
	module, err := b.moduleOfCRDs(ctx)
	if err != nil {
		return err
	}
	return copyCRDs(filepath.Join(module, "config", "crd"), directory)
}

// moduleOfCRDs returns the directory of the module that has the CRDs. It asks for a package of the module, because the go
// command then downloads a module that is missing although the programs are compiled.
func (b Builder) moduleOfCRDs(ctx context.Context) (string, error) {
	command := exec.CommandContext(ctx, "go", "list", "-f", "{{.Module.Dir}}", snapshotter+"client/v8/apis/volumesnapshot/v1")
	command.Dir = filepath.Join(b.Source, snapshotsModule)
	command.Env = append(os.Environ(), "GOWORK=off")
	var failure strings.Builder
	command.Stderr = &failure
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("finding the module of the CRDs: %w\n%s", err, lastLines(failure.String(), 30))
	}
	return strings.TrimSpace(string(output)), nil
}

// copyCRDs copies the CRDs of snapshots, but not those of group snapshots, which the snapshot controller does not need.
// An interrupted copy leaves no incomplete directory.
func copyCRDs(source, directory string) error {
	const pattern = "snapshot.storage.k8s.io_*.yaml"
	files, err := filepath.Glob(filepath.Join(source, pattern))
	if err != nil {
		return fmt.Errorf("listing the CRDs of snapshots: %w", err)
	}
	if len(files) == 0 {
		return fmt.Errorf("listing the CRDs of snapshots: %q has no %s", source, pattern)
	}
	temporary := filepath.Join(filepath.Dir(directory), "."+filepath.Base(directory)+".partial")
	if err := os.RemoveAll(temporary); err != nil {
		return fmt.Errorf("removing incomplete CRDs: %w", err)
	}
	if err := os.Mkdir(temporary, 0o755); err != nil {
		return fmt.Errorf("making the directory of CRDs: %w", err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("reading a CRD: %w", err)
		}
		if err := os.WriteFile(filepath.Join(temporary, filepath.Base(file)), content, 0o644); err != nil {
			return fmt.Errorf("writing a CRD: %w", err)
		}
	}
	if err := os.Rename(temporary, directory); err != nil {
		return fmt.Errorf("putting the CRDs in place: %w", err)
	}
	return nil
}
