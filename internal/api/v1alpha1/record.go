package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// StatusConditions returns where the conditions of a PavVolume are.
func (v *PavVolume) StatusConditions() *[]metav1.Condition { return &v.Status.Conditions }

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
