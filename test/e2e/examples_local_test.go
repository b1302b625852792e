package e2e

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// A local path holds data from one pod to the next, and the encrypted files of another example, which
// move with it. Both go with their claims, and nothing beside them does.
func TestExample_LocalPathAndEncryptedFiles(t *testing.T) {
	t.Parallel()
	local := newExample(t, "5-local-path", exampleNamespace(t, "local-path"))
	visits := func(out string) int { return strings.Count(out, " UTC ") }
	if out := local.follow(t, "Try it"); visits(out) != 1 {
		t.Errorf("the first pod prints:\n%s", out)
	}
	if out := local.follow(t, "What a pod wrote"); visits(out) != 2 {
		t.Errorf("the second pod prints:\n%s", out)
	}
	node, volume := local.nodeOf(t, "local-path"), local.claim(t, "local-path").Spec.VolumeName
	prints(t, local.follow(t, "The node of each volume"), node)
	const base = "/var/lib/pav-local-path"
	neighbour := base + "/" + volume + "-neighbour"
	_, err := onNode(t.Context(), node, "mkdir", neighbour)
	must(t, err)

	checkEncryptedFiles(t, base)

	local.follow(t, "Clean up")
	eventually(t, "the directory of the volume alone has gone", func(ctx context.Context) error {
		if found, err := onNode(ctx, node, "find", base, "-mindepth", "1"); err != nil || strings.TrimSpace(found) != neighbour {
			return fmt.Errorf("found %q (%w)", found, err)
		}
		return nil
	})
	for _, name := range nodes {
		_, err := onNode(t.Context(), name, "rm", "-rf", base)
		must(t, err)
	}
}

// checkEncryptedFiles tries the example of encrypted files over a local path.
func checkEncryptedFiles(t *testing.T, base string) {
	t.Helper()
	e := newExample(t, "4-encrypted-files", "encrypted-files", "example-tools.tar")
	e.follow(t, "You need what")
	t.Cleanup(func() { removeLater(t, &corev1.Namespace{ObjectMeta: objectMeta("", e.namespace)}) })
	prints(t, e.follow(t, "Make a volume and use it"), "attack at dawn")
	prints(t, e.follow(t, "The pod that has the password"), "stage-")
	node, directory := e.nodeOf(t, "encrypted-files"), base+"/"+e.claim(t, "ciphertext").Spec.VolumeName
	stored, err := onNode(t.Context(), node, "find", directory)
	must(t, err)
	if !strings.Contains(stored, "gocryptfs.conf") || strings.Contains(stored, "orders") {
		t.Errorf("the backing volume has %s", stored)
	}
	if found, err := onNode(t.Context(), node, "grep", "-r", "attack", directory); err == nil {
		t.Errorf("the backing volume is not encrypted: %s", found)
	}

	// No other claim is kept in the same volume at the same time.
	duplicate := func(name string) string {
		return edited(claim(name, e.name, "ReadWriteOnce"), replacing("metadata:\n", "metadata:\n  annotations: {encrypted-files/backing-claim: ciphertext}\n"))
	}
	e.create(t, duplicate("duplicate"))
	wantClaimEvent(t, e.claim(t, "duplicate"), "ProvisioningFailed", e.namespace+"/ciphertext")
	remove(t, e.claim(t, "duplicate"))

	// A wrong password fails, says so, and damages nothing.
	password, err := kubectl(t.Context(), "", "-n", e.namespace, "get", "secret", e.name, "-o", "go-template={{.data.password | base64decode}}")
	must(t, err)
	e.end(t, "encrypted-files")
	e.awaitNoStage(t)
	setSecret(t, e.namespace, e.name, "password", "wrong")
	e.create(t, clientPod("reader", "plaintext", node))
	wantClaimEvent(t, e.claim(t, "plaintext"), "FailedMount", "Password incorrect")
	setSecret(t, e.namespace, e.name, "password", strings.TrimSpace(password))
	(&ledger{namespace: e.namespace}).awaitRunning(t, "reader")
	if got := e.sh(t, "reader", "cat /data/orders.txt"); got != "attack at dawn\n" {
		t.Errorf("with the right password, a pod reads %q", got)
	}
	e.end(t, "reader")

	// The files stay with the backing volume, and the next claim gets them.
	plaintext := e.claim(t, "plaintext")
	remove(t, plaintext)
	awaitNoVolume(t, plaintext)
	e.create(t, duplicate("later"))
	e.run(t, clientPod("later", "later", node))
	if got := e.sh(t, "later", "cat /data/orders.txt"); got != "attack at dawn\n" {
		t.Errorf("through another claim, a pod reads %q", got)
	}
	e.follow(t, "Clean up")
}

// A loop device holds data, as a device and as a file system, and no more than its capacity; none is left.
func TestExample_LoopDevice(t *testing.T) {
	t.Parallel()
	e := newExample(t, "6-loop-device", exampleNamespace(t, "loop-device"), "example-tools.tar")
	prints(t, e.follow(t, "Try it"), "/data")
	prints(t, e.follow(t, "This prints the size"), "16777216")
	node := e.nodeOf(t, "loop-device")
	volumes := []string{e.claim(t, "loop-files").Spec.VolumeName, e.claim(t, "loop-block").Spec.VolumeName}
	if left := attached(t.Context(), t, volumes); left == "" {
		t.Error("no loop device is seen while they are in use")
	}

	const sums = "md5sum /data/file /dev/data"
	e.sh(t, "loop-device", "dd if=/dev/urandom of=/dev/data bs=1M count=16 conv=fsync; dd if=/dev/urandom of=/data/file bs=1M count=8 conv=fsync")
	want := e.sh(t, "loop-device", sums)
	for _, command := range []string{"dd if=/dev/zero of=/data/more bs=1M count=32", "dd if=/dev/zero of=/dev/data bs=1M seek=16 count=1"} {
		if out, err := inPod(t.Context(), e.namespace, "loop-device", command); err == nil || !strings.Contains(err.Error(), "No space left on device") {
			t.Errorf("beyond the capacity, %q gives %v: %s", command, err, out)
		}
	}

	e.end(t, "loop-device")
	e.awaitNoStage(t)
	awaitDetached(t, volumes)
	out, err := kubectl(t.Context(), "", "apply", "-n", e.namespace, "-f", e.directory+"/usage.yaml")
	must(t, err)
	prints(t, out, "pod/loop-device created")
	(&ledger{namespace: e.namespace}).awaitRunning(t, "loop-device")
	if got := e.sh(t, "loop-device", sums); got != want {
		t.Errorf("after all was unstaged, the sums are %s, and were %s", got, want)
	}

	e.follow(t, "Clean up")
	awaitDetached(t, volumes)
	files, err := onNode(t.Context(), node, "find", "/var/lib/pav-loop-device", "-type", "f")
	must(t, err)
	if files != "" {
		t.Errorf("on %s, there is %s", node, files)
	}
}

// awaitDetached waits until no loop device has files with these names: one goes only when nobody looks at it any more.
func awaitDetached(t *testing.T, names []string) {
	t.Helper()
	eventually(t, "no loop device is left", func(ctx context.Context) error {
		if left := attached(ctx, t, names); left != "" {
			return fmt.Errorf("there is\n%s", left)
		}
		return nil
	})
}

// attached returns what the machine's list of loop devices says of files with these names.
func attached(ctx context.Context, t *testing.T, names []string) string {
	t.Helper()
	out, err := exec.CommandContext(ctx, "losetup", "--noheadings", "--output", "NAME,BACK-FILE").CombinedOutput()
	must(t, err)
	var found strings.Builder
	for line := range strings.Lines(string(out)) {
		for _, name := range names {
			if strings.Contains(line, name) {
				found.WriteString(line)
			}
		}
	}
	return found.String()
}
