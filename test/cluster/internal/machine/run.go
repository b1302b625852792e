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

// run is the main function of the node's first process, after the process has entered all its namespaces.
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
	// From here on, the supervisor reaps all children. os/exec must not be used any more, because it would wait for its
	// children itself.
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
		// Without an address of its own, a bridge takes the hardware address of one of its ports. The address then
		// changes when ports appear and disappear, and for a while pods cannot reach their gateway.
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
