package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/albertofaria/pav/internal/template"
	"github.com/albertofaria/pav/jinja"
	"github.com/albertofaria/pav/jinja/py"
)

// prelude defines a shell function that prints the number of its arguments and the first argument.
const prelude = "p() { printf '%d\\0%s\\0' \"$#\" \"$1\"; }\n"

// batch passes texts as quoted words to bash, and compares them with the output.
func batch(ctx context.Context, texts []string) error {
	words, err := quote(ctx, texts)
	if err != nil {
		return err
	}
	directory, err := os.MkdirTemp("", "tobash")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(directory) }()

	var script strings.Builder
	script.WriteString(prelude)
	for _, word := range words {
		script.WriteString("p " + word + "\n")
	}
	out, err := execute(ctx, directory, script.String())
	if err != nil {
		return err
	}
	return compare(texts, words, out)
}

// quote applies the filter tobash to texts.
func quote(ctx context.Context, texts []string) ([]string, error) {
	filter, err := template.NewEnvironment(template.DefaultLimits()).Compile("{{ text|tobash }}")
	if err != nil {
		return nil, err
	}
	words := make([]string, len(texts))
	for i, text := range texts {
		if words[i], err = quoteOne(ctx, filter, text); err != nil {
			return nil, fmt.Errorf("tobash of %q: %w", text, err)
		}
		if strings.ContainsAny(words[i], "\n\x00") {
			return nil, fmt.Errorf("tobash of %q has a newline or NUL in it: %q", text, words[i])
		}
	}
	return words, nil
}

func quoteOne(ctx context.Context, filter *jinja.Template, text string) (string, error) {
	word, _, err := template.Render(ctx, filter, map[string]py.Value{"text": py.Str(text)})
	return word, err
}

// execute runs a script in a directory, and returns its output. It returns an error if the script leaves a file there.
func execute(ctx context.Context, directory, script string) ([]byte, error) {
	file, err := os.CreateTemp("", "tobash-*.sh")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.Remove(file.Name()) }()
	if _, err := file.WriteString(script); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if err := file.Close(); err != nil {
		return nil, err
	}

	command := exec.CommandContext(ctx, "/bin/bash", "--norc", "--noprofile", file.Name())
	command.Dir = directory
	command.Env = []string{"PATH=", "LC_ALL=C.UTF-8"}
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("bash failed: %w: %.500s", err, stderr.String())
	}
	if stderr.Len() > 0 {
		return nil, fmt.Errorf("bash complains: %.500s", stderr.String())
	}
	left, err := os.ReadDir(directory)
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("a command was executed: it left %q", left[0].Name())
	}
	return out, err
}

func compare(texts, words []string, out []byte) error {
	fields := bytes.Split(out, []byte{0})
	if len(fields) != 2*len(texts)+1 {
		return fmt.Errorf("bash printed %d fields for %d words", len(fields)-1, len(texts))
	}
	for i, text := range texts {
		number, got := string(fields[2*i]), string(fields[2*i+1])
		if number != "1" || got != text {
			return fmt.Errorf("bash takes %s, for %q, for %s words, the first of which is %q", words[i], text, number, got)
		}
	}
	return nil
}
