package v1alpha1

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Work is where the status of a record has its pods, which run one after the other.
//
// +kubebuilder:object:generate=false
type Work struct {
	// Pod is the pod of the current step.
	Pod **PodReference

	// Pods is the number of pods that were recorded so far.
	Pods *int32

	// Generation is that of the PavProvisioner that the last pod was created from.
	Generation *int64

	// Failures are the failures of the last attempts that are recorded.
	Failures []*WorkflowFailure
}

// StatusConditions returns where the conditions of a PavVolume are.
func (v *PavVolume) StatusConditions() *[]metav1.Condition { return &v.Status.Conditions }

// IsOf reports whether the PavVolume is the record of the volume with a handle of a provisioner.
func (v *PavVolume) IsOf(provisioner, handle string) bool {
	return v.Spec.Provisioner == provisioner && v.Status.Handle == handle
}

// IsNewOfStatic reports whether the PavVolume is the record of a static volume that does not say yet which one that is.
func (v *PavVolume) IsNewOfStatic() bool { return v.Spec.Static && v.Status.Handle == "" }

// Stamp notes the generation that the status is based on, and the version of the agent that writes it.
func (v *PavVolume) Stamp(generation int64, version string) {
	v.Status.ObservedGeneration, v.Status.AgentVersion = generation, version
}

// StatusConditions returns where the conditions of a PavSnapshot are.
func (s *PavSnapshot) StatusConditions() *[]metav1.Condition { return &s.Status.Conditions }

// Stamp notes the generation that the status is based on, and the version of the agent that writes it.
func (s *PavSnapshot) Stamp(generation int64, version string) {
	s.Status.ObservedGeneration, s.Status.AgentVersion = generation, version
}

// Work returns where the status of a PavSnapshot has its pods.
func (s *PavSnapshot) Work() Work {
	status := &s.Status
	return Work{Pod: &status.Pod, Pods: &status.Pods, Generation: &status.ProvisionerGeneration, Failures: status.Failures()}
}

// StatusConditions returns where the conditions of a PavBucket are.
func (b *PavBucket) StatusConditions() *[]metav1.Condition { return &b.Status.Conditions }

// Stamp notes the generation that the status is based on, and the version of the agent that writes it.
func (b *PavBucket) Stamp(generation int64, version string) {
	b.Status.ObservedGeneration, b.Status.AgentVersion = generation, version
}

// Work returns where the status of a PavBucket has its pods.
func (b *PavBucket) Work() Work {
	status := &b.Status
	return Work{Pod: &status.Pod, Pods: &status.Pods, Generation: &status.ProvisionerGeneration, Failures: status.Failures()}
}

// StatusConditions returns where the conditions of a PavBucketAccess are.
func (a *PavBucketAccess) StatusConditions() *[]metav1.Condition { return &a.Status.Conditions }

// Stamp notes the generation that the status is based on, and the version of the agent that writes it.
func (a *PavBucketAccess) Stamp(generation int64, version string) {
	a.Status.ObservedGeneration, a.Status.AgentVersion = generation, version
}

// Work returns where the status of a PavBucketAccess has its pods.
func (a *PavBucketAccess) Work() Work {
	status := &a.Status
	return Work{Pod: &status.Pod, Pods: &status.Pods, Generation: &status.ProvisionerGeneration, Failures: status.Failures()}
}

// recorded returns the failures that are not nil.
func recorded(failures ...*WorkflowFailure) []*WorkflowFailure {
	return slices.DeleteFunc(failures, func(f *WorkflowFailure) bool { return f == nil })
}

// Began returns when the attempt began that made the account; the zero time if it is not known. Requests for another account that are
// later ask for the next one.
func (a *GrantedAccount) Began() time.Time {
	switch {
	case a.RequestedAt != nil:
		return a.RequestedAt.Time
	case a.GrantedAt != nil:
		return a.GrantedAt.Time
	default:
		return time.Time{}
	}
}
