package render

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const pavSnapshot = `apiVersion: pav.albertofaria.github.io/v1alpha1
kind: PavSnapshot
metadata: {name: snapshot-f2b02c8a-95c2-4d0b-8d6a-3a3d8a7d9d3f}
spec: {provisioner: sources}
status: {phase: Ready, handle: array-9, size: 3Gi}
`

// A claim whose source cannot be used is refused as by the claim controller.
func TestRender_OfSources(t *testing.T) {
	for name, test := range map[string]struct {
		file, old, new string
		args           []string
		words          string
		code           int
	}{
		"a snapshot that is not ready": {file: "restore", old: "  volumeSnapshotClassName: gold\n", new: "  volumeSnapshotClassName: gold\nstatus: {readyToUse: false}\n",
			words: `error: creation: the claim's spec.dataSourceRef: VolumeSnapshot "default/monday" is not ready to use yet`, code: 1},
		"a snapshot that is larger": {file: "restore", old: "  volumeSnapshotClassName: gold\n", new: "  volumeSnapshotClassName: gold\nstatus: {restoreSize: 3Gi}\n",
			words: `VolumeSnapshot "default/monday" has a capacity of 3Gi, and the claim requests 2Gi`, code: 1},
		"a snapshot of another driver": {file: "restore", old: "driver: sources\n  deletionPolicy", new: "driver: other\n  deletionPolicy",
			words: `is a snapshot of the driver "other", not of PavProvisioner "sources"`, code: 1},
		"a snapshot of another mode": {file: "restore", old: "source: {volumeHandle: h}", new: "source: {volumeHandle: h}\n  sourceVolumeMode: Block",
			words: "has the volume mode Block, and the claim requests Filesystem", code: 1},
		"a snapshot without its class": {file: "restore", old: "  name: gold\n", new: "  name: silver\n",
			words: `the VolumeSnapshotClass "gold" of the source was not given: the source has no params`},
		"a snapshot with its record": {file: "restore", old: "parameters: {pool: gold}\n", new: "parameters: {pool: gold}\n---\n" + pavSnapshot,
			words: `VolumeSnapshot "default/monday" has a capacity of 3Gi, and the claim requests 2Gi`, code: 1},
		"a claim that is not bound": {file: "clone", old: "requests: {storage: 1Gi}}\n", new: "requests: {storage: 1Gi}}\nstatus: {phase: Pending}\n",
			words: `PersistentVolumeClaim "default/data" is not bound yet: its phase is Pending`, code: 1},
		"a claim of another driver": {file: "clone", old: "driver: sources", new: "driver: other", words: `PersistentVolumeClaim "default/data" has no volume of PavProvisioner "sources"`, code: 1},
		"the claim itself":          {file: "restore", old: "{apiGroup: snapshot.storage.k8s.io, kind: VolumeSnapshot, name: monday}", new: "{kind: PersistentVolumeClaim, name: restored}", words: "is the claim itself", code: 1},
		"another group": {file: "clone", old: "dataSourceRef: {kind", new: "dataSourceRef: {apiGroup: example.com, kind",
			words: `the claim's spec.dataSourceRef.apiGroup: must be "" for the kind PersistentVolumeClaim`, code: 1},
		"another namespace": {file: "clone", old: "dataSourceRef: {kind", new: "dataSourceRef: {namespace: others, kind",
			words: `the source is in the namespace "others": that takes the option --cross-namespace-sources`},
		"a populator's": {file: "restore", old: "{apiGroup: snapshot.storage.k8s.io, kind: VolumeSnapshot", new: "{apiGroup: example.com, kind: Image",
			words: "the source of the claim is of the kind Image: PaV leaves the claim to a volume populator"},
		"a node that does not reach it": {file: "clone", old: "resources: {requests: {storage: 2Gi}}", new: "resources: {requests: {storage: 2Gi}}\n  storageClassName: late",
			args: []string{"--sc", "testdata/late.yaml"}, words: `the source can be reached from nodes with zone=a, and not from "node-1": PaV takes another node`},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := os.ReadFile(filepath.Join("testdata", test.file+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			text := strings.Replace(string(raw), test.old, test.new, 1)
			if text == string(raw) {
				t.Fatalf("%q is not in the file", test.old)
			}
			file := filepath.Join(t.TempDir(), "objects.yaml")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, stderr, code := run(t, append([]string{"testdata/sources.yaml", file, "--phase", "creation"}, test.args...)...)
			if !strings.Contains(stderr, test.words) || code != test.code {
				t.Errorf("exit status %d, want %d; got %s, want %q", code, test.code, stderr, test.words)
			}
		})
	}
}

// A PersistentVolume of a source is not that of the claim.
func TestRender_WithTheVolumeOfASource(t *testing.T) {
	stdout, stderr, code := run(t, "testdata/sources.yaml", "testdata/clone.yaml", "--phase", "deletion")
	if code != 0 || !strings.Contains(stdout, "- PersistentVolumeClaim\n") || strings.Contains(stdout, "handle: array-7") {
		t.Errorf("exit status %d: %s%s", code, stdout, stderr)
	}
}
