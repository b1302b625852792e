// Package oracle evaluates templates with the real Jinja2, in a Python process.
package oracle

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/albertofaria/pav/test/jinja/cases"
)

// python is the system's interpreter. The installer installs its packages.
const python = "/usr/bin/python3"

//go:embed oracle.py
var program string

//go:embed install
var installer string

// Install makes sure that Python, Jinja2 and PyYAML are installed.
func Install(ctx context.Context) error {
	command := exec.CommandContext(ctx, "bash", "-c", installer)
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("installing Jinja2: %w", err)
	}
	return nil
}

// Question is a template and its context, in JSON.
type Question struct {
	Template string          `json:"template"`
	Context  json.RawMessage `json:"ctx"`
}

// Oracle is a Python process. It is started again if it dies. It is not safe for concurrent use.
type Oracle struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
}

// Ask returns the outcomes of the questions, in the same order. If Python died of a question, the class of its outcome
// is cases.ClassLimit.
func (o *Oracle) Ask(ctx context.Context, questions []Question) ([]cases.Outcome, error) {
	outcomes := make([]cases.Outcome, 0, len(questions))
	for len(outcomes) < len(questions) {
		if o.command == nil {
			if err := o.start(ctx); err != nil {
				return nil, err
			}
		}
		answered, err := o.ask(questions[len(outcomes):])
		outcomes = append(outcomes, answered...)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			// The process died of the first question without an answer.
			o.Close()
			outcomes = append(outcomes, cases.Outcome{Class: cases.ClassLimit, Message: err.Error()})
		}
	}
	return outcomes, nil
}

func (o *Oracle) start(ctx context.Context) error {
	o.command = exec.CommandContext(ctx, python, "-c", program)
	o.command.Stderr = os.Stderr
	// The order of a set depends on hashes, and some templates can see it.
	o.command.Env = []string{"PYTHONHASHSEED=0", "PYTHONIOENCODING=utf-8", "LC_ALL=C.UTF-8"}
	in, err := o.command.StdinPipe()
	if err != nil {
		return err
	}
	out, err := o.command.StdoutPipe()
	if err != nil {
		return err
	}
	o.in, o.out = in, bufio.NewReaderSize(out, 1<<16)
	if err := o.command.Start(); err != nil {
		return fmt.Errorf("starting Python: %w", err)
	}
	return nil
}

func (o *Oracle) ask(questions []Question) ([]cases.Outcome, error) {
	written := make(chan error, 1)
	in := o.in
	go func() { written <- write(in, questions) }()

	var outcomes []cases.Outcome
	for range questions {
		line, err := o.out.ReadBytes('\n')
		if err != nil {
			// Closing the input also ends the writer, which may wait for a process that does not read.
			return outcomes, errors.Join(err, in.Close(), <-written)
		}
		var outcome cases.Outcome
		if err := json.Unmarshal(line, &outcome); err != nil {
			return outcomes, fmt.Errorf("reading an answer: %w", err)
		}
		outcomes = append(outcomes, outcome)
	}
	return outcomes, <-written
}

func write(in io.Writer, questions []Question) error {
	buffered := bufio.NewWriterSize(in, 1<<16)
	encoder := json.NewEncoder(buffered)
	encoder.SetEscapeHTML(false)
	for _, question := range questions {
		if err := encoder.Encode(question); err != nil {
			return err
		}
	}
	return buffered.Flush()
}

// Close kills the process, if it runs.
func (o *Oracle) Close() {
	if o.command == nil {
		return
	}
	// The exit status has no meaning, because the process is killed.
	_ = o.in.Close()
	_ = o.command.Process.Kill()
	_ = o.command.Wait()
	o.command = nil
}
