package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// toolsImage has fio and losetup. All nodes of the test cluster have it.
const toolsImage = "localhost/storage-tools:2"

// storage has provisioners whose volumes are a directory and a device of the node, and a StorageClass and a claim for
// each.
const storage = `
apiVersion: pav.albertofaria.github.io/v1alpha1
kind: PavProvisioner
metadata: {name: bench-directory}
spec:
  provisioningModes: [Dynamic]
  volumeValidation: {volumeModes: [Filesystem]}
  volumeCreation: {capacity: "{{ requestedMinCapacity }}"}
  volumeStaging:
    podTemplate:
      spec:
        containers:
          - name: stage
            image: TOOLS
            command: [bash, -ec, "mkdir /pav/volume; mount --bind /storage/directory /pav/volume"]
            securityContext: {privileged: true}
            volumeMounts: [{name: storage, mountPath: /storage}]
        volumes: [{name: storage, hostPath: {path: /var/lib/pav-bench}}]
  volumeUnstaging:
    podTemplate:
      spec:
        containers:
          - name: unstage
            image: TOOLS
            command: [bash, -ec, "if grep -q ' /pav/volume ' /proc/mounts; then umount /pav/volume; fi"]
            securityContext: {privileged: true}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: bench-directory}
provisioner: bench-directory
---
apiVersion: pav.albertofaria.github.io/v1alpha1
kind: PavProvisioner
metadata: {name: bench-device}
spec:
  provisioningModes: [Dynamic]
  volumeValidation: {volumeModes: [Block]}
  volumeCreation: {capacity: "{{ requestedMinCapacity }}"}
  volumeStaging:
    podTemplate:
      spec:
        containers:
          - name: stage
            image: TOOLS
            command: [bash, -ec, "mknod /pav/volume b 7 NUMBER"]
            securityContext: {privileged: true}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: bench-device}
provisioner: bench-device
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: directory}
spec: {storageClassName: bench-directory, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: device}
spec: {storageClassName: bench-device, volumeMode: Block, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}`

// ioCases are the access patterns of fio.
var ioCases = []struct{ name, arguments string }{
	{"sequential write, 1 MiB", "--rw=write --bs=1M"},
	{"sequential read, 1 MiB", "--rw=read --bs=1M"},
	{"random write, 4 KiB", "--rw=randwrite --bs=4k"},
	{"random read, 4 KiB", "--rw=randread --bs=4k"},
}

// ioMedia are the files and devices that fio uses: with PaV, and the same ones without PaV.
var ioMedia = []struct{ name, pav, plain string }{
	{"directory", "/pav-directory/file", "/storage/directory/file"},
	{"block device", "/dev/pav-device", "/dev/plain-device"},
}

// measureData measures the I/O of one container that has a directory and a device of the node, both directly and as PaV
// volumes.
func measureData(ctx context.Context, w *world, s settings, out io.Writer) error {
	device, err := makeStorage(ctx, w, s.size)
	if err != nil {
		return err
	}
	text := strings.NewReplacer("TOOLS", toolsImage, "NUMBER", strings.TrimPrefix(device, "/dev/loop")).Replace(strings.TrimSpace(storage))
	if err := w.apply(ctx, text); err != nil {
		return err
	}
	if _, err := w.running(ctx, w.ioPod(device), time.Now()); err != nil {
		return err
	}
	table := newTable(out)
	table.rowf("\nData path, medians of %d turns of %s\twithout PaV\tratio with PaV\tmiddle half\tthe same without PaV again\tmiddle half", s.rounds, s.runtime)
	for _, medium := range ioMedia {
		if err := fill(ctx, s, medium.plain); err != nil {
			return err
		}
		for _, c := range ioCases {
			speeds, err := compareIO(ctx, s, c.arguments, medium.plain, medium.pav)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", medium.name, c.name, err)
			}
			plain := speeds["plain"]
			ratios, noise := speeds["pav"].over(plain), speeds["again"].over(plain)
			table.rowf("  %s, %s\t%.0f MiB/s\t%.2f\t%s\t%.2f\t%s", medium.name, c.name,
				plain.median()/(1<<20), ratios.median(), ratios.middle(), noise.median(), noise.middle())
		}
	}
	return table.end()
}

// makeStorage creates the directory and the device on the node, and returns the device. Both are removed when the world
// is closed.
func makeStorage(ctx context.Context, w *world, size string) (string, error) {
	host := w.privileged("host")
	if _, err := w.running(ctx, host, time.Now()); err != nil {
		return "", err
	}
	out, err := inPod(ctx, "host", "set -e; mkdir -p /storage/directory; truncate -s "+size+" /storage/device; losetup --find --show /storage/device")
	if err != nil {
		return "", err
	}
	device := strings.TrimSpace(string(out))
	w.undo = append(w.undo, func(ctx context.Context) error {
		_, err := inPod(ctx, "host", "losetup --detach "+device+"; rm -rf /storage/*")
		return err
	})
	return device, nil
}

// privileged returns a pod with the node's storage directory and devices.
func (w *world) privileged(name string) *corev1.Pod {
	pod := w.client(name)
	pod.Spec.Containers[0].Image = toolsImage
	pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
	for path, source := range map[string]string{"/storage": "/var/lib/pav-bench", "/dev": "/dev"} {
		volume := strings.Trim(path, "/")
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{
			HostPath: &corev1.HostPathVolumeSource{Path: source, Type: new(corev1.HostPathDirectoryOrCreate)},
		}})
		pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: volume, MountPath: path})
	}
	return pod
}

// ioPod returns the pod that has the storage both with and without PaV.
func (w *world) ioPod(device string) *corev1.Pod {
	pod := w.client("io")
	container := &pod.Spec.Containers[0]
	container.Image = toolsImage
	container.SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
	pod.Spec.Volumes = []corev1.Volume{
		{Name: "storage", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/var/lib/pav-bench"}}},
		{Name: "plain", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: device}}},
		{Name: "directory", VolumeSource: claimed("directory")},
		{Name: "device", VolumeSource: claimed("device")},
	}
	container.VolumeMounts = []corev1.VolumeMount{
		{Name: "storage", MountPath: "/storage"},
		{Name: "plain", MountPath: "/dev/plain-device"},
		{Name: "directory", MountPath: "/pav-directory"},
	}
	container.VolumeDevices = []corev1.VolumeDevice{{Name: "device", DevicePath: "/dev/pav-device"}}
	return pod
}

// series are the measurements of each round. The second one without PaV shows how much figures differ that should be
// equal.
var series = []string{"plain", "pav", "again"}

// fill writes a whole file or device once, so that there is something to read later.
func fill(ctx context.Context, s settings, file string) error {
	_, err := inPod(ctx, "io", fmt.Sprintf("fio --name=fill --thread --rw=write --bs=1M --size=%s --filename=%s", s.size, file))
	return err
}

// compareIO runs fio with all series, in short turns. Each round begins with another series. It returns bytes per
// second by series.
func compareIO(ctx context.Context, s settings, arguments, plain, pav string) (map[string]figures, error) {
	var command strings.Builder
	// Data that an earlier case has not written to the disk yet would slow this one down.
	fmt.Fprintf(&command, "sync; fio --output-format=json --name=global --thread --ioengine=psync --direct=1 --size=%s --time_based --runtime=%dms %s",
		s.size, s.runtime.Milliseconds(), arguments)
	for round := range s.rounds {
		for i := range series {
			name := series[(round+i)%len(series)]
			file := plain
			if name == "pav" {
				file = pav
			}
			fmt.Fprintf(&command, " --name=%s --stonewall --filename=%s", name, file)
		}
	}
	out, err := inPod(ctx, "io", command.String())
	if err != nil {
		return nil, err
	}
	var result struct {
		Jobs []struct {
			Name        string `json:"jobname"`
			Read, Write struct {
				Speed float64 `json:"bw_bytes"`
			}
		}
	}
	if err := json.Unmarshal(out, &result); err != nil || len(result.Jobs) != s.rounds*len(series) {
		return nil, fmt.Errorf("reading what fio said of %d jobs: %w: %s", len(result.Jobs), err, out)
	}
	speeds := map[string]figures{}
	for _, job := range result.Jobs {
		speeds[job.Name] = append(speeds[job.Name], job.Read.Speed+job.Write.Speed)
	}
	return speeds, nil
}
