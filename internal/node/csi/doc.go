// Package csi is the gRPC shell of the node agent: the Identity and Node services of CSI for every
// PavProvisioner, and for the inline volumes that give workflow pods their /pav. A call is checked,
// translated to the domain (packages stage, collect and pavdir), and its error mapped to a code by
// the one table in codes.go. The package does no work of its own, and never logs what a call carries.
package csi
