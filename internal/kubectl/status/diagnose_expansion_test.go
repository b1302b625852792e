package status

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// wantsMore lets the claim ask for more than its volume has.
func wantsMore(f *Facts) {
	f.Claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("20Mi")}
	f.Claim.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("16Mi")}
}

// isGrownOnStorage makes the volume have what its claim asks for, which its nodes have not made available.
func isGrownOnStorage(f *Facts) {
	f.Volume.Status.Capacity = new(resource.MustParse("20Mi"))
	f.Claim.Status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{
		corev1.ResourceStorage: corev1.PersistentVolumeClaimNodeResizeInProgress,
	}
}

// expandsOnNode records that the second attempt to expand the volume on the node has begun, or failed for a reason.
func expandsOnNode(reason pavv1.FailureReason) func(*pavv1.PavStage) {
	return func(s *pavv1.PavStage) {
		e := &pavv1.StageExpansion{Target: resource.MustParse("20Mi"), Attempt: 2, Pod: &pavv1.PodReference{Namespace: "pav-pods", Name: "grow-1"}}
		if reason != "" {
			e.Recorded, e.Failure = true, &pavv1.WorkflowFailure{Workflow: pavv1.WorkflowNodeExpansion, Reason: reason, PodNamespace: "pav-pods", PodName: "grow-1", Message: "m"}
		}
		s.Status.Expansion = e
	}
}

func expands(f *Facts) { f.Provisioner.Spec.VolumeExpansion = &pavv1.VolumeExpansion{} }

// failsToExpand records that the first attempt to expand has failed.
func failsToExpand(reason pavv1.FailureReason, pod string) func(*Facts) {
	return func(f *Facts) {
		failure := &pavv1.WorkflowFailure{Workflow: pavv1.WorkflowExpansion, Reason: reason, PodName: pod, Message: "m"}
		if pod != "" {
			failure.PodNamespace = "pav-pods"
		}
		f.Volume.Status.Expansion = &pavv1.VolumeExpansionRecord{Target: resource.MustParse("20Mi"), ChangeAttempt: pavv1.ChangeAttempt{Attempt: 1, Failure: failure}}
	}
}
