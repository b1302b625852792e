package e2e

import (
	"github.com/albertofaria/pav/internal/workflow"
)

// socket is the path of a driver's CSI socket on every node.
func socket(driver string) string { return pavDir + "/csi/" + workflow.Hash(driver) + ".sock" }

// registrationSocket is the path of the link by which kubelet finds a driver on every node.
func registrationSocket(driver string) string {
	return kubeletDir + "/plugins_registry/pav-" + workflow.Hash(driver) + ".sock"
}
