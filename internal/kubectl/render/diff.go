package render

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aymanbagabas/go-udiff"

	"github.com/albertofaria/pav/internal/kubectl/cli"
)

// The directories that are compared.
const (
	oldDirectory = "OLD"
	newDirectory = "NEW"
)

// compare writes how two renderings differ, as "kubectl diff" does, and reports whether they do: as a unified diff, or
// as the program in KUBECTL_EXTERNAL_DIFF shows it.
func compare(ctx context.Context, env *cli.Env, before, after Result) (bool, error) {
	if name, arguments := program(); name != "" {
		return runProgram(ctx, env, name, arguments, before, after)
	}
	differ := false
	for _, phase := range phases {
		text, err := unified(phase, before.of(phase), after.of(phase))
		if err != nil {
			return differ, err
		}
		differ = differ || text != ""
		if _, err := env.Out.Write(coloured(env.Style(), []byte(text))); err != nil {
			return differ, err
		}
	}
	return differ, nil
}

// of returns the rendering of a phase, or nil if there is none.
func (r *Result) of(phase string) *Phase {
	i := slices.IndexFunc(r.Phases, func(p Phase) bool { return p.Phase == phase })
	if i < 0 {
		return nil
	}
	return &r.Phases[i]
}

// unified returns the unified diff of two renderings of a phase, of which either may be nil; "" if they are equal.
func unified(phase string, before, after *Phase) (string, error) {
	old, err := before.text()
	if err != nil {
		return "", err
	}
	changed, err := after.text()
	if err != nil {
		return "", err
	}
	name := phase + ".yaml"
	return udiff.Unified(oldDirectory+"/"+name, newDirectory+"/"+name, old, changed), nil
}

// runProgram runs a diff program, and reports whether it found a difference.
func runProgram(ctx context.Context, env *cli.Env, name string, arguments []string, before, after Result) (bool, error) {
	directory, err := os.MkdirTemp("", "kubectl-pav-")
	if err != nil {
		return false, err
	}
	defer func() { _ = os.RemoveAll(directory) }()
	for name, result := range map[string]Result{oldDirectory: before, newDirectory: after} {
		if err := save(filepath.Join(directory, name), result); err != nil {
			return false, err
		}
	}
	command := exec.CommandContext(ctx, name, append(arguments, oldDirectory, newDirectory)...)
	command.Dir = directory
	command.Stdin, command.Stdout, command.Stderr = env.In, env.Out, env.ErrOut
	err = command.Run()
	exit, failed := errors.AsType[*exec.ExitError](err)
	if err != nil && (!failed || exit.ExitCode() != 1) {
		return false, fmt.Errorf("running %s: %w", name, err)
	}
	return err != nil, nil
}

// argument matches what KUBECTL_EXTERNAL_DIFF may contain in addition to the program, as for kubectl.
var argument = regexp.MustCompile(`^[a-zA-Z0-9-=]+$`)

// program returns the diff program that the user chose, with its flags; "" if there is none.
func program() (name string, arguments []string) {
	words := strings.Fields(os.Getenv("KUBECTL_EXTERNAL_DIFF"))
	if len(words) == 0 {
		return "", nil
	}
	for _, word := range words[1:] {
		if argument.MatchString(word) {
			arguments = append(arguments, word)
		}
	}
	return words[0], arguments
}

// save writes each phase to its own file.
func save(directory string, result Result) error {
	if err := os.Mkdir(directory, 0o700); err != nil {
		return err
	}
	for i := range result.Phases {
		text, err := result.Phases[i].text()
		if err != nil {
			return err
		}
		name := filepath.Join(directory, result.Phases[i].Phase+".yaml")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			return err
		}
		// Programs show the time, which has no meaning here.
		if err := os.Chtimes(name, time.Time{}, time.Unix(0, 0)); err != nil {
			return err
		}
	}
	return nil
}

// coloured returns a unified diff as Git shows it.
func coloured(style cli.Style, text []byte) []byte {
	var out bytes.Buffer
	for line := range strings.Lines(string(text)) {
		bare, end, _ := strings.Cut(line, "\n")
		switch {
		case strings.HasPrefix(bare, "+++"), strings.HasPrefix(bare, "---"):
			bare = style.Bold(bare)
		case strings.HasPrefix(bare, "+"):
			bare = style.Good(bare)
		case strings.HasPrefix(bare, "-"):
			bare = style.Bad(bare)
		case strings.HasPrefix(bare, "@@"):
			bare = style.Dim(bare)
		}
		out.WriteString(bare + end + "\n")
	}
	return out.Bytes()
}
