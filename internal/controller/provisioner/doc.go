// Package provisioner makes a PavProvisioner known to Kubernetes, as a CSIDriver of the same name,
// and holds it until its last volume and stage have gone. It never touches a CSIDriver that is not
// PaV's, and never evaluates a definition.
package provisioner
