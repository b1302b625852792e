// Command driver is the smallest CSI driver with which external-provisioner and kubelet provide volumes. It is a peer
// that PaV is compared with: what it takes is what Kubernetes and external-provisioner take, as it answers each call at
// once. A volume is an empty directory. The driver has no storage, keeps nothing, mounts nothing and is of no other use.
package main
