package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// mountOf returns the file system type and the options of a mount in a pod, as the pod sees them.
func (l *ledger) mountOf(t *testing.T, pod, point string) (fsType string, options []string) {
	t.Helper()
	fields := strings.Fields(l.sh(t, pod, "grep ' "+point+" ' /proc/mounts"))
	if len(fields) != 6 {
		t.Fatalf("pod %s has %q at %s", pod, fields, point)
	}
	return fields[2], strings.Split(fields[3], ",")
}

// What a privileged staging pod mounts is what its clients have, on both nodes, and what they write
// gets to the storage.
func TestFilesystemVolume_ReachesItsClients(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		medium medium
		access corev1.PersistentVolumeAccessMode
		want   string
	}{
		{directories, corev1.ReadWriteMany, "ext4"},
		{fuse, corev1.ReadWriteMany, "fuse"},
		{ext4, corev1.ReadWriteOnce, "ext4"},
	} {
		t.Run(test.medium.name, func(t *testing.T) {
			t.Parallel()
			l := newStorage(t, "reaches-"+test.medium.name, test.medium)
			claim := l.volume(t, "data", test.medium, test.access)
			l.run(t, clientPod("first", "data", "node1"), clientPod("second", "data", "node1"))
			for _, pod := range []string{"first", "second"} {
				if got, _ := l.mountOf(t, pod, "/data"); !strings.HasPrefix(got, test.want) {
					t.Errorf("pod %s has a file system %s, want %s", pod, got, test.want)
				}
			}
			l.sh(t, "first", "echo hello > /data/file; sync /data/file")
			if got := l.sh(t, "second", "cat /data/file"); got != "hello\n" {
				t.Errorf("the second pod reads %q", got)
			}
			if test.access == corev1.ReadWriteOnce {
				l.end(t, "first", "second")
			}
			l.run(t, clientPod("third", "data", "node2"))
			if got := l.sh(t, "third", "cat /data/file"); got != "hello\n" {
				t.Errorf("on the other node, a pod reads %q", got)
			}
			l.end(t, "first", "second", "third")
			want := []string{"stage", "unstage", "stage", "unstage"}
			if test.access == corev1.ReadWriteMany {
				want = []string{"stage", "stage", "unstage", "unstage"}
			}
			l.awaitEffects(t, claim, want...)
			l.awaitNoStage(t)
		})
	}
}

// manyClaims adds claims to a client pod, at /more/<claim> or, for devices, at /dev/<claim>.
func manyClaims(mode corev1.PersistentVolumeMode, claims ...string) edit {
	return func(yaml string) string {
		for _, claim := range claims {
			volume := fmt.Sprintf("    - {name: %[1]s, persistentVolumeClaim: {claimName: %[1]s}}\n", claim)
			list, item := "volumeMounts", fmt.Sprintf("        - {name: %[1]s, mountPath: /more/%[1]s}\n", claim)
			if mode == corev1.PersistentVolumeBlock {
				list, item = "volumeDevices", fmt.Sprintf("        - {name: %[1]s, devicePath: /dev/%[1]s}\n", claim)
			}
			if !strings.Contains(yaml, list+":\n") {
				yaml = strings.Replace(yaml, "  volumes:\n", "      "+list+":\n  volumes:\n", 1)
			}
			yaml = strings.Replace(yaml, list+":\n", list+":\n"+item, 1)
			yaml = strings.Replace(yaml, "  volumes:\n", "  volumes:\n"+volume, 1)
		}
		return yaml
	}
}

// A pod has volumes of several provisioners, two of one of them, and of both modes.
func TestManyVolumesInOnePod(t *testing.T) {
	t.Parallel()
	l := newStorage(t, "many-directory", directories)
	others := map[string]*ledger{}
	l.volume(t, "data", directories, corev1.ReadWriteOnce)
	l.volume(t, "directory", directories, corev1.ReadWriteMany)
	for _, m := range []medium{fuse, ext4, devices} {
		others[m.name] = newStorage(t, "many-"+m.name, m)
		there := *others[m.name]
		there.namespace = l.namespace
		there.volume(t, m.name, m, corev1.ReadWriteOnce)
	}
	l.run(t, edited(clientPod("client", "data", ""),
		manyClaims(corev1.PersistentVolumeFilesystem, "directory", "fuse", "ext4"), manyClaims(corev1.PersistentVolumeBlock, "device")))
	for _, path := range []string{"/data", "/more/directory", "/more/fuse", "/more/ext4"} {
		l.sh(t, "client", "echo "+path+" > "+path+"/file")
	}
	for _, path := range []string{"/data", "/more/directory", "/more/fuse", "/more/ext4"} {
		if got := l.sh(t, "client", "cat "+path+"/file"); got != path+"\n" {
			t.Errorf("%s has %q", path, got)
		}
	}
	l.sh(t, "client", "test -b /dev/device; echo hello | dd of=/dev/device conv=notrunc,fsync")
	l.end(t, "client")
	l.awaitNoStage(t)
	for _, other := range others {
		other.awaitNoStage(t)
	}
	// The claims of the others are in this namespace, and hold their provisioners.
	must(t, kube.DeleteAllOf(t.Context(), &corev1.PersistentVolumeClaim{}, client.InNamespace(l.namespace)))
}

func TestReadWriteOncePod_SecondPodIsRefused(t *testing.T) {
	t.Parallel()
	l := newStorage(t, "once-pod", directories)
	l.volume(t, "data", directories, corev1.ReadWriteOncePod)
	l.run(t, clientPod("first", "data", "node1"))
	// The scheduler would hold the second one back; a pod that is bound to its node has to be refused there.
	second := edited(clientPod("second", "data", ""), replacing("  nodeSelector: {}\n", "  nodeName: node1\n"))
	_, err := kubectl(t.Context(), second, "create", "-n", l.namespace, "-f", "-")
	must(t, err)
	eventually(t, "the second pod is refused", func(ctx context.Context) error {
		return wantEvent(ctx, l.namespace, "second", "")
	})
	l.sh(t, "first", "echo mine > /data/file")
	pod := &corev1.Pod{}
	must(t, kube.Get(t.Context(), client.ObjectKey{Namespace: l.namespace, Name: "second"}, pod))
	if pod.Status.Phase == corev1.PodRunning {
		t.Error("two pods use a volume that one may use")
	}
	l.end(t, "first")
	l.awaitRunningOrAgain(t, second)
	if got := l.sh(t, "second", "cat /data/file"); got != "mine\n" {
		t.Errorf("the second pod reads %q", got)
	}
}

// awaitRunningOrAgain waits until a pod runs, and creates it again if kubelet rejected it.
func (l *ledger) awaitRunningOrAgain(t *testing.T, yaml string) {
	t.Helper()
	pod := &corev1.Pod{}
	must(t, kube.Get(t.Context(), client.ObjectKey{Namespace: l.namespace, Name: podName(yaml)}, pod))
	if pod.Status.Phase == corev1.PodFailed {
		l.end(t, podName(yaml))
		l.run(t, yaml)
		return
	}
	l.awaitRunning(t, podName(yaml))
}

func TestSubPath(t *testing.T) {
	t.Parallel()
	for _, m := range []medium{directories, fuse} {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			l := newStorage(t, "sub-path-"+m.name, m)
			l.volume(t, "data", m, corev1.ReadWriteMany)
			part := func(name, path string) string {
				return edited(clientPod(name, "data", "node1"), replacing("mountPath: /data}", "mountPath: /data, subPath: "+path+"}"))
			}
			l.run(t, clientPod("whole", "data", "node1"), part("part", "a/b"), part("other", "c"))
			l.sh(t, "part", "echo hello > /data/file")
			if got := l.sh(t, "whole", "cat /data/a/b/file; ls /data"); got != "hello\na\nc\n" {
				t.Errorf("the whole volume has %q", got)
			}
			if got := l.sh(t, "other", "ls /data"); got != "" {
				t.Errorf("another part has %q", got)
			}
		})
	}
}

// With fsGroupPolicy File, kubelet gives a volume's files to the pod's group.
func TestFSGroup(t *testing.T) {
	t.Parallel()
	for _, m := range []medium{directories, ext4} {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			l := newStorage(t, "fs-group-"+m.name, m, with("staging", "fsGroupPolicy: File"))
			l.volume(t, "data", m, corev1.ReadWriteOnce)
			l.run(t, edited(clientPod("client", "data", ""), replacing("  terminationGracePeriodSeconds: 0\n",
				"  terminationGracePeriodSeconds: 0\n  securityContext: {runAsUser: 65532, runAsGroup: 65532, fsGroup: 4242}\n")))
			got := l.sh(t, "client", "echo hello > /data/file; stat -c '%u %g' /data/file; stat -c '%g %a' /data")
			if want := "65532 4242\n4242 2775\n"; got != want {
				t.Errorf("the owners and permissions are %q, want %q", got, want)
			}
		})
	}
}

// The policy may be edited: without one, volumes of many nodes keep their files' owners.
func TestFSGroup_PolicyOfOthersStays(t *testing.T) {
	t.Parallel()
	l := newStorage(t, "fs-group-default", directories)
	l.volume(t, "data", directories, corev1.ReadWriteMany)
	l.run(t, edited(clientPod("client", "data", ""), replacing("  terminationGracePeriodSeconds: 0\n",
		"  terminationGracePeriodSeconds: 0\n  securityContext: {fsGroup: 4242}\n")))
	if got := l.sh(t, "client", "stat -c '%g' /data"); got != "0\n" {
		t.Errorf("the volume belongs to group %q", got)
	}
}

// What a bind mount can carry of a volume's mount options is in force where kubelet has the volume.
// Of these, the container runtime keeps noatime and, where kubelet knows of it, ro.
func TestMountOptions(t *testing.T) {
	t.Parallel()
	for _, m := range []medium{directories, fuse, ext4} {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			l := newStorage(t, "options-"+m.name, m, with("class", "mountOptions: [nosuid, nodev, noexec, noatime, special=1]"))
			l.volume(t, "data", m, corev1.ReadWriteMany)
			l.run(t, clientPod("writer", "data", "node1"), edited(clientPod("reader", "data", "node1"), reader))
			l.checkOptions(t, "writer", "rw", "nosuid", "nodev", "noexec", "noatime")
			l.checkOptions(t, "reader", "ro", "nosuid", "nodev", "noexec", "noatime")
			for _, pod := range []string{"writer", "reader"} {
				if _, got := l.mountOf(t, pod, "/data"); !slices.Contains(got, "noatime") {
					t.Errorf("in pod %s, the options are %q, without noatime", pod, got)
				}
			}
			l.sh(t, "writer", "touch /data/file")
			l.fails(t, "reader", "touch /data/other", "Read-only file system")
		})
	}
}

func TestMountOptions_ReadOnlyVolume(t *testing.T) {
	t.Parallel()
	l := newStorage(t, "options-ro", directories, with("class", "mountOptions: [ro]"))
	l.volume(t, "data", directories, corev1.ReadWriteMany)
	l.run(t, clientPod("client", "data", ""))
	l.checkOptions(t, "client", "ro")
}

// checkOptions fails the test unless the mount that a pod has its volume data from has all the options.
func (l *ledger) checkOptions(t *testing.T, pod string, want ...string) {
	t.Helper()
	object := &corev1.Pod{ObjectMeta: objectMeta(l.namespace, pod)}
	must(t, kube.Get(t.Context(), keyOf(object), object))
	mounts, err := onNode(t.Context(), object.Spec.NodeName, "cat", "/proc/self/mountinfo")
	must(t, err)
	for line := range strings.Lines(mounts) {
		fields := strings.Fields(line)
		if !strings.HasPrefix(fields[4], kubeletDir+"/pods/"+string(object.UID)+"/volumes/kubernetes.io~csi/") {
			continue
		}
		for _, option := range want {
			if got := strings.Split(fields[5], ","); !slices.Contains(got, option) {
				t.Errorf("the mount of pod %s has the options %q, not %s", pod, got, option)
			}
		}
		return
	}
	t.Errorf("there is no mount of pod %s in:\n%s", pod, mounts)
}

// The templates of staging get the file system type and the mount options.
func TestStagingContext_HasFileSystemTypeAndMountOptions(t *testing.T) {
	t.Parallel()
	l := newStorage(t, "context", directories,
		with("class", "mountOptions: [noatime, special=1]\nparameters: {csi.storage.k8s.io/fstype: xfs}"),
		replacing(`hook stage`, `echo {{ (fsType ~ " " ~ mountOptions | join(",")) | tobash }} > /storage/told; hook stage`))
	l.volume(t, "data", directories, corev1.ReadWriteOnce)
	l.run(t, clientPod("client", "data", ""))
	if got, err := readFile(l.directory, "told"); err != nil || got != "xfs noatime,special=1\n" {
		t.Errorf("the template had %q (%v)", got, err)
	}
}
