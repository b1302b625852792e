package cli

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/albertofaria/pav/test/cluster/internal/control"
	"github.com/albertofaria/pav/test/cluster/internal/logind"
	"github.com/albertofaria/pav/test/cluster/internal/sshd"
)

// newSSHD returns the hidden command with which a node's first process starts the SSH server.
func newSSHD() *cobra.Command {
	var address, key string
	command := &cobra.Command{
		Use: sshd.Subcommand, Hidden: true, Args: cobra.NoArgs,
		RunE: func(called *cobra.Command, _ []string) error {
			if err := sshd.WriteTools(sshd.ToolsDirectory); err != nil {
				return err
			}
			server, err := sshd.New(key, sshd.WithTools(os.Environ(), sshd.ToolsDirectory))
			if err != nil {
				return err
			}
			listener, err := (&net.ListenConfig{}).Listen(called.Context(), "tcp", address)
			if err != nil {
				return fmt.Errorf("listening for SSH: %w", err)
			}
			return server.Serve(listener)
		},
	}
	command.Flags().StringVar(&address, "address", "", "address and port to listen on")
	command.Flags().StringVar(&key, "key", "", "file of the public key that is let in")
	return command
}

// newLogind returns the hidden command with which a node's first process starts logind.
func newLogind() *cobra.Command {
	return &cobra.Command{
		Use: logind.Subcommand, Hidden: true, Args: cobra.NoArgs,
		RunE: func(called *cobra.Command, _ []string) error {
			ctx, cancel := interruptible(called)
			defer cancel()
			return logind.Serve(ctx)
		},
	}
}

// inactive is the exit code of "systemctl is-active" for a unit that does not run.
const inactive = 3

// newSystemctl returns the command that SSH sessions find as systemctl. Its units are the node's components.
func newSystemctl(socket string) *cobra.Command {
	systemctl := &cobra.Command{
		Use: "systemctl", Hidden: true, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return errors.New("this systemctl knows start, stop, restart, is-active and show")
		},
	}
	for _, operation := range []control.Operation{control.Start, control.Stop, control.Restart} {
		systemctl.AddCommand(&cobra.Command{
			Use: string(operation) + " UNIT", Args: cobra.ExactArgs(1),
			RunE: func(called *cobra.Command, arguments []string) error {
				_, err := control.CallSocket(called.Context(), socket, control.Request{Operation: operation, Name: unit(arguments[0])})
				return err
			},
		})
	}
	systemctl.AddCommand(newIsActive(socket), newShow(socket))
	return systemctl
}

func newIsActive(socket string) *cobra.Command {
	return &cobra.Command{
		Use: "is-active UNIT", Args: cobra.ExactArgs(1),
		RunE: func(called *cobra.Command, arguments []string) error {
			state, err := activeState(called, socket, arguments[0])
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintln(called.OutOrStdout(), state); err != nil {
				return err
			}
			if state != active {
				return exitError{code: inactive}
			}
			return nil
		},
	}
}

func newShow(socket string) *cobra.Command {
	const known = "ActiveState"
	var property string
	var value bool
	command := &cobra.Command{
		Use: "show UNIT --property " + known, Args: cobra.ExactArgs(1),
		RunE: func(called *cobra.Command, arguments []string) error {
			if property != known {
				return fmt.Errorf("this systemctl shows %s, not %q", known, property)
			}
			state, err := activeState(called, socket, arguments[0])
			if err != nil {
				return err
			}
			if !value {
				state = known + "=" + state
			}
			_, err = fmt.Fprintln(called.OutOrStdout(), state)
			return err
		},
	}
	command.Flags().StringVarP(&property, "property", "p", "", "the property")
	command.Flags().BoolVar(&value, "value", false, "print the value only")
	return command
}

// active is the state of a running unit in the words of systemd.
const active = "active"

func activeState(called *cobra.Command, socket, name string) (string, error) {
	states, err := control.CallSocket(called.Context(), socket, control.Request{Operation: control.Status})
	if err != nil {
		return "", err
	}
	index := slices.IndexFunc(states, func(state control.State) bool { return state.Name == unit(name) })
	switch {
	case index < 0:
		return "", fmt.Errorf("there is no component %q here", name)
	case states[index].Running:
		return active, nil
	default:
		return "inactive", nil
	}
}

// unit returns the name of the component for the name of a unit.
func unit(name string) string { return strings.TrimSuffix(name, ".service") }
