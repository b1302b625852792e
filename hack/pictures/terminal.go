package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/albertofaria/pav/internal/kubectl"
	"github.com/albertofaria/pav/internal/kubectl/cli"
)

// onTerminal runs a "kubectl pav" command that needs no cluster, and returns what it prints on a terminal, with
// colours and the exit status if it is not 0.
func onTerminal(command string) (string, error) {
	arguments, ok := strings.CutPrefix(command, "kubectl pav ")
	if !ok {
		return "", fmt.Errorf("%q is not a command of kubectl pav", command)
	}
	// The picture must not depend on the terminal of the person who draws it.
	if err := errors.Join(os.Unsetenv("NO_COLOR"), os.Setenv("TERM", "xterm")); err != nil {
		return "", fmt.Errorf("setting the terminal: %w", err)
	}
	reader, terminal, err := openTerminal()
	if err != nil {
		return "", fmt.Errorf("opening a pseudo-terminal: %w", err)
	}
	done := make(chan string)
	go func() {
		// Linux reports EIO when the terminal is closed.
		printed, _ := io.ReadAll(reader)
		done <- strings.ReplaceAll(string(printed), "\r\n", "\n")
	}()
	err = execute(terminal, strings.Fields(arguments))
	closed := terminal.Close()
	output := <-done
	if closed = errors.Join(closed, reader.Close()); closed != nil {
		return "", fmt.Errorf("closing the pseudo-terminal: %w", closed)
	}
	if exit, failed := errors.AsType[*cli.ExitError](err); failed && exit.Err == nil {
		return output + colours.Dim(fmt.Sprintf("(exit status %d)", exit.Code)) + "\n", nil
	}
	return output, err
}

// execute runs kubectl pav with its output to a writer.
func execute(out io.Writer, arguments []string) error {
	root := kubectl.Root(&cli.Env{
		IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: out},
		Config:    genericclioptions.NewConfigFlags(true),
	})
	root.SetArgs(arguments)
	return root.Execute()
}

// openTerminal returns a new pseudo-terminal, and the file from which the output to it can be read.
func openTerminal() (reader, terminal *os.File, err error) {
	reader, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	terminal, err = peer(reader)
	if err != nil {
		return nil, nil, errors.Join(err, reader.Close())
	}
	return reader, terminal, nil
}

// peer unlocks and opens the other end of a pseudo-terminal.
func peer(reader *os.File) (*os.File, error) {
	fd := int(reader.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return nil, err
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return nil, err
	}
	return os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
}
