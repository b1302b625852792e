// Package csi makes drivers known to the node's kubelet and answers kubelet's calls.
//
// A Registry has, for each driver, a socket, and a link to it by which kubelet finds the driver. It removes both with the
// driver, and neither with the agent, so that kubelet keeps the drivers when the agent is restarted. A driver costs a
// socket and no pod: one gRPC server serves the sockets of all drivers, and the socket that accepted a call tells whose it
// is. The services are the Identity and Node services of CSI for every PavProvisioner, those for the inline volumes by
// which workflow pods get their /pav, and kubelet's registration service. A call is checked, translated to the domain
// (packages stage, monitor and pavdir), and its error is mapped to a code by the one table in codes.go.
//
// Package csi does no work on volumes itself, and never logs what a call carries.
package csi
