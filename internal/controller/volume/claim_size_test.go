package volume

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

func TestSizeOf(t *testing.T) {
	const progress, infeasible = corev1.PersistentVolumeClaimControllerResizeInProgress, corev1.PersistentVolumeClaimControllerResizeInfeasible
	const pending, inProgress, nodeInfeasible = corev1.PersistentVolumeClaimNodeResizePending, corev1.PersistentVolumeClaimNodeResizeInProgress, corev1.PersistentVolumeClaimNodeResizeInfeasible
	unshown := func(o *observation) { o.user.Status = growable("1Gi").o.user.Status }
	for name, test := range map[string]struct {
		state *state
		want  size
	}{
		"a volume that never grew":                   {state: growable("1Gi"), want: size{capacity: "1Gi"}},
		"a volume that grows":                        {state: growing().with(unshown), want: size{capacity: "1Gi", allocated: "2Gi", resize: progress, resizing: true}},
		"after a failure":                            {state: failedToGrow("2Gi", pavv1.FailurePodFailed, 1).with(unshown), want: size{capacity: "1Gi", allocated: "2Gi", resize: progress, resizing: true, failure: "why"}},
		"called infeasible":                          {state: failedToGrow("2Gi", pavv1.FailureInfeasible, 1).with(unshown), want: size{capacity: "1Gi", allocated: "2Gi", resize: infeasible, resizing: true, failure: "why"}},
		"is about to have grown":                     {state: growable("2Gi").with(recordedIs("3Gi")), want: size{capacity: "1Gi", allocated: "2Gi", resize: progress, resizing: true}},
		"has grown":                                  {state: growable("2Gi").with(capacityIs("3Gi")), want: size{capacity: "3Gi", allocated: "2Gi"}},
		"the request was lowered while it grew":      {state: growing().with(requests("1500Mi")).with(recordedIs("2Gi")).with(hasEnded), want: size{capacity: "1Gi", allocated: "2Gi", resize: progress, resizing: true}},
		"the same, and the PersistentVolume says so": {state: growing().with(requests("1500Mi")).with(capacityIs("2Gi")).with(hasEnded), want: size{capacity: "2Gi", allocated: "2Gi"}},
		"the same, and less came about":              {state: growing().with(requests("1200Mi")).with(capacityIs("1500Mi")).with(hasEnded), want: size{capacity: "1500Mi", allocated: "1500Mi"}},
		"the claim shows more, and keeps it":         {state: growing().with(claimShows("5Gi")), want: size{capacity: "5Gi", allocated: "2Gi", resize: progress, resizing: true}},
		"nothing grows any more":                     {state: growing().with(func(o *observation) { o.volume.Status.Expansion = nil; o.volume.Status.Pod = nil }), want: size{capacity: "1Gi", allocated: "2Gi"}},
		"the claim is being deleted":                 {state: growable("2Gi").with(claimDeleted), want: size{capacity: "1Gi"}},
		"an API server that drops some fields":       {state: growing().with(unshown).with(func(o *observation) { o.dropsSizes = true }), want: size{capacity: "1Gi", resizing: true}},
		"is to grow on a node":                       {state: onNodes(), want: size{capacity: "1Gi", allocated: "2Gi", resize: pending, onNode: true}},
		"grows on a node":                            {state: onNodes().with(kubeletSays(inProgress)), want: size{capacity: "1Gi", allocated: "2Gi", resize: inProgress, onNode: true}},
		"grows on a node to less":                    {state: onNodes().with(kubeletSays(inProgress)).with(requests("3Gi")).with(capacityIs("3Gi")), want: size{capacity: "1Gi", allocated: "3Gi", resize: pending, onNode: true}},
		"a node says that it is infeasible":          {state: onNodes().with(kubeletSays(nodeInfeasible)).with(nodeErrorAt(1)), want: size{capacity: "1Gi", allocated: "2Gi", resize: nodeInfeasible, onNode: true}},
		"a node said so long ago":                    {state: onNodes().with(kubeletSays(nodeInfeasible)).with(nodeErrorAt(600)), want: size{capacity: "1Gi", allocated: "2Gi", resize: pending, onNode: true}},
		"a node said so of another definition":       {state: onNodes().with(kubeletSays(nodeInfeasible)).with(nodeErrorAt(1)).with(definitionChanged), want: size{capacity: "1Gi", allocated: "2Gi", resize: pending, onNode: true}},
		"a node said so of another size":             {state: onNodes().with(kubeletSays(nodeInfeasible)).with(nodeErrorAt(1)).with(requests("3Gi")).with(capacityIs("3Gi")), want: size{capacity: "1Gi", allocated: "3Gi", resize: pending, onNode: true}},
		"has more than it requests":                  {state: onNodes().with(capacityIs("3Gi")), want: size{capacity: "1Gi", allocated: "3Gi", resize: pending, onNode: true}},
		"a node has grown it to more":                {state: onNodes().with(capacityIs("3Gi")).with(shown).with(claimShows("3Gi")).with(kubeletSays("")), want: size{capacity: "3Gi", allocated: "3Gi"}},
		"requests less again":                        {state: onNodes().with(shown).with(requests("1500Mi")), want: size{capacity: "1Gi", allocated: "2Gi", resize: pending, onNode: true}},
		"requests more, and nothing has begun":       {state: onNodes().with(requests("4Gi")), want: size{capacity: "1Gi", allocated: "2Gi", resize: pending, onNode: true}},
		"only less could be allocated":               {state: onNodes().with(shown).with(capacityIs("3Gi")), want: size{capacity: "1Gi", allocated: "2Gi", resize: pending, onNode: true}},
		"a node has grown what could be allocated":   {state: onNodes().with(shown).with(capacityIs("3Gi")).with(kubeletSays("")).with(claimShows("2Gi")), want: size{capacity: "2Gi", allocated: "3Gi", resize: pending, onNode: true}},
		"a second node says it is infeasible":        {state: onNodes().with(shown).with(claimShows("2Gi")).with(kubeletSays(nodeInfeasible)).with(nodeErrorAt(1)), want: size{capacity: "2Gi", allocated: "2Gi", resize: nodeInfeasible}},
		"a second node said so long ago":             {state: onNodes().with(shown).with(claimShows("2Gi")).with(kubeletSays(nodeInfeasible)).with(nodeErrorAt(600)), want: size{capacity: "2Gi", allocated: "2Gi"}},
		"nodes were asked again since":               {state: onNodes().with(kubeletSays(nodeInfeasible)).with(nodeErrorAt(3600)).with(askedAt(60)), want: size{capacity: "1Gi", allocated: "2Gi", resize: nodeInfeasible, onNode: true}},
		"nodes were asked again long ago":            {state: onNodes().with(kubeletSays(nodeInfeasible)).with(nodeErrorAt(3600)).with(askedAt(600)), want: size{capacity: "1Gi", allocated: "2Gi", resize: pending, onNode: true}},
		"the provisioner is gone meanwhile":          {state: onNodes().with(shown).with(func(o *observation) { o.provisioner = nil }), want: size{capacity: "1Gi", allocated: "2Gi", resize: pending, onNode: true}},
		"a further expansion has failed":             {state: failedToGrow("2Gi", pavv1.FailurePodFailed, 1).with(capacityIs("1500Mi")).with(nodeTemplate).with(unshown), want: size{capacity: "1Gi", allocated: "1500Mi", resize: pending, resizing: true, failure: "why", onNode: true}},
		"a node has grown it":                        {state: onNodes().with(shown).with(claimShows("2Gi")).with(kubeletSays("")), want: size{capacity: "2Gi", allocated: "2Gi"}},
		"nodes have nothing to do any more":          {state: onNodes().with(shown).with(func(o *observation) { o.provisioner.Spec.VolumeExpansion.NodePodTemplate = nil }), want: size{capacity: "2Gi", allocated: "2Gi"}},
		"it grows further before a node has":         {state: growing().with(capacityIs("1500Mi")).with(nodeTemplate).with(unshown), want: size{capacity: "1Gi", allocated: "2Gi", resize: progress, resizing: true}},
		"an equal quantity in another notation":      {state: growable("1Gi").with(capacityIs("1073741824")), want: size{capacity: "1Gi"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := test.state.o
			want := sizeOf(o)
			if diff := cmp.Diff(test.want, want, cmp.AllowUnexported(size{})); diff != "" {
				t.Fatalf("-want +got:\n%s", diff)
			}
			// What is written is what is seen then, and is not written again.
			want.show(&o.user.Status, metav1.NewTime(noon))
			if got := sizeShown(o.user); got != want {
				t.Errorf("it shows %+v, want %+v", got, want)
			}
			if again := sizeOf(o); again != want {
				t.Errorf("the next pass writes %+v", again)
			}
		})
	}
}

// hasEnded ends the recorded expansion, which the claim still shows.
func hasEnded(o *observation) { clearChange(&o.volume.Status, pavv1.WorkflowExpansion) }

func nodeTemplate(o *observation) { o.provisioner.Spec.VolumeExpansion.NodePodTemplate = field(`{}`) }

func definitionChanged(o *observation) { o.provisioner.Generation++ }

// onNodes returns a volume that has grown from 1 Gi to 2 Gi, and is to do so on its nodes.
func onNodes() *state {
	return growable("2Gi").with(capacityIs("2Gi")).with(nodeTemplate).with(func(o *observation) {
		o.pv.Spec.Capacity[corev1.ResourceStorage] = resource.MustParse("2Gi")
		o.volume.Status.ProvisionerGeneration = o.provisioner.Generation
	})
}

// kubeletSays makes the claim show a state of kubelet's, or none.
func kubeletSays(is corev1.ClaimResourceStatus) func(*observation) {
	return func(o *observation) {
		shown(o)
		o.user.Status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{corev1.ResourceStorage: is}
		if is == "" {
			o.user.Status.AllocatedResourceStatuses, o.user.Status.Conditions = nil, nil
		}
	}
}

// askedAt records that nodes were asked again some seconds ago.
func askedAt(seconds int) func(*observation) {
	return func(o *observation) { o.volume.Status.NodesAskedTime = new(ago(seconds)) }
}

// nodeErrorAt adds kubelet's condition about an error some seconds ago.
func nodeErrorAt(seconds int) func(*observation) {
	return func(o *observation) {
		o.user.Status.Conditions = append(o.user.Status.Conditions, corev1.PersistentVolumeClaimCondition{
			Type: corev1.PersistentVolumeClaimNodeResizeError, Status: corev1.ConditionTrue, LastTransitionTime: ago(seconds),
		})
	}
}

func TestShow_KeepsOtherConditionsAndResources(t *testing.T) {
	other := corev1.PersistentVolumeClaimCondition{Type: corev1.PersistentVolumeClaimNodeResizeError, Status: corev1.ConditionTrue}
	status := corev1.PersistentVolumeClaimStatus{
		Conditions:                []corev1.PersistentVolumeClaimCondition{other},
		AllocatedResourceStatuses: map[corev1.ResourceName]corev1.ClaimResourceStatus{"example.com/x": "y"},
	}
	size{capacity: "1Gi", allocated: "2Gi", resize: "r", resizing: true, failure: "f"}.show(&status, metav1.NewTime(noon))
	size{capacity: "2Gi", allocated: "2Gi"}.show(&status, metav1.NewTime(noon))
	if diff := cmp.Diff([]corev1.PersistentVolumeClaimCondition{other}, status.Conditions); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[corev1.ResourceName]corev1.ClaimResourceStatus{"example.com/x": "y"}, status.AllocatedResourceStatuses); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
}
