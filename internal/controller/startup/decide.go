package startup

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/protocol"
)

// longestWait is how long after the creation of a Node the drivers of PavProvisioners are waited for. One of them that cannot
// be registered must not keep all pods away from all new nodes.
const longestWait = 5 * time.Minute

// decision is what is to be done about the taint of a node.
type decision struct {
	remove  bool
	missing []string      // the drivers that are not registered
	after   time.Duration // when to decide again if nothing changes; 0 for not before that
}

// decide decides about a node that has the taint. Drivers are those of all PavProvisioners that can be used.
func decide(node *corev1.Node, registered *storagev1.CSINode, drivers []string, now time.Time) decision {
	d := decision{}
	for _, driver := range append([]string{pavv1.Driver}, drivers...) {
		if !protocol.IsRegistered(registered, driver) {
			d.missing = append(d.missing, driver)
		}
	}
	switch left := longestWait - now.Sub(node.CreationTimestamp.Time); {
	case len(d.missing) == 0:
		d.remove = true
	case d.missing[0] == pavv1.Driver: // the node agent does not run there yet
	case left > 0:
		d.after = min(left, longestWait) // the clock may be behind
	default:
		d.remove = true
	}
	return d
}

// isTainted reports whether a node has the taint, with any effect.
func isTainted(node *corev1.Node) bool { return slices.ContainsFunc(node.Spec.Taints, isNotReady) }

func isNotReady(taint corev1.Taint) bool { return taint.Key == pavv1.NotReadyTaint }
