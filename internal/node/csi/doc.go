// Package csi makes drivers known to the node's kubelet and answers kubelet's calls.
//
// A Registry serves, for each driver, a CSI socket and a registration socket, and removes both with the driver. A driver
// costs two sockets and no pod. The services behind them are the Identity and Node services of CSI for every
// PavProvisioner, and those for the inline volumes by which workflow pods get their /pav. A call is checked, translated
// to the domain (packages stage, monitor and pavdir), and its error is mapped to a code by the one table in codes.go.
//
// Package csi does no work on volumes itself, and never logs what a call carries.
package csi
