package image

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/albertofaria/pav/hack/image/archive"
)

// ShellName is the name of the shell image. The image may have further names.
const ShellName = "docker.io/library/busybox:1.37.0"

// Nonroot is the ID of a user in the shell image. Pods that must not run as root can use it.
const Nonroot = 65532

const directoryMode = fs.ModeDir | 0o755

// Single returns an image with one static program and no other file.
func Single(binary, entrypoint string) archive.Image {
	return archive.Image{
		Entries: []archive.Entry{{Path: entrypoint, Mode: 0o755, Source: binary}},
		Config:  v1.Config{Entrypoint: []string{entrypoint}, WorkingDir: "/"},
	}
}

// Shell returns an image with the machine's static busybox, links for all commands of busybox, and the machine's static
// bash.
func Shell(ctx context.Context) (archive.Image, error) {
	busybox, err := first("/bin/busybox", "/usr/bin/busybox")
	if err != nil {
		return archive.Image{}, err
	}
	bash, err := first("/bin/bash-static", "/usr/bin/bash-static")
	if err != nil {
		return archive.Image{}, err
	}
	var list bytes.Buffer
	command := exec.CommandContext(ctx, busybox, "--list")
	command.Stdout = &list
	if err := command.Run(); err != nil {
		return archive.Image{}, fmt.Errorf("listing the commands of busybox: %w", err)
	}
	return shell(busybox, bash, strings.Fields(list.String())), nil
}

// mountpoint is a command that the busybox image has, and Debian's busybox has not.
const mountpoint = `#!/bin/sh
[ "$1" = -q ] && shift
grep -q " $(readlink -f "$1") " /proc/mounts
`

func shell(busybox, bash string, commands []string) archive.Image {
	entries := []archive.Entry{
		{Path: "bin", Mode: directoryMode},
		{Path: "etc", Mode: directoryMode},
		{Path: "home", Mode: directoryMode},
		{Path: "home/nonroot", Mode: fs.ModeDir | 0o700, Owner: Nonroot},
		{Path: "root", Mode: fs.ModeDir | 0o700},
		{Path: "tmp", Mode: fs.ModeDir | fs.ModeSticky | 0o777},
		{Path: "usr", Mode: directoryMode},
		{Path: "usr/bin", Mode: directoryMode},
		{Path: "usr/bin/env", Link: "/bin/busybox"},
		{Path: "var", Mode: directoryMode},
		{Path: "var/tmp", Mode: fs.ModeDir | fs.ModeSticky | 0o777},
		{Path: "etc/passwd", Mode: 0o644, Content: fmt.Sprintf("root:x:0:0:root:/root:/bin/sh\n"+
			"nobody:x:65534:65534:nobody:/:/bin/false\nnonroot:x:%d:%d:nonroot:/home/nonroot:/bin/sh\n", Nonroot, Nonroot)},
		{Path: "etc/group", Mode: 0o644, Content: fmt.Sprintf("root:x:0:\nnogroup:x:65534:\nnonroot:x:%d:\n", Nonroot)},
		{Path: "bin/busybox", Mode: 0o755, Source: busybox},
		{Path: "bin/bash", Mode: 0o755, Source: bash},
		{Path: "bin/mountpoint", Mode: 0o755, Content: mountpoint},
	}
	for _, command := range commands {
		if command != "busybox" && command != "bash" && command != "mountpoint" {
			entries = append(entries, archive.Entry{Path: "bin/" + command, Link: "busybox"})
		}
	}
	return archive.Image{Entries: entries, Config: v1.Config{
		Cmd: []string{"sh"}, Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
	}}
}

func first(paths ...string) (string, error) {
	for _, path := range paths {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("the shell image needs %s (Debian packages busybox-static and bash-static)", paths[0])
}
