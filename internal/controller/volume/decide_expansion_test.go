package volume

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/reconcile"
)

// growable returns a volume of 1 Gi in use, whose claim shows 1 Gi and requests something.
func growable(requests string) *state {
	s := in(pavv1.VolumeReady, corev1.VolumeBound, deletePolicy)
	s.o.claim = claimBound
	s.o.provisioner.Spec.VolumeExpansion = &pavv1.VolumeExpansion{PodTemplate: field(`{}`)}
	s.o.pv.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	s.o.user = &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "data", UID: "u1"}}
	s.o.user.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(requests)}
	s.o.user.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	return s
}

// shown makes the claim show what it is to show.
func shown(o *observation) { sizeOf(*o).show(&o.user.Status, metav1.NewTime(noon)) }

// growing returns a volume of 1 Gi that is to grow to 2 Gi, with a recorded pod. The claim shows that.
func growing() *state {
	return growable("2Gi").with(func(o *observation) {
		status := &o.volume.Status
		status.Step, status.Pods, status.ProvisionerGeneration = pavv1.StepExpanding, 2, 3
		status.Pod = &pavv1.PodReference{Namespace: "pav-pods", Name: "pod"}
		status.Expansion = &pavv1.VolumeExpansionRecord{Target: resource.MustParse("2Gi"), ChangeAttempt: pavv1.ChangeAttempt{Attempt: 1}}
		shown(o)
	})
}

// failedToGrow returns a volume whose expansion to 2 Gi has failed this many seconds ago, and whose claim requests something.
func failedToGrow(requests string, reason pavv1.FailureReason, seconds int) *state {
	return growing().with(func(o *observation) {
		o.volume.Status.Step, o.volume.Status.Pod = "", nil
		o.volume.Status.Expansion.Uncertain = reason == pavv1.FailurePodRemoved
		o.volume.Status.Expansion.Failure = &pavv1.WorkflowFailure{Workflow: pavv1.WorkflowExpansion, Reason: reason, Message: "why", Time: ago(seconds)}
		o.user.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(requests)
		shown(o)
	})
}

// recordedIs records a capacity of the volume, and capacityIs gives its PersistentVolume the same.
func recordedIs(text string) func(*observation) {
	return func(o *observation) { o.volume.Status.Capacity = ptrQuantity(text) }
}

func capacityIs(text string) func(*observation) {
	return func(o *observation) {
		recordedIs(text)(o)
		o.pv.Spec.Capacity[corev1.ResourceStorage] = resource.MustParse(text)
	}
}

func claimShows(text string) func(*observation) {
	return func(o *observation) { o.user.Status.Capacity[corev1.ResourceStorage] = resource.MustParse(text) }
}

func claimDeleted(o *observation) { o.user.DeletionTimestamp = new(metav1.NewTime(noon)) }

func noUser(o *observation) { o.user = nil }

func requests(text string) func(*observation) {
	return func(o *observation) {
		o.user.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(text)
	}
}

func offline(o *observation) { o.provisioner.Spec.VolumeExpansion.Online = new(false) }

// held records that no node is to stage the volume until it has 2 Gi.
func held(o *observation) {
	o.volume.Status.Expansion = &pavv1.VolumeExpansionRecord{Target: resource.MustParse("2Gi"), Offline: true}
	shown(o)
}

func stagedOnNode(o *observation) {
	o.others = append(o.others, reconcile.Holder{Kind: reconcile.KindStage, Name: "stage", Node: "node-1"})
}

func noExpansion(o *observation) { o.provisioner.Spec.VolumeExpansion = nil }

func releasedPV(o *observation) {
	o.pv.Status.Phase, o.claim, o.user = corev1.VolumeReleased, claimGone, nil
}

// retains makes the administrator keep the storage.
func retains(o *observation) {
	o.volume.Spec.ReclaimPolicy = retainPolicy
	retainsPV(o)
}

// toldLate records the failure of the expansion pod, whose node has reported after that what the pod wrote to /pav/capacity.
func toldLate(o *observation) {
	reportedLate(o)
	o.volume.Status.Expansion.Failure.Time = metav1.NewTime(noon)
	o.pods[0].Annotations = map[string]string{pavv1.ResultAnnotation: `{"capacity": "3Gi"}`}
	shown(o)
}

// ofFormerClaim makes the recorded changes those that a former claim asked for.
func ofFormerClaim(o *observation) {
	if e := o.volume.Status.Expansion; e != nil {
		e.ClaimUID = "u0"
	}
	if m := o.volume.Status.Modification; m != nil {
		m.ClaimUID = "u0"
	}
}

// lostPod records that it is not known what the last expansion pod has done.
func lostPod(o *observation) { o.volume.Status.Expansion.Uncertain = true }

func saysUnshown(o *observation) {
	setCondition(o.volume, &o.volume.Status, pavv1.VolumeExpanded, reasonUnshown, "m")
}

func attempted3Gi(o *observation) { o.volume.Status.AttemptedCapacity = ptrQuantity("3Gi") }

func TestDecide_OnExpansion(t *testing.T) {
	tests := map[string]struct {
		state   *state
		want    step
		message string
		after   time.Duration
	}{
		// No pod is recorded.
		"the claim requests what the volume has":                  {state: growable("1Gi"), want: stepDone},
		"the claim requests less than the volume has":             {state: growable("500Mi"), want: stepDone},
		"the claim requests more":                                 {state: growable("2Gi"), want: stepExpand},
		"no claim is bound":                                       {state: growable("2Gi").with(noUser), want: stepDone},
		"the claim is being deleted":                              {state: growable("2Gi").with(claimDeleted), want: stepDone},
		"the definition has no expansion":                         {state: growable("2Gi").with(noExpansion), want: stepWait, message: "no spec.volumeExpansion"},
		"the definition has no expansion, and none is needed":     {state: growable("1Gi").with(noExpansion), want: stepDone},
		"the provisioner is gone":                                 {state: growable("2Gi").with(func(o *observation) { o.provisioner = nil }), want: stepWait, message: "create it again"},
		"the provisioner is gone, and nothing is to grow":         {state: growable("1Gi").with(func(o *observation) { o.provisioner = nil }), want: stepDone},
		"the provisioner is to be deleted: it serves what it has": {state: growable("2Gi").with(func(o *observation) { o.provisioner.DeletionTimestamp = new(metav1.NewTime(noon)) }), want: stepExpand},
		"the volume has grown: first the claim says that it does": {state: growable("2Gi").with(recordedIs("2Gi")), want: stepShowClaim},
		"then the PersistentVolume":                               {state: growable("2Gi").with(recordedIs("2Gi")).with(shown), want: stepUpdatePV},
		"someone has written less into the PersistentVolume":      {state: growable("1Gi").with(recordedIs("2Gi")).with(shown), want: stepUpdatePV},
		"it grows offline: first no node is to stage it":          {state: growable("2Gi").with(offline), want: stepHold},
		"it grows offline, and a node has it":                     {state: growable("2Gi").with(offline).with(held).with(stagedOnNode), want: stepWait, message: "the volume is staged on node-1"},
		"it grows offline, and no node has it":                    {state: growable("2Gi").with(offline).with(held), want: stepExpand},
		"it grows online, and a node has it":                      {state: growable("2Gi").with(stagedOnNode), want: stepExpand},
		"it grows offline without a pod":                          {state: growable("2Gi").with(offline).with(func(o *observation) { o.provisioner.Spec.VolumeExpansion.PodTemplate = nil }), want: stepExpand},
		"it failed offline, and nodes may stage it meanwhile":     {state: failedToGrow("2Gi", pavv1.FailurePodFailed, 0).with(offline), want: stepDone, after: time.Second},
		"it failed offline, and is tried again":                   {state: failedToGrow("2Gi", pavv1.FailurePodFailed, 100).with(offline), want: stepHold},
		"nodes leave it alone, and the request is taken back":     {state: growable("1Gi").with(offline).with(held), want: stepEndExpansion},
		"nodes leave it alone, and the claim is being deleted":    {state: growable("2Gi").with(offline).with(held).with(claimDeleted), want: stepEndExpansion},
		"nodes leave it alone, and volumes do not grow any more":  {state: growable("2Gi").with(offline).with(held).with(noExpansion), want: stepEndExpansion},
		"nodes leave it alone, and what a pod did is not known":   {state: growable("1Gi").with(offline).with(held).with(lostPod), want: stepExpand},
		"the same, and volumes do not grow any more": {
			state: growable("2Gi").with(offline).with(held).with(lostPod).with(noExpansion).with(shown), want: stepWait, message: "no node stages the volume until it has grown"},
		"the same, and the provisioner is gone": {
			state: growable("2Gi").with(offline).with(held).with(lostPod).with(withoutProvisioner).with(shown), want: stepWait, message: "no node stages the volume until it has grown"},
		"then a node":                       {state: onNodes(), want: stepShowClaim},
		"a node is to make it available":    {state: onNodes().with(shown), want: stepDone},
		"a node says that it is infeasible": {state: onNodes().with(kubeletSays(corev1.PersistentVolumeClaimNodeResizeInfeasible)).with(nodeErrorAt(60)), want: stepDone, after: 9 * time.Minute},
		"then the claim":                    {state: growable("2Gi").with(capacityIs("2Gi")).with(func(o *observation) { o.pv.Spec.Capacity[corev1.ResourceStorage] = resource.MustParse("2Gi") }), want: stepShowClaim},
		"the claim shows more than the volume has, which it keeps": {state: growable("1Gi").with(claimShows("3Gi")), want: stepDone},
		"the expansion failed: wait":                               {state: failedToGrow("2Gi", pavv1.FailurePodFailed, 0), want: stepDone, after: time.Second},
		"the expansion failed a while ago: again":                  {state: failedToGrow("2Gi", pavv1.FailurePodFailed, 1), want: stepExpand},
		"it failed, and the claim shows nothing of that":           {state: failedToGrow("2Gi", pavv1.FailurePodFailed, 1).with(func(o *observation) { o.user.Status.Conditions = nil }), want: stepShowClaim},
		"it failed, and the definition has changed":                {state: failedToGrow("2Gi", pavv1.FailurePodFailed, 0).with(func(o *observation) { o.provisioner.Generation++ }), want: stepExpand},
		"it failed, and a retry was requested":                     {state: failedToGrow("2Gi", pavv1.FailurePodFailed, 0).with(func(o *observation) { o.retry = noon.Add(time.Second) }), want: stepExpand},
		"it failed, and the claim requests less, but more than 1 Gi": {
			state: failedToGrow("1500Mi", pavv1.FailurePodFailed, 1), want: stepExpand},
		"it failed, and the claim requests no more": {state: failedToGrow("1Gi", pavv1.FailurePodFailed, 0), want: stepEndExpansion},
		"it is infeasible: wait longer":             {state: failedToGrow("2Gi", pavv1.FailureInfeasible, 60), want: stepDone, after: 9 * time.Minute},
		"it is infeasible, and the claim requests something else": {
			state: failedToGrow("3Gi", pavv1.FailureInfeasible, 1), want: stepExpand},
		"the pod was removed by force, and the claim requests no more: the same again": {
			state: failedToGrow("1Gi", pavv1.FailurePodRemoved, 1), want: stepExpand},
		"the pod was removed by force, and the claim requests something else: the same again": {
			state: failedToGrow("3Gi", pavv1.FailurePodRemoved, 0), want: stepDone, after: time.Second},
		"a former claim had the pod that is lost: not for this one": {state: failedToGrow("1Gi", pavv1.FailurePodRemoved, 1).with(ofFormerClaim), want: stepEndExpansion},
		"the same, and this one requests more, too":                 {state: failedToGrow("3Gi", pavv1.FailurePodRemoved, 1).with(ofFormerClaim), want: stepEndExpansion},
		"the same, and then: what this one requests":                {state: failedToGrow("3Gi", pavv1.FailurePodRemoved, 1).with(ofFormerClaim).with(hasEnded).with(shown), want: stepExpand},
		"nodes leave it alone for a former claim":                   {state: growable("2Gi").with(offline).with(held).with(ofFormerClaim), want: stepEndExpansion},
		"another size follows after the same delay":                 {state: failedToGrow("3Gi", pavv1.FailurePodFailed, 0), want: stepDone, after: time.Second},
		"the target of a restored record is below what the volume has": {
			state: failedToGrow("1Gi", pavv1.FailurePodRemoved, 1).with(func(o *observation) { o.volume.Status.Expansion.Target = resource.MustParse("500Mi") }), want: stepEndExpansion},
		"it was said that the volume cannot grow, and it need not any more": {state: growable("1Gi").with(func(o *observation) {
			setCondition(o.volume, &o.volume.Status, pavv1.VolumeExpanded, "Unsupported", "m")
		}), want: stepEndExpansion},
		"the claim cannot show what it has: that is still said": {
			state: onNodes().with(saysUnshown), want: stepShowClaim},
		"the claim could not show what it has, and does by now": {
			state: onNodes().with(shown).with(saysUnshown), want: stepEndExpansion},
		"the claim of a volume that has grown requests more": {state: growable("2Gi").with(func(o *observation) {
			o.user.Status.AllocatedResources = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
		}), want: stepExpand},
		"the PavVolume is deleted": {state: growable("2Gi").deleted(), want: stepWait, message: "still in use"},

		// A pod is recorded.
		"the claim does not show it yet":              {state: growing().with(func(o *observation) { o.user.Status.AllocatedResourceStatuses = nil }), want: stepShowClaim},
		"the pod is to be created":                    {state: growing(), want: stepRunPod},
		"the pod waits for long":                      {state: growing().with(due(601)), want: stepRunPod, message: "for a slot"},
		"the claim requests another size first":       {state: growing().with(requests("3Gi")), want: stepDropPod},
		"the claim is deleted first":                  {state: growing().with(claimDeleted), want: stepDropPod},
		"the volume is released first":                {state: growing().with(releasedPV), want: stepDropPod},
		"the definition loses its expansion first":    {state: growing().with(noExpansion), want: stepDropPod},
		"the definition grows volumes offline by now": {state: growing().with(offline), want: stepDropPod},
		"the same, and the pod cannot start":          {state: growing().pod(5, pulls).with(offline), want: stepStopPod},
		"nodes leave it alone, and the pod is to be created": {
			state: growing().with(offline).with(func(o *observation) { o.volume.Status.Expansion.Offline = true }), want: stepRunPod},
		"the pod runs":         {state: growing().pod(5, runs), want: stepDone, after: 25 * time.Second},
		"the pod cannot start": {state: growing().pod(5, pulls), want: stepWait, message: "no such image"},
		"the pod cannot start, and the volume is released":  {state: growing().pod(5, pulls).with(releasedPV), want: stepStopPod},
		"the pod cannot start, and the claim requests less": {state: growing().pod(5, pulls).with(requests("1Gi")), want: stepStopPod},
		"it succeeded, is not reported, and the volume is released": {
			state: growing().pod(99, ended(corev1.PodSucceeded, 60)).with(releasedPV), want: stepRecordChanged},
		"the same, and the volume is retained": {
			state: growing().pod(99, ended(corev1.PodSucceeded, 60)).with(releasedPV).with(retains), want: stepWait, message: "left in /pav"},
		"it failed, is not reported, and the volume is retained": {
			state: growing().pod(99, ended(corev1.PodFailed, 1)).with(releasedPV).with(retains), want: stepDone, after: 5 * time.Second},
		"it failed, and its capacity is reported late": {
			state: growing().pod(9, ended(corev1.PodFailed, 6)).with(toldLate), want: stepRecordLateMessage},
		"it failed, and what is reported late is known": {
			state: growing().pod(9, ended(corev1.PodFailed, 6)).with(toldLate).with(attempted3Gi), want: stepDone},
		"the pod is being deleted":                  {state: growing().pod(5, runs, deletedAgo(99)), want: stepWait, message: "to confirm that pod"},
		"the pod runs, and the volume is released":  {state: growing().pod(5, runs).with(releasedPV), want: stepDone, after: 25 * time.Second},
		"the pod succeeded, and is not reported":    {state: growing().pod(99, ended(corev1.PodSucceeded, 60)), want: stepWait, message: "left in /pav"},
		"the same, and its node is gone":            {state: growing().pod(99, ended(corev1.PodSucceeded, 60)).with(func(o *observation) { o.nodeGone = true }), want: stepRecordChanged},
		"its node is gone since a moment":           {state: growing().pod(99, ended(corev1.PodSucceeded, 1)).with(func(o *observation) { o.nodeGone = true }), want: stepDone, after: 5 * time.Second},
		"the pod succeeded":                         {state: growing().pod(9, ended(corev1.PodSucceeded, 1), reported), want: stepRecordChanged},
		"it succeeded, and the volume is released":  {state: growing().pod(9, ended(corev1.PodSucceeded, 1), reported).with(releasedPV), want: stepRecordChanged},
		"it succeeded, and the claim requests less": {state: growing().pod(9, ended(corev1.PodSucceeded, 1), reported).with(requests("1Gi")), want: stepRecordChanged},
		"the pod failed":                            {state: growing().pod(9, ended(corev1.PodFailed, 1), reported), want: stepRecordFailure},
		"the pod is gone":                           {state: growing().with(vanishedPod), want: stepRecordFailure},
		"the pod ran for another leader, and runs":  {state: growable("2Gi").with(strayPod(runs)), want: stepWait, message: "being stopped"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d := decideIn(test.state.o)
			if d.Step != test.want || !strings.Contains(d.Message, test.message) {
				t.Errorf("got %s by %q, message %q; want %s, %q", d.Step, d.Rule, d.Message, test.want, test.message)
			}
			if test.after != 0 && d.After.Round(time.Second) != test.after {
				t.Errorf("again after %s, want %s", d.After, test.after)
			}
		})
	}
}

// The target stays while it is not known what the last pod has done.
func TestTarget(t *testing.T) {
	for name, test := range map[string]struct {
		state *state
		want  string
	}{
		"a first expansion":  {state: growable("2Gi"), want: "2Gi"},
		"after a failure":    {state: failedToGrow("3Gi", pavv1.FailurePodFailed, 1), want: "3Gi"},
		"called infeasible":  {state: failedToGrow("1500Mi", pavv1.FailureInfeasible, 1), want: "1500Mi"},
		"a pod that is lost": {state: failedToGrow("3Gi", pavv1.FailurePodRemoved, 1), want: "2Gi"},
		"a pod of this claim is lost": {
			state: failedToGrow("3Gi", pavv1.FailurePodRemoved, 1).with(func(o *observation) { o.volume.Status.Expansion.ClaimUID = "u1" }), want: "2Gi"},
		"a pod of a former claim is lost": {state: failedToGrow("3Gi", pavv1.FailurePodRemoved, 1).with(ofFormerClaim), want: "3Gi"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.state.o.target(); got.Cmp(resource.MustParse(test.want)) != 0 {
				t.Errorf("got %s, want %s", got.String(), test.want)
			}
		})
	}
}
