// Package v1alpha1 holds the API that PaV serves: PavProvisioner, which administrators write, and
// PavVolume and PavStage, the ledgers that the agents write before any effect. It has types, names
// of labels, annotations and finalizers, and nothing that acts.
//
// +kubebuilder:object:generate=true
// +groupName=pav.albertofaria.github.io
package v1alpha1
