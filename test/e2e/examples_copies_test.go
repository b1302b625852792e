package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Volumes in use are snapshotted, restored, cloned and grown, on the node where they are, and share no writes. Nothing is left.
func TestExample_ReflinkFiles(t *testing.T) {
	t.Parallel()
	const base = "/var/lib/pav-reflink-files"
	mountXFS(t, base)
	e := newExample(t, "7-reflink-files", exampleNamespace(t, "reflink-files"), "example-tools.tar")
	before := megabytes(t, e.follow(t, "Try it"))
	e.follow(t, "Make a snapshot of the volume in use")
	out := e.follow(t, "Restore the snapshot, and clone")
	prints(t, out, "draft\nsent\n")
	if restored := megabytes(t, out); restored < before+90 {
		t.Errorf("the restored volume has %d MiB, and its source %d", restored, before)
	}
	volumes := []string{}
	for name, least := range map[string]string{"reflink-files": "300Mi", "restored": "400Mi", "cloned": "300Mi"} {
		claim := e.claim(t, name)
		if got := claim.Status.Capacity.Storage(); got.Cmp(resource.MustParse(least)) < 0 {
			t.Errorf("claim %s has %s", name, got)
		}
		volumes = append(volumes, claim.Spec.VolumeName)
	}
	if node := e.nodeOf(t, "copies"); node != e.nodeOf(t, "reflink-files") {
		t.Errorf("the copies are on %s", node)
	}
	prints(t, e.follow(t, "What a pod writes to a copy"), "sent")
	if grown := megabytes(t, e.follow(t, "Let the volume grow")); grown < before+190 {
		t.Errorf("it has %d MiB, and had %d", grown, before)
	}
	if got := e.sh(t, "reflink-files", "cat /data/letter.txt"); got != "sent\n" {
		t.Errorf("after growth, the volume has %q", got)
	}
	e.follow(t, "Clean up")
	awaitDetached(t, volumes)
	for _, node := range nodes {
		awaitNoFiles(t, node, base)
	}
}

// Directories are copied while nobody uses them. Nothing is left.
func TestExample_DirectoryCopies(t *testing.T) {
	t.Parallel()
	e := newExample(t, "8-directory-copies", exampleNamespace(t, "directory-copies"))
	e.follow(t, "Try it")
	e.follow(t, "Make a snapshot")
	prints(t, e.follow(t, "Restore the snapshot, and clone"), "draft\nsent\n")
	if got := e.claim(t, "restored").Status.Capacity.Storage(); got.Cmp(resource.MustParse("20Mi")) != 0 {
		t.Errorf("the restored claim has %s", got)
	}
	prints(t, e.follow(t, "The volume itself"), "draft\n")
	e.follow(t, "Clean up")
	const base = "/var/lib/shared/directory-copies"
	awaitNoFiles(t, "node1", base)
	_, err := onNode(t.Context(), "node1", "rmdir", base)
	must(t, err)
}

// mountXFS mounts a file system of its own on each node, until the test ends.
func mountXFS(t *testing.T, directory string) {
	t.Helper()
	for _, node := range nodes {
		_, err := onNode(t.Context(), node, "sh", "-ec", `mkdir "$1"; truncate -s 4G "$1.xfs"; mkfs.xfs -q "$1.xfs"; mount -o loop "$1.xfs" "$1"`, "sh", directory)
		must(t, err)
		t.Cleanup(func() {
			eventually(t, "the file system of "+node+" is unmounted", func(ctx context.Context) error {
				_, err := onNode(ctx, node, "sh", "-ec", `! mountpoint -q "$1" || umount "$1"; rm -f "$1.xfs"; rmdir "$1"`, "sh", directory)
				return err
			})
		})
	}
}

// megabytes returns the size that the last line of "df -m" says.
func megabytes(t *testing.T, out string) int {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var device string
	var size int
	if _, err := fmt.Sscan(lines[len(lines)-1], &device, &size); err != nil {
		t.Fatalf("%v: there is no size in\n%s", err, out)
	}
	return size
}

// awaitNoFiles waits until a directory of a node is empty.
func awaitNoFiles(t *testing.T, node, directory string) {
	t.Helper()
	eventually(t, directory+" is empty on "+node, func(ctx context.Context) error {
		found, err := onNode(ctx, node, "find", directory, "-mindepth", "1")
		if err == nil && found != "" {
			err = fmt.Errorf("there is %s", found)
		}
		return err
	})
}
