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

// Identity tells one process from any other, also from a later one that got the same number.
type Identity struct {
	PID int `json:"pid"`
	// Started is the process's start, in clock ticks since the machine's own start.
	Started uint64 `json:"started"`
	// Boot is the identifier of that start of the machine.
	Boot string `json:"boot"`
}

// ErrGone means that the process does not exist (any more).
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

// parseStat takes the state and the start time out of the content of /proc/PID/stat, whose second
// field is a name in parentheses that may itself contain anything.
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

// Load reads what Save wrote. A missing file means a process that is gone.
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

// Kill ends exactly this process with SIGKILL, if it still runs, and waits until it is gone. The
// end of a namespace's first process includes the end of all others in the namespace.
func (i Identity) Kill(ctx context.Context) error {
	handle, err := unix.PidfdOpen(i.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("opening process %d: %w", i.PID, err)
	}
	defer func() { _ = unix.Close(handle) }()
	// The comparison comes after the handle was opened, so that the number cannot change its owner.
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

// WriteFile replaces a file at once, so that no reader sees half of it.
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
