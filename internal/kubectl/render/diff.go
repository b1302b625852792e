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
	"strings"
	"time"

	"github.com/albertofaria/pav/internal/kubectl/cli"
)

// The directories that are compared.
const (
	oldDirectory = "OLD"
	newDirectory = "NEW"
)

// compare runs the diff program on two renderings, as "kubectl diff" does, and reports whether they differ.
func compare(ctx context.Context, env *cli.Env, before, after Result) (bool, error) {
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
	name, arguments, custom := program()
	command := exec.CommandContext(ctx, name, append(arguments, oldDirectory, newDirectory)...)
	command.Dir = directory
	var found bytes.Buffer
	command.Stdout, command.Stderr = &found, env.ErrOut
	if custom {
		command.Stdin, command.Stdout = env.In, env.Out
	}
	err = command.Run()
	exit, failed := errors.AsType[*exec.ExitError](err)
	if err != nil && (!failed || exit.ExitCode() != 1) {
		return false, fmt.Errorf("running %s: %w", name, err)
	}
	if _, writing := env.Out.Write(coloured(env.Style(), found.Bytes())); writing != nil {
		return false, writing
	}
	return err != nil, nil
}

// argument matches what KUBECTL_EXTERNAL_DIFF may contain in addition to the program, as for kubectl.
var argument = regexp.MustCompile(`^[a-zA-Z0-9-=]+$`)

// program returns the diff program with its flags, and whether the user chose it.
func program() (name string, arguments []string, custom bool) {
	words := strings.Fields(os.Getenv("KUBECTL_EXTERNAL_DIFF"))
	if len(words) == 0 {
		return "diff", []string{"-u", "-N"}, false
	}
	for _, word := range words[1:] {
		if argument.MatchString(word) {
			arguments = append(arguments, word)
		}
	}
	return words[0], arguments, true
}

// save writes each phase to its own file.
func save(directory string, result Result) error {
	if err := os.Mkdir(directory, 0o700); err != nil {
		return err
	}
	for _, phase := range result.Phases {
		var text strings.Builder
		if err := phase.write(&text, cli.Style{}); err != nil {
			return err
		}
		name := filepath.Join(directory, phase.Phase+".yaml")
		if err := os.WriteFile(name, []byte(text.String()), 0o600); err != nil {
			return err
		}
		// diff would show the time, which has no meaning here.
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
		case strings.HasPrefix(bare, "+++"), strings.HasPrefix(bare, "---"), strings.HasPrefix(bare, "diff "):
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
