package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/albertofaria/pav/internal/mount"
	"github.com/albertofaria/pav/internal/node/pavdir"
)

// openHost returns the mount namespace of the host, and its current start.
func openHost(ctx context.Context, o Options) (*mount.Namespace, pavdir.Boot, error) {
	host, err := mount.Open(o.MountNamespace)
	if err != nil {
		return nil, pavdir.Boot{}, fmt.Errorf("opening the host's mount namespace (does the pod have hostPID?): %w", err)
	}
	boot, err := readBoot(ctx, host)
	if err != nil {
		return nil, pavdir.Boot{}, errors.Join(err, host.Close())
	}
	return host, boot, nil
}

// readBoot returns the current start of the host. Both files are read below the host's /proc, so that process 1 is
// that of the host's PID namespace: on a node that is a container, the first process of the container.
func readBoot(ctx context.Context, host *mount.Namespace) (pavdir.Boot, error) {
	return mount.In(ctx, host, func() (pavdir.Boot, error) {
		id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
		if err != nil {
			return pavdir.Boot{}, fmt.Errorf("reading the boot ID: %w", err)
		}
		stat, err := os.ReadFile("/proc/1/stat")
		if err != nil {
			return pavdir.Boot{}, fmt.Errorf("reading when process 1 started: %w", err)
		}
		started, err := startOf(string(stat))
		return pavdir.Boot{BootID: strings.TrimSpace(string(id)), NodeStart: started}, err
	})
}

// startOf returns when a process started, in clock ticks since the boot, from its proc_pid_stat(5).
func startOf(stat string) (string, error) {
	// The second field, a name in parentheses, may have any characters; the 22nd is the time.
	fields := strings.Fields(stat[strings.LastIndex(stat, ")")+1:])
	const after = 22 - 3
	if len(fields) <= after {
		return "", fmt.Errorf("reading when process 1 started: %q is not the status of a process", stat)
	}
	return fields[after], nil
}
