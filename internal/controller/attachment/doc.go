// Package attachment explains to the users of a volume that its driver does not exist. Kubernetes
// takes a PersistentVolume that names an unknown driver for one that must be attached, and waits for
// an attacher that will never come; what it says of that names no cause. The package only writes
// events, and only where the name is one that a PavProvisioner could have and nothing else has.
package attachment
