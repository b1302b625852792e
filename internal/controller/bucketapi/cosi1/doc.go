// Package cosi1 serves version v1alpha1 of COSI, the Container Object Storage Interface, for classes whose driver is a PavProvisioner. It
// takes both parts that upstream splits between its controller and a driver's sidecar: it writes the PavBucket of each BucketClaim and the
// PavBucketAccess of each BucketAccess, shows what has become of them in these and in the Bucket, and releases the records when the objects
// go. All truth is in the records. It runs no pods, and never touches the objects of other drivers.
package cosi1
