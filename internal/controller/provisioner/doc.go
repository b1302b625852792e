// Package provisioner creates a CSIDriver for each PavProvisioner, and keeps the PavProvisioner until its last volume
// and stage are deleted. It never changes a CSIDriver that is not PaV's, and never evaluates a definition.
package provisioner
