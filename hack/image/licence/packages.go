package licence

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// linked is a package of a program, as the go command describes it.
type linked struct {
	ImportPath, Dir string
	Standard        bool
	Module          *module
}

type module struct {
	Path, Version, Dir string
	Main               bool
	Replace            *module
}

// origin returns where a package is from, and the root of that: Go itself, or a module. The program's own module has no
// root.
func (l linked) origin(goroot string) (name, root string) {
	switch {
	case l.Standard:
		return "Go", goroot
	case l.Module == nil || l.Module.Main:
		return "", ""
	case l.Module.Replace != nil:
		return l.Module.Replace.name(), l.Module.Dir
	default:
		return l.Module.name(), l.Module.Dir
	}
}

func (m *module) name() string {
	return strings.TrimSpace(m.Path + " " + m.Version)
}

// packages returns the packages of a program.
func (p Program) packages(ctx context.Context) ([]linked, error) {
	output, err := p.ask(ctx, "list", "-deps", "-json=ImportPath,Dir,Standard,Module", p.Package)
	if err != nil {
		return nil, err
	}
	var all []linked
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var found linked
		if err := decoder.Decode(&found); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("reading the packages of %s: %w", p.Package, err)
		}
		all = append(all, found)
	}
}

// ask returns what the go command prints about the program's platform.
func (p Program) ask(ctx context.Context, args ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = p.Directory
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.GOOS, "GOARCH="+p.GOARCH, "GOWORK=off")
	var errs bytes.Buffer
	command.Stderr = &errs
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(errs.Bytes()))
	}
	return output, nil
}
