// Package proposal has the kinds of cosi.io/v1alpha1: Bucket, BucketContent and BucketClass of the first proposal of the Container Object
// Storage Interface (COSI), of February 2020. Nobody released them. The fields are those of the YAML of the proposal, whose text calls some by
// other names; conditions, of which it says nothing, are not here.
//
// +kubebuilder:object:generate=true
// +groupName=cosi.io
// +versionName=v1alpha1
package proposal
