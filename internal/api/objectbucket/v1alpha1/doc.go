// Package v1alpha1 has the kinds of objectbucket.io/v1alpha1, by which tenants claim buckets: the protocol that
// lib-bucket-provisioner defined. The fields are those of the library; what it declares and never writes is not here.
//
// +kubebuilder:object:generate=true
// +groupName=objectbucket.io
// +versionName=v1alpha1
package v1alpha1
