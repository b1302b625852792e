package machine

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Describe returns what the figures depend on besides the programs.
func Describe() (string, error) {
	processors, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "", fmt.Errorf("looking at the machine: %w", err)
	}
	memory, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return "", fmt.Errorf("looking at the machine: %w", err)
	}
	kilobytes, err := strconv.ParseFloat(strings.TrimSuffix(Value(string(memory), "MemTotal"), " kB"), 64)
	if err != nil {
		return "", fmt.Errorf("looking at the machine's memory: %w", err)
	}
	var kernel unix.Utsname
	if err := unix.Uname(&kernel); err != nil {
		return "", fmt.Errorf("looking at the kernel: %w", err)
	}
	return fmt.Sprintf("%s, %d cores, %.1f GiB of memory, Linux %s",
		Value(string(processors), "model name"), runtime.NumCPU(), kilobytes/(1<<20), unix.ByteSliceToString(kernel.Release[:])), nil
}

// Value returns the value of the first line with a name, in files such as /proc/cpuinfo.
func Value(text, name string) string {
	for line := range strings.Lines(text) {
		if found, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(found) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// Load returns the load averages of the last 1, 5 and 15 minutes.
func Load() (string, error) {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "", fmt.Errorf("looking at the load: %w", err)
	}
	fields := strings.Fields(string(text))
	return strings.Join(fields[:min(3, len(fields))], " "), nil
}
