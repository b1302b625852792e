// Package oracle asks the real Jinja2, in a process of Python, what templates give.
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

// python is the interpreter of the system, for which the installer has what it needs.
const python = "/usr/bin/python3"

//go:embed oracle.py
var program string

//go:embed install
var installer string

// Install makes sure that there is a Python with Jinja2 and PyYAML.
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

// Oracle is a process of Python, which is started again should it die. It is not for concurrent use.
type Oracle struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
}

// Ask returns the outcomes of questions, in their order. The class of those on which Python gave up is
// cases.ClassLimit.
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
			// It died of the question that it did not answer.
			o.Close()
			outcomes = append(outcomes, cases.Outcome{Class: cases.ClassLimit, Message: err.Error()})
		}
	}
	return outcomes, nil
}

func (o *Oracle) start(ctx context.Context) error {
	o.command = exec.CommandContext(ctx, python, "-c", program)
	o.command.Stderr = os.Stderr
	// The order of sets, which some templates can see, is that of hashes.
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
			// Ends the writer, too, which may wait for a process that does not read.
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

// Close ends the process.
func (o *Oracle) Close() {
	if o.command == nil {
		return
	}
	// Its exit status tells nothing: it is told to end.
	_ = o.in.Close()
	_ = o.command.Process.Kill()
	_ = o.command.Wait()
	o.command = nil
}
