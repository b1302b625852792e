// Package cosi2 serves version v1alpha2 of COSI, the Container Object Storage Interface, for classes whose driver is a PavProvisioner, as
// package cosi1 serves v1alpha1; a cluster has one of the two. It takes both parts that upstream splits between its controller and a
// driver's sidecar, and so writes none of the annotations by which these hand objects over. All truth is in the records, and it runs no pods.
//
// It is experimental: v1alpha2 is not released, and no program of others can be run beside it in tests.
package cosi2
