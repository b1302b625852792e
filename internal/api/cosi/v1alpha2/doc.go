// Package v1alpha2 has the kinds of objectstorage.k8s.io/v1alpha2, by which tenants claim buckets and ask for access to them: the Container
// Object Storage Interface (COSI). The fields are those of its main branch of March 2026. That version is not released, and may change.
//
// +kubebuilder:object:generate=true
// +groupName=objectstorage.k8s.io
// +versionName=v1alpha2
package v1alpha2
