package machine

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"

	"github.com/albertofaria/pav/test/cluster/internal/control"
)

// run is the node's first process from when it is in all its namespaces.
func run(ctx context.Context, spec Spec) error {
	if err := mountAll(spec); err != nil {
		return err
	}
	if err := unix.Sethostname([]byte(spec.Hostname)); err != nil {
		return fmt.Errorf("setting the host name: %w", err)
	}
	if err := setUpNetwork(ctx, spec); err != nil {
		return err
	}
	// From here on all children are reaped in one place, so no command may be run the ordinary way.
	supervisor := newSupervisor()
	go supervisor.reap()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", control.Socket)
	if err != nil {
		return fmt.Errorf("listening for requests: %w", err)
	}
	return control.Serve(listener, supervisor.handle)
}

func setUpNetwork(ctx context.Context, spec Spec) error {
	for _, arguments := range [][]string{
		{"link", "set", "lo", "up"},
		// A bridge without an address of its own takes that of some port, and changes it as ports
		// come and go, which pods notice as a gateway that is not there for a while.
		{"link", "add", spec.Bridge, "address", spec.Hardware, "type", "bridge"},
		{"addr", "add", spec.Address, "dev", spec.Bridge},
		{"link", "set", spec.Bridge, "up"},
		{"route", "add", "default", "dev", spec.Bridge},
	} {
		if output, err := exec.CommandContext(ctx, "ip", arguments...).CombinedOutput(); err != nil {
			return fmt.Errorf("setting up the network (ip %v): %w: %s", arguments, err, output)
		}
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0); err != nil {
		return fmt.Errorf("letting the node forward packets: %w", err)
	}
	return nil
}
