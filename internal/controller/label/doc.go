// Package label gives each PersistentVolume of a PavProvisioner two labels: the hash of its driver and handle, by which node
// agents find it without a watch of all PersistentVolumes, and the name of the driver, by which the controller agent asks who
// has its storage. Those that the controller agent provisions have the labels from the start; here are those of
// administrators, and those that have lost them.
//
// It changes nothing but these labels, and decides nothing about volumes.
package label
