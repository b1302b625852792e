package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
