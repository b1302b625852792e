package status

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/kubectl/cli"
)

func TestGetSnapshots(t *testing.T) {
	snapshot := func(name, namespace, object, provisioner string, status pavv1.PavSnapshotStatus) *pavv1.PavSnapshot {
		record := snapshotRecord(status)
		record.Name, record.UID = name, ""
		record.Spec.Provisioner, record.Spec.SnapshotRef.Namespace, record.Spec.SnapshotRef.Name = provisioner, namespace, object
		return record
	}
	static := snapshot("snapshotcontent-4", "web", "old", "demo", pavv1.PavSnapshotStatus{Phase: pavv1.SnapshotReady})
	static.Spec.VolumeName = ""
	reader := fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(
		snapshot("snapshot-1", "web", "new", "demo", pavv1.PavSnapshotStatus{}),
		snapshot("snapshot-2", "apps", "good", "demo", pavv1.PavSnapshotStatus{Phase: pavv1.SnapshotReady, Size: new(resource.MustParse("1Gi"))}),
		snapshot("snapshot-3", "apps", "bad", "demo", pavv1.PavSnapshotStatus{Phase: pavv1.SnapshotPending, Step: pavv1.SnapshotCreating, Attempt: 3,
			Pod: &pavv1.PodReference{}, Failure: snapshotFailure("p", "no such\nuser")}),
		static,
		snapshot("snapshot-5", "apps", "kept", "demo", pavv1.PavSnapshotStatus{Phase: pavv1.SnapshotDeleting, DeletionAttempt: 2, DeletionFailure: snapshotFailure("p", "busy")}),
		snapshot("snapshot-6", "apps", "foreign", "other", pavv1.PavSnapshotStatus{}),
	).Build()
	rows, err := readSnapshots(t.Context(), reader, "demo")
	if err != nil {
		t.Fatal(err)
	}
	out := &bytes.Buffer{}
	if err := renderSnapshots(&cli.Env{IOStreams: genericiooptions.IOStreams{Out: out}}, rows, true, noon); err != nil {
		t.Fatal(err)
	}
	want := `NAMESPACE   SNAPSHOT   PROVISIONER   VOLUME   PHASE      STEP       SIZE   FAILURES   AGE   RECORD              LAST FAILURE
apps        bad        demo          pvc-u1   Pending    creating   -      2          2s    snapshot-3          no such | user
apps        good       demo          pvc-u1   Ready      -          1Gi    0          2s    snapshot-2
apps        kept       demo          pvc-u1   Deleting   -          -      2          2s    snapshot-5          busy
web         new        demo          pvc-u1   Pending    -          -      0          2s    snapshot-1
web         old        demo          -        Ready      -          -      0          2s    snapshotcontent-4
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s\n%s", diff, out)
	}
}
