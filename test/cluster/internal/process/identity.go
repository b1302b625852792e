package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Identity identifies one process. A later process with the same process ID has another identity.
type Identity struct {
	PID int `json:"pid"`
	// Started is the start time of the process, in clock ticks since the machine's boot.
	Started uint64 `json:"started"`
	// Boot is the identifier of that boot of the machine.
	Boot string `json:"boot"`
}

// ErrGone means that the process does not exist, or no longer exists.
var ErrGone = errors.New("process is gone")

// Identify returns the identity of a running process.
func Identify(pid int) (Identity, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return Identity{}, ErrGone
	}
	if err != nil {
		return Identity{}, fmt.Errorf("reading about process %d: %w", pid, err)
	}
	state, started, err := parseStat(string(stat))
	if err != nil {
		return Identity{}, fmt.Errorf("reading about process %d: %w", pid, err)
	}
	if state == "Z" || state == "X" {
		return Identity{}, ErrGone
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return Identity{}, fmt.Errorf("reading the machine's boot identifier: %w", err)
	}
	return Identity{PID: pid, Started: started, Boot: strings.TrimSpace(string(boot))}, nil
}

// parseStat returns the state and the start time in the content of /proc/PID/stat. The second field of the content is a
// name in parentheses, which may contain any characters.
func parseStat(stat string) (string, uint64, error) {
	fields := strings.Fields(stat[strings.LastIndex(stat, ")")+1:])
	const state, started = 0, 19
	if len(fields) <= started {
		return "", 0, fmt.Errorf("unexpected content %q", stat)
	}
	ticks, err := strconv.ParseUint(fields[started], 10, 64)
	if err != nil {
		return "", 0, fmt.Errorf("parsing the start time: %w", err)
	}
	return fields[state], ticks, nil
}

// Running reports whether exactly this process still runs.
func (i Identity) Running() bool {
	current, err := Identify(i.PID)
	return err == nil && current == i
}

// Save writes the identity to a file.
func (i Identity) Save(path string) error {
	content, err := json.Marshal(i)
	if err != nil {
		return fmt.Errorf("encoding a process's identity: %w", err)
	}
	return WriteFile(path, content, 0o644)
}

// Load reads an identity from a file that Save wrote. If the file does not exist, Load returns ErrGone.
func Load(path string) (Identity, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return Identity{}, ErrGone
	}
	if err != nil {
		return Identity{}, fmt.Errorf("reading a process's identity: %w", err)
	}
	var identity Identity
	if err := json.Unmarshal(content, &identity); err != nil {
		return Identity{}, fmt.Errorf("decoding %q: %w", path, err)
	}
	return identity, nil
}

// Kill kills exactly this process with SIGKILL, if it still runs, and waits until it is gone. If it is the first
// process of a PID namespace, all other processes of the namespace end as well.
func (i Identity) Kill(ctx context.Context) error {
	handle, err := unix.PidfdOpen(i.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("opening process %d: %w", i.PID, err)
	}
	defer func() { _ = unix.Close(handle) }()
	// The process is compared after the handle was opened, so that its ID cannot be reused in between.
	if !i.Running() {
		return nil
	}
	if err := unix.PidfdSendSignal(handle, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("ending process %d: %w", i.PID, err)
	}
	err = Until(ctx, 20*time.Millisecond, func() (bool, error) { return !i.Running(), nil })
	if err != nil {
		return fmt.Errorf("waiting for the end of process %d: %w", i.PID, err)
	}
	return nil
}

// WriteFile replaces a file atomically, so that no reader sees an incomplete file.
func WriteFile(path string, content []byte, mode os.FileMode) error {
	temporary := path + ".partial"
	if err := os.WriteFile(temporary, content, mode); err != nil {
		return fmt.Errorf("writing %q: %w", path, err)
	}
	if err := os.Rename(temporary, path); err != nil {
		return fmt.Errorf("writing %q: %w", path, err)
	}
	return nil
}
