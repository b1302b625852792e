package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Root is the directory of the cgroup hierarchies, both on the machine and on each node.
const Root = "/sys/fs/cgroup"

// Hierarchy is a mounted cgroup file system.
type Hierarchy struct {
	// Mountpoint is Root itself or a directory in it.
	Mountpoint string
	// Unified says that this is a hierarchy of cgroup version 2.
	Unified bool
	// Options are the mount options with which the same hierarchy can be mounted again, such as "cpu,cpuacct" or
	// "none,name=systemd".
	Options string
}

// Hierarchies returns the machine's hierarchies.
func Hierarchies() ([]Hierarchy, error) {
	content, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("listing mounts: %w", err)
	}
	hierarchies := parse(string(content))
	if len(hierarchies) == 0 {
		return nil, errors.New("no cgroup file system is mounted below " + Root)
	}
	return hierarchies, nil
}

// parse returns the hierarchies in the content of a mountinfo file.
func parse(mountinfo string) []Hierarchy {
	var hierarchies []Hierarchy
	for line := range strings.Lines(mountinfo) {
		mount, filesystem, found := strings.Cut(strings.TrimSpace(line), " - ")
		left, right := strings.Fields(mount), strings.Fields(filesystem)
		if !found || len(left) < 5 || len(right) < 3 {
			continue
		}
		mountpoint := left[4]
		if mountpoint != Root && filepath.Dir(mountpoint) != Root {
			continue
		}
		switch right[0] {
		case "cgroup2":
			hierarchies = append(hierarchies, Hierarchy{Mountpoint: mountpoint, Unified: true})
		case "cgroup":
			hierarchies = append(hierarchies, Hierarchy{Mountpoint: mountpoint, Options: options(right[2])})
		}
	}
	return hierarchies
}

// options returns the super block options that identify a version 1 hierarchy among the others.
func options(super string) string {
	var kept []string
	for option := range strings.SplitSeq(super, ",") {
		switch {
		case strings.HasPrefix(option, "name="):
			kept = append(kept, "none", option)
		case option == "rw" || option == "ro" || option == "xattr" || option == "clone_children" ||
			option == "noprefix" || strings.Contains(option, "="):
		default:
			kept = append(kept, option)
		}
	}
	return strings.Join(kept, ",")
}
