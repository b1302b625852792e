package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	writeDevice = "echo hello | dd of=/dev/data bs=512 conv=notrunc,fsync"
	readDevice  = "head -c 6 /dev/data"
)

// A device is written to on one node, and read on the other one.
func TestBlockVolume_MovesToAnotherNode(t *testing.T) {
	t.Parallel()
	l := newStorage(t, "block-moves", devices)
	claim := l.volume(t, "data", devices, corev1.ReadWriteOnce)
	l.run(t, blockPod("first", "node1"))
	l.sh(t, "first", "test -b /dev/data; "+writeDevice)
	if got := l.sh(t, "first", "blockdev --getsize64 /dev/data"); got != "1048576\n" {
		t.Errorf("the device has %s bytes", got)
	}

	// A second pod of the node has the same device.
	l.run(t, blockPod("second", "node1"))
	if got := l.sh(t, "second", readDevice); got != "hello\n" {
		t.Errorf("the second pod reads %q", got)
	}
	l.end(t, "first")
	if got := l.sh(t, "second", readDevice); got != "hello\n" {
		t.Errorf("after the first pod has ended, the second one reads %q", got)
	}
	l.end(t, "second")
	l.run(t, blockPod("third", "node2"))
	if got := l.sh(t, "third", readDevice); got != "hello\n" {
		t.Errorf("on the other node, a pod reads %q", got)
	}
	l.end(t, "third")
	l.awaitEffects(t, claim, "stage", "unstage", "stage", "unstage")
	l.awaitNoStage(t)
}

func TestBlockVolume_ReadOnlyClientCannotWrite(t *testing.T) {
	t.Parallel()
	l := newStorage(t, "block-read", devices)
	l.volume(t, "data", devices, corev1.ReadWriteMany)
	l.run(t, blockPod("writer", "node1"), edited(blockPod("reader", "node1"), reader))
	l.sh(t, "writer", writeDevice)
	if got := l.sh(t, "reader", readDevice); got != "hello\n" {
		t.Errorf("it reads %q", got)
	}
	l.fails(t, "reader", writeDevice, "Operation not permitted", "Permission denied", "Read-only")
}

// A read-only volume is staged read-only, and its device must be read-only.
func TestBlockVolume_StagedForReading_DeviceMustBeReadOnly(t *testing.T) {
	t.Parallel()
	l := newStorage(t, "block-read-only", devices)
	l.hook(t, "stage", "read_only=")
	claim := l.volume(t, "data", devices, corev1.ReadOnlyMany)
	_, err := kubectl(t.Context(), blockPod("client", ""), "create", "-n", l.namespace, "-f", "-")
	must(t, err)
	for object, reason := range map[string]string{"data": "", "client": "FailedMapVolume"} {
		eventually(t, object+" has an event with the cause", func(ctx context.Context) error {
			return wantEvent(ctx, l.namespace, object, reason, l.name, "/pav/volume", "writable")
		})
	}
	l.unhook(t, "stage")
	l.awaitRunning(t, "client")
	l.fails(t, "client", writeDevice)
	l.end(t, "client")
	eventually(t, "each staging was reverted", func(context.Context) error { return l.wantReversals(claim) })
}

// wantReversals objects unless pods staged a claim's volume and reverted that, in turn, at least twice.
func (l *ledger) wantReversals(claim *corev1.PersistentVolumeClaim) error {
	effects, err := l.effects(false)
	if err != nil {
		return err
	}
	done := strings.Join(effects[volumeName(claim)], " ")
	if n := strings.Count(done, "stage unstage"); n < 2 || strings.TrimSpace(strings.Repeat("stage unstage ", n)) != done {
		return fmt.Errorf("what was done is %q", done)
	}
	return nil
}

// The staging pod leaves something wrong at /pav/volume: that is reported and reverted.
func TestBlockVolume_WrongVolumeIsRefused_AndRecovers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		medium medium
		hook   string
		words  []string
	}{
		"small":     {devices, "truncate -s 512K /storage/data/$volume.img", []string{"524288", "1048576"}},
		"directory": {devices, "mkdir /pav/volume; exit 0", []string{"/pav/volume", "block"}},
		"device":    {directories, "mknod /pav/volume b 7 0; exit 0", []string{"/pav/volume", "directory"}},
		"nothing":   {directories, "exit 0", []string{"/pav/volume"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newStorage(t, "wrong-"+name, test.medium)
			l.hook(t, "stage", test.hook)
			claim := l.volume(t, "data", test.medium, corev1.ReadWriteOnce)
			pod := clientPod("client", "data", "")
			if test.medium.mode() == corev1.PersistentVolumeBlock {
				pod = blockPod("client", "")
			}
			_, err := kubectl(t.Context(), pod, "create", "-n", l.namespace, "-f", "-")
			must(t, err)
			wantClaimEvent(t, claim, "", append(test.words, l.name)...)
			must(t, kube.Get(t.Context(), client.ObjectKeyFromObject(claim), claim))
			l.hook(t, "stage", "rm -f /storage/data/$volume.img")
			l.awaitRunning(t, "client")
			l.end(t, "client")
			eventually(t, "each staging was reverted", func(context.Context) error { return l.wantReversals(claim) })
		})
	}
}
