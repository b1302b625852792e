// Package label gives each PersistentVolume of a PavProvisioner the label of its storage, so that node agents find it
// without a watch of all PersistentVolumes. Those that the controller agent provisions have the label from the start; here
// are those of administrators, and those that have lost it.
//
// It changes nothing but this label, and decides nothing about volumes.
package label
