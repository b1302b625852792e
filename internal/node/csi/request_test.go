package csi

import (
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/albertofaria/pav/internal/mount"
	"github.com/albertofaria/pav/internal/node/pavdir"
	"github.com/albertofaria/pav/internal/node/stage"
)

func TestBindOptions(t *testing.T) {
	for name, test := range map[string]struct {
		readOnly bool
		mode     csi.VolumeCapability_AccessMode_Mode
		flags    []string
		want     mount.BindOptions // NoSuid and NoDev are added, except those in lifted
		lifted   mount.BindOptions
	}{
		"an ordinary client may write":                  {mode: writer},
		"a pod may ask for less":                        {readOnly: true, mode: writer, want: mount.BindOptions{ReadOnly: true}},
		"a single writer may write":                     {mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER},
		"ReadWriteOnce may write":                       {mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
		"the first of several modes says nothing":       {mode: csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY},
		"a pod may ask for less in that mode, too":      {readOnly: true, mode: csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY, want: mount.BindOptions{ReadOnly: true}},
		"the mount option ro makes it read-only":        {mode: writer, flags: []string{"ro"}, want: mount.BindOptions{ReadOnly: true}},
		"the mount option rw does not lift a readOnly":  {readOnly: true, mode: writer, flags: []string{"rw"}, want: mount.BindOptions{ReadOnly: true}},
		"all mount options that a bind can carry":       {mode: writer, flags: []string{"nosuid", "nodev", "noexec", "noatime"}, want: mount.BindOptions{NoExec: true, NoAtime: true}},
		"mount options for the staging pod are no bind": {mode: writer, flags: []string{"vers=4.2", "hard", "NOSUID", "nosuid,nodev"}},
		"programs that gain rights may be asked for":    {mode: writer, flags: []string{"suid"}, lifted: mount.BindOptions{NoSuid: true}},
		"and so may device files":                       {mode: writer, flags: []string{"dev"}, lifted: mount.BindOptions{NoDev: true}},
		"the last of opposites counts":                  {mode: writer, flags: []string{"suid", "dev", "nosuid", "nodev"}},
	} {
		t.Run(name, func(t *testing.T) {
			test.want.NoSuid, test.want.NoDev = !test.lifted.NoSuid, !test.lifted.NoDev
			got := bindOptions(&csi.NodePublishVolumeRequest{Readonly: test.readOnly, VolumeCapability: capability(test.mode, test.flags...)})
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPublicationOf(t *testing.T) {
	kubelets := map[string]string{
		"csi.storage.k8s.io/pod.namespace": "ns", "csi.storage.k8s.io/pod.name": "client", "csi.storage.k8s.io/pod.uid": "uid",
		"csi.storage.k8s.io/ephemeral": "false", "csi.storage.k8s.io/serviceAccount.name": "default", "attribute": "of the volume",
	}
	defaults := mount.BindOptions{NoSuid: true, NoDev: true}
	const single = csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER
	for name, test := range map[string]struct {
		capability *csi.VolumeCapability
		readOnly   bool
		context    map[string]string
		want       stage.Publication
	}{
		"a directory, for the pod that kubelet names": {
			capability(writer, "nosuid"), false, kubelets,
			stage.Publication{
				Target: "/target", Mode: corev1.PersistentVolumeFilesystem, Options: defaults,
				Client: pavdir.Client{Namespace: "ns", Name: "client", UID: "uid", Target: "/target"},
			},
		},
		"a device": {
			device(writer), false, kubelets,
			stage.Publication{
				Target: "/target", Mode: corev1.PersistentVolumeBlock,
				Client: pavdir.Client{Namespace: "ns", Name: "client", UID: "uid", Target: "/target"},
			},
		},
		"a device for reading": {
			device(writer), true, nil,
			stage.Publication{
				Target: "/target", Mode: corev1.PersistentVolumeBlock, Options: mount.BindOptions{ReadOnly: true},
				Client: pavdir.Client{Target: "/target"},
			},
		},
		"ReadWriteOncePod": {
			capability(single), false, nil,
			stage.Publication{Target: "/target", Mode: corev1.PersistentVolumeFilesystem, Options: defaults, Single: true, Client: pavdir.Client{Target: "/target"}},
		},
		"a device with ReadWriteOncePod": {
			device(single), false, nil,
			stage.Publication{Target: "/target", Mode: corev1.PersistentVolumeBlock, Single: true, Client: pavdir.Client{Target: "/target"}},
		},
		"ReadWriteOnce, which many pods of a node may use": {
			capability(csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER), false, nil,
			stage.Publication{Target: "/target", Mode: corev1.PersistentVolumeFilesystem, Options: defaults, Client: pavdir.Client{Target: "/target"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := publicationOf(&csi.NodePublishVolumeRequest{
				TargetPath: "/target", Readonly: test.readOnly, VolumeCapability: test.capability, VolumeContext: test.context,
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
