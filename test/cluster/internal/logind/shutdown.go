package logind

import (
	"context"
	"errors"
	"fmt"

	"github.com/godbus/dbus/v5"
)

const (
	login     = "org.freedesktop.login1"
	loginPath = dbus.ObjectPath("/org/freedesktop/login1")
)

// Shutdown asks logind of a node to power the node off, and returns when logind does so: when no program delays it any
// more. pid is the ID of the node's first process in the caller's PID namespace.
func Shutdown(ctx context.Context, pid int) error {
	bus, err := dbus.Connect(fmt.Sprintf("unix:path=/proc/%d/root%s", pid, socket), dbus.WithContext(ctx))
	if err != nil {
		return fmt.Errorf("connecting to the node's system bus: %w", err)
	}
	defer func() { _ = bus.Close() }()
	jobs := make(chan *dbus.Signal, 1)
	bus.Signal(jobs)
	if err := bus.AddMatchSignalContext(ctx, dbus.WithMatchSender(systemd), dbus.WithMatchMember("JobNew")); err != nil {
		return fmt.Errorf("waiting for the node to power off: %w", err)
	}
	if err := bus.Object(login, loginPath).CallWithContext(ctx, login+".Manager.PowerOff", 0, false).Err; err != nil {
		return fmt.Errorf("asking logind to power the node off: %w", err)
	}
	for {
		select {
		case job, open := <-jobs:
			if !open {
				return errors.New("the node's system bus has ended")
			}
			if job.Name == systemd+".Manager.JobNew" {
				return nil
			}
		case <-ctx.Done():
			return fmt.Errorf("waiting for the node to power off: %w", ctx.Err())
		}
	}
}
