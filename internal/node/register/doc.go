// Package register makes drivers known to the node's kubelet, in process: for each it serves a CSI
// socket and a registration socket, and takes both away with the driver. A driver costs two sockets
// and no pod. The package knows nothing of what the services do.
package register
