package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// writtenVolume is the volume of the claim source, to which a pod writes numbered records all the time, with fsync after each.
type writtenVolume struct {
	*ledger

	writer corev1.Pod

	// batches are what md5sum says of further files, whose writer does not call fsync.
	batches []string
}

// written is what a volume must have: so many batches and no more, and at least so many records.
type written struct{ batches, records int }

// volumeCopy is a claim whose volume is made from the source, which had at least what was written.
type volumeCopy struct {
	name, size string

	// larger is by how many MiB at least the file system is larger than that of the source.
	larger int

	written
}

// recordFormat makes a record of its number, in Go and in the shell.
const recordFormat = "%0100d"

// writeScript writes each record twice, to a file of its own and to the end of a file that grows, and then counts it. The
// pauses leave the machine to other tests.
const writeScript = `
fail() { echo "record $n: $(cat /tmp/said)" >&2; exit 1; }
n=0
cd /data/source && mkdir records 2> /tmp/said || fail
while true; do
  n=$((n + 1))
  printf -v record '` + recordFormat + `' $n
  dd of=records/$n conv=fsync <<< $record 2> /tmp/said || fail
  echo $record >> log && dd if=/dev/null of=log conv=notrunc,fsync 2> /tmp/said || fail
  echo $n > /progress/rounds
  sleep 0.05
done
`

// writeBatch writes a batch, and prints what checks it.
const writeBatch = `
set -e
mkdir /data/source/batch-%[1]d
cd /data/source
for i in $(seq 50); do echo "file $i of batch %[1]d" > batch-%[1]d/$i; done
head -c 4194304 /dev/urandom > batch-%[1]d/large
md5sum batch-%[1]d/*`

// overwrite changes what the clone shares with its source, where it is, and writes to blocks that were free.
const overwrite = `
set -e
cd /data/cloned
for file in log batch-*/*; do head -c "$(wc -c < $file)" /dev/zero 1<> $file; done
rm -r records
head -c 33554432 /dev/urandom > more
sync`

// readOverwritten prints how many bytes of the clone are not as they were overwritten.
const readOverwritten = `cd /data/cloned; cat log batch-*/* | tr -d '\0' | wc -c`

// Snapshots, restores and clones of a volume in use have what was written before they were requested: what fsync has
// acknowledged and, as nodes are asked to write it back, also what was only written. A copy is at least as large as its
// source, its file system is intact, and what is written to it is not in its source.
func TestSnapshotUnderWrites_HoldsWhatWasWrittenBefore(t *testing.T) {
	t.Parallel()
	const store = "/var/lib/shared/written"
	mountStore(t, store)
	for fsType, check := range map[string]string{"ext4": "e2fsck -fn", "xfs": "xfs_repair -fn"} {
		t.Run(fsType, func(t *testing.T) {
			t.Parallel()
			v := newWrittenVolume(t, fsType, store)
			copies := v.copies(t)
			v.run(t, scriptPod("copies", "node2", "Never", "exec sleep infinity", "restored", "larger", "latest", "cloned"))
			final := v.write(t) // to no copy
			size := megabytes(t, v.sh(t, "writer", "df -m /data/source"))
			for _, c := range copies {
				v.checkWritten(t, "copies", c.name, c.written)
				v.checkSize(t, c, size)
			}
			// Copies need no snapshots any more.
			v.removeSoon(t, "volumesnapshots", "restored", "larger", "latest")
			v.sh(t, "copies", overwrite)

			final.records = v.acknowledged(t, final.records+1)
			volumes := v.volumes(t)
			v.end(t, "copies", "writer")
			awaitDetached(t, volumes)
			for _, volume := range volumes {
				if out, err := onNode(t.Context(), "node1", "sh", "-c", check+` "$1" 2>&1`, "sh", store+"/"+volume); err != nil {
					t.Errorf("the file system of %s is damaged: %v\n%s", volume, err, out)
				}
			}
			v.removeSoon(t, "pvc", "restored", "larger", "latest")
			// A node that has just staged the volumes has nothing of them in memory.
			v.run(t, scriptPod("reader", "node2", "Never", "exec sleep infinity", "source", "cloned"))
			v.checkWritten(t, "reader", "source", final)
			if got := v.sh(t, "reader", readOverwritten); got != "0\n" {
				t.Errorf("of what was overwritten in the clone, %s bytes are not", got)
			}
		})
	}
}

// newWrittenVolume makes a volume with a file system, whose storage is a file of the store, and waits until a pod writes to it.
func newWrittenVolume(t *testing.T, fsType, store string) *writtenVolume {
	t.Helper()
	// The storage suite has tried its volumes with both file systems.
	definition, err := os.ReadFile("test/conformance/drivers/loop-devices/provisioner.yaml")
	must(t, err)
	v := &writtenVolume{ledger: newLedgerOf(t, "written-"+fsType, func(l *ledger) string {
		return documents(edited(string(definition), replacing("/var/lib/shared/loop-devices", store), replacing("loop-devices", l.name)),
			storageClass(l.name)+"parameters: {csi.storage.k8s.io/fstype: "+fsType+"}\n", snapshotClass(l.name))
	})}
	t.Cleanup(func() {
		ctx, cancel := cleanupContext(t)
		defer cancel()
		if t.Failed() {
			out, err := kubectl(ctx, "", "logs", "-n", v.namespace, "writer")
			t.Logf("the writer (%v): %s", err, out)
		}
		for _, kinds := range []string{"pods", "volumesnapshots,pvc"} {
			if _, err := kubectl(ctx, "", "delete", kinds, "-n", v.namespace, "--all"); err != nil {
				t.Error(err)
			}
		}
	})
	v.createClaim(t, "source", "300Mi")
	v.run(t, scriptPod("writer", "node1", "Never", writeScript, "source"))
	must(t, kube.Get(t.Context(), client.ObjectKey{Namespace: v.namespace, Name: "writer"}, &v.writer))
	return v
}

// createClaim makes a claim of a size.
func (v *writtenVolume) createClaim(t *testing.T, name, size string, edits ...edit) {
	t.Helper()
	yaml := edited(claim(name, v.name, "ReadWriteOnce"), append(edits, replacing("storage: 1Mi", "storage: "+size))...)
	_, err := kubectl(t.Context(), yaml, "create", "-n", v.namespace, "-f", "-")
	must(t, err)
}

// copies makes three snapshots one after the other, claims of volumes that are made from them, and a claim of a clone.
func (v *writtenVolume) copies(t *testing.T) []volumeCopy {
	t.Helper()
	copies := []volumeCopy{
		{name: "restored", size: "300Mi"}, {name: "larger", size: "400Mi", larger: 90}, {name: "latest", size: "300Mi"}, {name: "cloned", size: "300Mi"},
	}
	for i := range copies {
		c := &copies[i]
		c.written = v.write(t)
		source := "{kind: PersistentVolumeClaim, name: source}"
		if c.name != "cloned" {
			awaitSnapshot(t, v.snapshot(t, c.name, "source"), "is ready", isUsable)
			source = "{apiGroup: snapshot.storage.k8s.io, kind: VolumeSnapshot, name: " + c.name + "}"
		}
		v.createClaim(t, c.name, c.size, replacing("spec:\n", "spec:\n  dataSource: "+source+"\n"))
	}
	return copies
}

// removeSoon deletes objects of the test, and does not wait until they are gone.
func (v *writtenVolume) removeSoon(t *testing.T, kind string, names ...string) {
	t.Helper()
	_, err := kubectl(t.Context(), "", append([]string{"delete", kind, "-n", v.namespace, "--wait=false"}, names...)...)
	must(t, err)
}

// volumes returns the names of the volumes of all claims.
func (v *writtenVolume) volumes(t *testing.T) []string {
	t.Helper()
	claims := &corev1.PersistentVolumeClaimList{}
	must(t, kube.List(t.Context(), claims, client.InNamespace(v.namespace)))
	var names []string
	for i := range claims.Items {
		names = append(names, claims.Items[i].Spec.VolumeName)
	}
	return names
}

// acknowledged waits until at least so many records are written, and returns how many are.
func (v *writtenVolume) acknowledged(t *testing.T, least int) int {
	t.Helper()
	var records int
	eventually(t, fmt.Sprintf("%d records are written", least), func(ctx context.Context) (err error) {
		if records, err = rounds(ctx, &v.writer); err == nil && records < least {
			err = fmt.Errorf("there are %d", records)
		}
		return err
	})
	return records
}

// write waits for more records, writes a batch, and returns what is written then.
func (v *writtenVolume) write(t *testing.T) written {
	t.Helper()
	v.acknowledged(t, v.acknowledged(t, 1)+10)
	v.batches = append(v.batches, v.sh(t, "writer", fmt.Sprintf(writeBatch, len(v.batches))))
	return written{batches: len(v.batches), records: v.acknowledged(t, 1)}
}

// checkWritten fails the test unless the volume of a claim has what was written.
func (v *writtenVolume) checkWritten(t *testing.T, pod, claim string, w written) {
	t.Helper()
	want := strings.Builder{}
	want.WriteString(strings.Join(v.batches[:w.batches], ""))
	for range 2 {
		for n := range w.records {
			fmt.Fprintf(&want, recordFormat+"\n", n+1)
		}
	}
	const read = "cd /data/%s && md5sum batch-*/* && head -n %[2]d log && seq %[2]d | sed s:^:records/: | xargs cat"
	if diff := cmp.Diff(want.String(), v.sh(t, pod, fmt.Sprintf(read, claim, w.records))); diff != "" {
		t.Errorf("the volume of claim %s does not have what was written, -want +got:\n%s", claim, diff)
	}
	t.Logf("the volume of claim %s has %d batches, and %d records twice", claim, w.batches, w.records)
}

// checkSize fails the test unless a copy is as large as its claim, and its file system as it must be, compared with that of
// the source in MiB.
func (v *writtenVolume) checkSize(t *testing.T, c volumeCopy, source int) {
	t.Helper()
	bound := &corev1.PersistentVolumeClaim{}
	must(t, kube.Get(t.Context(), client.ObjectKey{Namespace: v.namespace, Name: c.name}, bound))
	if got := bound.Status.Capacity.Storage(); got.Cmp(resource.MustParse(c.size)) < 0 {
		t.Errorf("claim %s has %s", c.name, got)
	}
	if got, least := megabytes(t, v.sh(t, "copies", "df -m /data/"+c.name)), source+c.larger; got < least {
		t.Errorf("the file system of claim %s has %d MiB, want at least %d", c.name, got, least)
	}
}

// mountStore mounts a file system whose files can share blocks, the same on all nodes, until the test ends. Then no file may
// be left.
func mountStore(t *testing.T, directory string) {
	t.Helper()
	t.Cleanup(func() {
		eventually(t, "the store is gone", func(ctx context.Context) error {
			for _, node := range nodes {
				if _, err := onNode(ctx, node, "sh", "-ec", `! mountpoint -q "$1" || umount "$1"`, "sh", directory); err != nil {
					return err
				}
			}
			_, err := onNode(ctx, "node1", "sh", "-ec", `rm -f "$1.xfs"; rmdir "$1"`, "sh", directory)
			return err
		})
	})
	const prepare = `mkdir "$1"; truncate -s 4G "$1.xfs"; mkfs.xfs -q "$1.xfs"; losetup --find --show "$1.xfs"`
	device, err := onNode(t.Context(), "node1", "sh", "-ec", prepare, "sh", directory)
	must(t, err)
	device = strings.TrimSpace(device)
	for _, node := range nodes {
		_, err := onNode(t.Context(), node, "mount", device, directory)
		must(t, err)
	}
	// It goes when no node has it mounted any more.
	_, err = onNode(t.Context(), "node1", "losetup", "--detach", device)
	must(t, err)
	t.Cleanup(func() { awaitNoFiles(t, "node1", directory) })
}
