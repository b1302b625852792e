package kubelet

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// Mounts returns the mounts below the kubelet's directory: the relative path, the options that bind mounts have, and
// the type of the file system. If several are at one path, all are listed.
func (k *Kubelet) Mounts() ([]string, error) {
	infos, err := mountinfo.GetMounts(func(info *mountinfo.Info) (skip, stop bool) {
		return !strings.HasPrefix(info.Mountpoint, k.Dir+"/"), false
	})
	if err != nil {
		return nil, err
	}
	list := make([]string, 0, len(infos))
	for _, info := range infos {
		options := slices.DeleteFunc(strings.Split(info.Options, ","), func(option string) bool { return option == "relatime" })
		list = append(list, fmt.Sprintf("%s %s %s", strings.TrimPrefix(info.Mountpoint, k.Dir+"/"), strings.Join(options, ","), info.FSType))
	}
	slices.Sort(list)
	return list, nil
}

// Left returns the remains of deleted volumes on the node: all mounts and files except PaV's directory with its
// sockets, links to these, and the kubelet's own directories.
func (k *Kubelet) Left() ([]string, error) {
	left, err := k.Mounts()
	if err != nil {
		return nil, err
	}
	own := filepath.Join("plugins", pavv1.Driver)
	expected := []string{
		".", "plugins", "pods", "plugins_registry", own, filepath.Join(own, "csi"), filepath.Join(own, "stages"), filepath.Join(own, "pods"),
	}
	err = filepath.WalkDir(k.Dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(k.Dir, path)
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		if filepath.Dir(name) == "plugins_registry" {
			if target, err := os.Stat(path); err == nil {
				info = target // a link to the socket of a driver
			}
		}
		if entry.IsDir() && slices.Contains(expected, name) || info.Mode()&fs.ModeSocket != 0 {
			return nil
		}
		left = append(left, name)
		return nil
	})
	return left, err
}
