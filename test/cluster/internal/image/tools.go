package image

import (
	"context"
	"fmt"
	"io/fs"
	"os/exec"
	"path"
	"strings"

	"github.com/albertofaria/pav/hack/image/archive"
	"github.com/albertofaria/pav/test/cluster/internal/debian"
)

// ToolsName is the name of the image of storage tools. The version must change with the content.
const ToolsName = "localhost/storage-tools:4"

// tools are the programs of the machine that this image has in addition to those of the shell image.
var tools = []string{"bindfs", "blockdev", "cp", "e2fsck", "fio", "losetup", "mkfs.ext3", "mkfs.ext4", "mkfs.xfs", "mount", "resize2fs", "umount", "xfs_growfs"}

// Tools returns the shell image plus the machine's programs that create, mount and test devices and file systems, and
// the shared libraries of these programs.
func Tools(ctx context.Context) (archive.Image, error) {
	image, err := Shell(ctx)
	if err != nil {
		return archive.Image{}, err
	}
	// This directory is first in the image's PATH, before the commands of busybox.
	entries := []archive.Entry{{Path: "usr/local", Mode: directoryMode}, {Path: "usr/local/bin", Mode: directoryMode}}
	var libraries []string
	for _, tool := range tools {
		program, err := debian.Find(tool)
		if err != nil {
			return archive.Image{}, err
		}
		needed, err := exec.CommandContext(ctx, "ldd", program).Output()
		if err != nil {
			return archive.Image{}, fmt.Errorf("listing the libraries of %s: %w", program, err)
		}
		entries = append(entries, archive.Entry{Path: "usr/local/bin/" + tool, Mode: 0o755, Source: program})
		libraries = append(libraries, paths(string(needed))...)
	}
	image.Entries = withFiles(append(image.Entries, entries...), libraries)
	return image, nil
}

// paths returns the paths of files in the output of ldd.
func paths(listed string) []string {
	var files []string
	for line := range strings.Lines(listed) {
		for field := range strings.FieldsSeq(line) {
			if strings.HasPrefix(field, "/") {
				files = append(files, field)
				break
			}
		}
	}
	return files
}

// withFiles adds files of the machine, at the same paths, and their parent directories. It adds each file and directory
// only once.
func withFiles(entries []archive.Entry, files []string) []archive.Entry {
	have := map[string]bool{".": true}
	for _, entry := range entries {
		have[entry.Path] = true
	}
	var addDirectory func(directory string)
	addDirectory = func(directory string) {
		if have[directory] {
			return
		}
		addDirectory(path.Dir(directory))
		have[directory] = true
		entries = append(entries, archive.Entry{Path: directory, Mode: directoryMode})
	}
	for _, file := range files {
		name := strings.TrimPrefix(file, "/")
		if have[name] {
			continue
		}
		addDirectory(path.Dir(name))
		have[name] = true
		entries = append(entries, archive.Entry{Path: name, Mode: fs.FileMode(0o755), Source: file})
	}
	return entries
}
