package status

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/kubectl/cli"
)

// sample has a volume in use, one that cannot be made, one that cannot be deleted, one that was given to another
// claim, and one of an administrator's.
func sample() []VolumeRow {
	quantity := resource.MustParse("1Gi")
	volume := func(claim string, status pavv1.PavVolumeStatus) pavv1.PavVolume {
		return pavv1.PavVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-" + claim, CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour))},
			Spec: pavv1.PavVolumeSpec{Provisioner: "demo", ClaimRef: pavv1.ClaimReference{Namespace: "apps", Name: claim}}, Status: status}
	}
	stage := func(name, volume, node string, status pavv1.PavStageStatus) pavv1.PavStage {
		return pavv1.PavStage{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: status,
			Spec: pavv1.PavStageSpec{Provisioner: "demo", VolumeName: volume, NodeName: node, ClaimRef: pavv1.ClaimReference{Namespace: "ops", Name: "shared"},
				Volume: apiextensionsv1.JSON{Raw: []byte(`{"metadata":{"creationTimestamp":"2026-03-01T11:58:00Z"},"spec":{"capacity":{"storage":"5Gi"}}}`)}}}
	}
	pv := func(name, driver string, claim *corev1.ObjectReference) corev1.PersistentVolume {
		return corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{ClaimRef: claim,
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver}}}}
	}
	filled := &corev1.ObjectReference{Namespace: "web", Name: "filled"}
	failure := &pavv1.WorkflowFailure{Message: "no such\nuser"}
	return JoinVolumes(
		[]pavv1.PavVolume{
			volume("good", pavv1.PavVolumeStatus{Phase: pavv1.VolumeReady, Capacity: &quantity}),
			volume("bad", pavv1.PavVolumeStatus{Phase: pavv1.VolumePending, Step: pavv1.StepCreating, Attempt: 4, Failure: failure, Pod: &pavv1.PodReference{}}),
			volume("kept", pavv1.PavVolumeStatus{Phase: pavv1.VolumeDeleting, Capacity: &quantity, DeletionAttempt: 2, DeletionFailure: failure}),
			volume("new", pavv1.PavVolumeStatus{}),
			volume("old", pavv1.PavVolumeStatus{Phase: pavv1.VolumeReady, Capacity: &quantity}),
		},
		[]pavv1.PavStage{
			stage("s2", "pvc-good", "n2", pavv1.PavStageStatus{Phase: pavv1.StageStaged, Conditions: []metav1.Condition{{Type: pavv1.StageDegraded, Status: metav1.ConditionTrue, Reason: "VolumeDead"}}}),
			stage("s1", "pvc-good", "n1", pavv1.PavStageStatus{Phase: pavv1.StageStaged}),
			stage("s3", "pvc-kept", "n1", pavv1.PavStageStatus{Phase: pavv1.StageUnstaging, UnstagingAttempt: 3, UnstagingFailure: &pavv1.WorkflowFailure{Message: "busy"}}),
			stage("s4", "disk", "n1", pavv1.PavStageStatus{Phase: pavv1.StageStaged}),
		},
		[]corev1.PersistentVolume{
			pv("pvc-old", "demo", filled),
			pv("pvc-good", "demo", nil),
			pv("pvc-kept", "other", filled),
			pv("elsewhere", "demo", filled),
			{ObjectMeta: metav1.ObjectMeta{Name: "pvc-new"}, Spec: corev1.PersistentVolumeSpec{ClaimRef: filled}},
		})
}

func TestTable(t *testing.T) {
	out := &bytes.Buffer{}
	env := &cli.Env{IOStreams: genericiooptions.IOStreams{Out: out}}
	if err := renderTable(env, sample(), "", true, noon); err != nil {
		t.Fatal(err)
	}
	want := `NAMESPACE   CLAIM    PROVISIONER   PHASE      STEP       CAPACITY   NODES               FAILURES   AGE   PV         LAST FAILURE
apps        bad      demo          Pending    creating   -          -                   3          1h    pvc-bad    no such | user
apps        good     demo          Ready      -          1Gi        n1, n2 VolumeDead   0          1h    pvc-good
apps        kept     demo          Deleting   -          1Gi        n1 Unstaging        4          1h    pvc-kept   no such | user
apps        new      demo          Pending    -          -          -                   0          1h    pvc-new
ops         shared   demo          Static     -          5Gi        n1                  0          2m    disk
web         filled   demo          Ready      -          1Gi        -                   0          1h    pvc-old
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s\n%s", diff, out)
	}
}

func TestInNamespace(t *testing.T) {
	if got := inNamespace(sample(), "ops"); len(got) != 1 || got[0].Claim != "shared" || got[0].Dynamic {
		t.Errorf("got %+v", got)
	}
	if got := inNamespace(sample(), "web"); len(got) != 1 || got[0].PV != "pvc-old" {
		t.Errorf("of a namespace whose claim was given a volume: got %+v", got)
	}
}
