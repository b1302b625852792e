package logind

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/godbus/dbus/v5/prop"
	"golang.org/x/sync/errgroup"
)

// Subcommand is the hidden subcommand of this program for Serve.
const Subcommand = "logind"

// Program is logind's own program, which is in no directory of programs.
const Program = "/lib/systemd/systemd-logind"

const (
	socket = "/run/dbus/system_bus_socket"

	// settings let kubelet delay a shutdown for up to 10 minutes. A kubelet that may not delay it for long enough writes
	// its own settings into /etc, which a node shares with the machine.
	settings     = "[Login]\nInhibitDelayMaxSec=600\n"
	settingsPath = "/run/systemd/logind.conf.d/cluster.conf"

	systemd    = "org.freedesktop.systemd1"
	systemPath = dbus.ObjectPath("/org/freedesktop/systemd1")
	powerOff   = "poweroff.target"
	unitPath   = systemPath + "/unit/poweroff_2etarget"
	jobPath    = systemPath + "/job/1"
)

// Serve runs the bus, the stand-in of systemd and logind on the node of the calling process. It returns when one of
// them has ended, or with the context, and then none of them runs.
func Serve(ctx context.Context) error {
	for _, path := range []string{socket, settingsPath} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("making a directory for logind: %w", err)
		}
	}
	if err := os.WriteFile(settingsPath, []byte(settings), 0o644); err != nil {
		return fmt.Errorf("writing the settings of logind: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return run(ctx, "dbus-daemon", "--system", "--nofork", "--nopidfile", "--nosyslog") })
	group.Go(func() error {
		bus, err := connect(ctx, socket)
		if err != nil {
			return err
		}
		defer func() { _ = bus.Close() }()
		if err := standIn(bus); err != nil {
			return err
		}
		return run(ctx, Program)
	})
	return group.Wait()
}

// run runs a program of the machine until the context ends. That the program ends on its own is an error.
func run(ctx context.Context, program string, arguments ...string) error {
	command := exec.CommandContext(ctx, program, arguments...)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("running %s: %w", program, err)
	}
	return fmt.Errorf("%s has ended", program)
}

// connect connects to the bus of a socket. It waits for a bus that is being started.
func connect(ctx context.Context, socket string) (*dbus.Conn, error) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		bus, err := dbus.Connect("unix:path="+socket, dbus.WithContext(ctx))
		if err == nil {
			return bus, nil
		}
		if !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ECONNREFUSED) {
			return nil, fmt.Errorf("connecting to the system bus: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for the system bus: %w", ctx.Err())
		case <-tick.C:
		}
	}
}

// manager answers what logind asks systemd when it shuts a machine down.
type manager struct{ bus *dbus.Conn }

// StartUnit tells that the job of a unit was made, as systemd does, and does nothing else.
func (m manager) StartUnit(unit, _ string) (dbus.ObjectPath, *dbus.Error) {
	if unit != powerOff {
		return "", dbus.MakeFailedError(fmt.Errorf("this systemd knows only %s", powerOff))
	}
	if err := m.bus.Emit(systemPath, systemd+".Manager.JobNew", uint32(1), jobPath, unit); err != nil {
		return "", dbus.MakeFailedError(err)
	}
	return jobPath, nil
}

// standIn takes the place of systemd on the bus.
func standIn(bus *dbus.Conn) error {
	if err := bus.Export(manager{bus}, systemPath, systemd+".Manager"); err != nil {
		return fmt.Errorf("serving the place of systemd: %w", err)
	}
	_, err := prop.Export(bus, unitPath, prop.Map{systemd + ".Unit": {"LoadState": {Value: "loaded"}}})
	if err != nil {
		return fmt.Errorf("serving %s: %w", powerOff, err)
	}
	got, err := bus.RequestName(systemd, dbus.NameFlagDoNotQueue)
	if err == nil && got != dbus.RequestNameReplyPrimaryOwner {
		err = errors.New("another process has it")
	}
	if err != nil {
		return fmt.Errorf("taking the name %s: %w", systemd, err)
	}
	return nil
}
