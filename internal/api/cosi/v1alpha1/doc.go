// Package v1alpha1 has the kinds of objectstorage.k8s.io/v1alpha1, by which tenants claim buckets and ask for access to them: the Container
// Object Storage Interface (COSI). The fields are those of its API of v0.1.0, which v0.2.2 has as well.
//
// +kubebuilder:object:generate=true
// +groupName=objectstorage.k8s.io
// +versionName=v1alpha1
package v1alpha1
