package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// toolsImage has fio, losetup and bindfs. All nodes of the test cluster have it.
const toolsImage = "localhost/storage-tools:4"

// dataManifest has provisioners whose volumes are the directory, the loop device, and the directory through FUSE.
//
//go:embed manifests/data.yaml
var dataManifest string

// accesses are the access patterns of fio.
var accesses = []struct{ figure, arguments string }{
	{"sequential write, 1 MiB", "--rw=write --bs=1M"},
	{"sequential read, 1 MiB", "--rw=read --bs=1M"},
	{"random write, 4 KiB", "--rw=randwrite --bs=4k"},
	{"random read, 4 KiB", "--rw=randread --bs=4k"},
}

// medium is a kind of storage. The files of the subjects are the same storage with and without a provisioner.
type medium struct {
	name, title string
	class       string // of PaV's volume
	plain, pav  string
	// direct says whether fio can go past the page cache.
	direct bool
	peers  []fileOf
}

// fileOf is a file in the pod that runs fio.
type fileOf struct{ name, path string }

var media = []medium{
	{
		name: "data-directory", title: "Data path of a directory of the node", class: "bench-directory",
		plain: "/storage/directory/file", pav: "/pav-directory/file", direct: true,
		peers: []fileOf{{nameLocalPath, "/local-path/file"}},
	},
	{
		name: "data-device", title: "Data path of a loop device of the node, as a block volume", class: "bench-device",
		plain: "/dev/plain-device", pav: "/dev/pav-device", direct: true,
	},
	{
		name: "data-fuse", title: "Data path of a FUSE file system (bindfs)", class: "bench-fuse",
		plain: "/storage/fuse/file", pav: "/pav-fuse/file",
	},
}

// Size of the file and of the device, and how long each measurement takes.
const (
	fioSize = "256M"
	fioTime = "500ms"
)

// dataCases measure reads and writes. One pod has all storage, both as volumes of PaV and directly.
func dataCases() []benchCase {
	var found []benchCase
	for _, m := range media {
		c := benchCase{name: m.name, title: m.title, warm: true, prepare: func(ctx context.Context, w *world) error { return w.prepareData(ctx, m) }}
		for _, access := range accesses {
			c.figures = append(c.figures, figure{access.figure, "MiB/s"})
		}
		c.subjects = append(c.subjects,
			m.subject("without a provisioner", floor, m.plain),
			// The same as the floor: how far its ratio is from 1 says how little a ratio may mean.
			m.subject("the floor again", reference, m.plain))
		for _, other := range m.peers {
			c.subjects = append(c.subjects, m.subject(other.name, peer, other.path))
		}
		c.subjects = append(c.subjects, m.subject("PaV", product, m.pav))
		found = append(found, c)
	}
	return found
}

// ioPodName is the name of the pod that runs fio, and hostPodName that of the pod that makes the storage.
const (
	ioPodName   = "io"
	hostPodName = "host"
)

func (m medium) subject(name string, role role, path string) subject {
	return subject{name, role, func(ctx context.Context, _ *world) ([]float64, error) {
		var speeds []float64
		for _, access := range accesses {
			speed, err := m.fio(ctx, path, access.arguments+" --time_based --runtime="+fioTime)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", access.figure, err)
			}
			speeds = append(speeds, speed/(1<<20))
		}
		return speeds, nil
	}}
}

// fio reads or writes a file, and returns bytes per second.
func (m medium) fio(ctx context.Context, path, arguments string) (float64, error) {
	direct := 0
	if m.direct {
		direct = 1
	}
	// Data that is not on the disk yet would slow down what comes next.
	out, err := inPod(ctx, ioPodName, fmt.Sprintf(
		"sync; fio --output-format=json --name=job --thread --ioengine=psync --direct=%d --size=%s --filename=%s %s", direct, fioSize, path, arguments))
	if err != nil {
		return 0, err
	}
	return speedIn(out)
}

// speedIn returns the bytes per second of the only job in fio's output.
func speedIn(out []byte) (float64, error) {
	var result struct {
		Jobs []struct {
			Read, Write struct {
				Speed float64 `json:"bw_bytes"`
			}
		}
	}
	if err := json.Unmarshal(out, &result); err != nil {
		return 0, fmt.Errorf("reading the output of fio: %w: %s", err, out)
	}
	if len(result.Jobs) != 1 {
		return 0, fmt.Errorf("fio had %d jobs, not one: %s", len(result.Jobs), out)
	}
	return result.Jobs[0].Read.Speed + result.Jobs[0].Write.Speed, nil
}

// prepareData makes the storage of all media on the node, starts the pod that uses it, and fills the files of one medium,
// so that there is something to read.
func (w *world) prepareData(ctx context.Context, m medium) error {
	host := w.privileged(hostPodName, corev1.MountPropagationBidirectional)
	if err := w.started(ctx, host); err != nil {
		return err
	}
	out, err := inPod(ctx, hostPodName, "set -e; mkdir -p /storage/{directory,fuse,behind}; truncate -s "+fioSize+" /storage/device; "+
		"losetup --find --show /storage/device; bindfs /storage/behind /storage/fuse")
	if err != nil {
		return err
	}
	device := strings.TrimSpace(string(out))
	w.undo = append(w.undo, func(ctx context.Context) error {
		_, err := inPod(ctx, hostPodName, "umount /storage/fuse; losetup --detach "+device+"; rm -rf /storage/*")
		return err
	})
	if err := w.apply(ctx, strings.TrimSpace(strings.NewReplacer("TOOLS", toolsImage, "NUMBER", strings.TrimPrefix(device, "/dev/loop")).Replace(dataManifest))); err != nil {
		return err
	}
	pod, claims := w.ioPod(device)
	if err := w.create(ctx, claims...); err != nil {
		return err
	}
	if err := w.started(ctx, pod); err != nil {
		return err
	}
	for _, file := range append([]fileOf{{"", m.plain}}, m.peers...) {
		if _, err := m.fio(ctx, file.path, "--rw=write --bs=1M"); err != nil {
			return err
		}
	}
	return nil
}

// privileged returns a pod with the node's storage directory and devices.
func (w *world) privileged(name string, propagation corev1.MountPropagationMode) *corev1.Pod {
	pod := w.client()
	pod.Name = name
	container := &pod.Spec.Containers[0]
	container.Image = toolsImage
	container.SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
	for _, from := range []struct{ name, path string }{{"storage", storageOf}, {"dev", "/dev"}} {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: from.name, VolumeSource: corev1.VolumeSource{
			HostPath: &corev1.HostPathVolumeSource{Path: from.path, Type: new(corev1.HostPathDirectoryOrCreate)},
		}})
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: from.name, MountPath: "/" + from.name})
	}
	container.VolumeMounts[0].MountPropagation = &propagation
	return pod
}

// ioPod returns the pod that has all storage with and without PaV, and its claims.
func (w *world) ioPod(device string) (*corev1.Pod, []client.Object) {
	pod := w.privileged(ioPodName, corev1.MountPropagationHostToContainer)
	container := &pod.Spec.Containers[0]
	// The device is shown by a file of its own, as that of the volume is.
	pod.Spec.Volumes[1] = corev1.Volume{Name: "plain", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: device}}}
	container.VolumeMounts[1] = corev1.VolumeMount{Name: "plain", MountPath: "/dev/plain-device"}
	var claims []client.Object
	for _, volume := range []struct{ name, class, path string }{
		{"directory", "bench-directory", "/pav-directory"},
		{"fuse", "bench-fuse", "/pav-fuse"},
		{"device", "bench-device", ""},
		{"local-path", localPath.className(wait), "/local-path"},
	} {
		claim := w.claims(1, volume.class)[0]
		if volume.path == "" {
			claim.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
			container.VolumeDevices = append(container.VolumeDevices, corev1.VolumeDevice{Name: volume.name, DevicePath: "/dev/pav-device"})
		} else {
			container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: volume.name, MountPath: volume.path})
		}
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: volume.name, VolumeSource: claimed(claim)[0]})
		claims = append(claims, claim)
	}
	return pod, claims
}
