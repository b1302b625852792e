package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Further provisioners of volumes in use, whose storage is on each node's own disk: volumes of one are
// served by a FUSE daemon in the staging pod, those of the other are loop devices.
const (
	fusing   = "fusing"
	blocking = "blocking"

	localStorage = "/srv/e2e-storage"
)

// inUse are the provisioners of the volumes in use.
var inUse = []string{completing, running, fusing, blocking}

// localVolumes returns the provisioners fusing and blocking, with their classes and a claim of each.
// Their pods note in a journal on the node what they do. Their storage goes with the test.
func localVolumes(t *testing.T, access string) string {
	t.Helper()
	t.Cleanup(func() {
		for _, node := range nodes {
			removeMarks(t, node, localStorage)
		}
	})
	var parts []string
	for name, m := range map[string]medium{fusing: fuse, blocking: devices} {
		l := &ledger{name: name, directory: localStorage + "/" + name}
		parts = append(parts,
			strings.ReplaceAll(l.storageYAML(m), fmt.Sprintf("{path: %q}", l.directory), fmt.Sprintf("{path: %q, type: DirectoryOrCreate}", l.directory)),
			strings.Replace(claim(name, name, access), "spec:\n", "spec:\n  volumeMode: "+string(m.mode())+"\n", 1))
	}
	return documents(parts...)
}

// wantLocalEffects objects unless this is what pods did on a node for a provisioner of localVolumes, in this order.
func wantLocalEffects(ctx context.Context, node, provisioner string, want ...string) error {
	text, err := onNode(ctx, node, "cat", localStorage+"/"+provisioner+"/journal")
	if err != nil {
		return err
	}
	var got []string
	for line := range strings.Lines(text) {
		what, _, _ := strings.Cut(line, " ")
		got = append(got, what)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Errorf("the pods of %s that have run (-want +got):\n%s", provisioner, diff)
	}
	return nil
}
