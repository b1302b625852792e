package eviction

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// drainSnapshot has everything that the decision about a staging pod depends on.
type drainSnapshot struct {
	// cordoned says that the pod's node is cordoned.
	cordoned bool

	staging *corev1.Pod

	// clients are the pods on the node that use the volume and have not ended. A client whose pod object is deleted
	// can still run, so an empty list does not prove that there is none.
	clients []*corev1.Pod
}

type drainAction string

const (
	keepLabel       drainAction = "Nothing"
	allowEviction   drainAction = "Expose"
	preventEviction drainAction = "Protect"
)

// decideDrain is pure: it does no I/O and reads no clock.
func decideDrain(o drainSnapshot) drainAction {
	evictable := o.staging.Labels[pavv1.EvictableLabel] != ""
	wanted := o.cordoned && len(o.clients) > 0 && !slices.ContainsFunc(o.clients, func(p *corev1.Pod) bool { return !isOfDaemonSet(p) })
	switch {
	case o.staging.DeletionTimestamp != nil || evictable == wanted:
		return keepLabel
	case wanted:
		return allowEviction
	default:
		return preventEviction
	}
}

// isOfDaemonSet reports whether kubectl drain ignores a pod.
func isOfDaemonSet(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == "DaemonSet" && owner.APIVersion == appsv1.SchemeGroupVersion.String()
}

// isCordoned reports whether the node is cordoned.
func isCordoned(node *corev1.Node) bool {
	return node.Spec.Unschedulable || cordonTaint(node) != nil
}

// cordonTaint returns the taint that Kubernetes puts on a node that is cordoned, or nil.
func cordonTaint(node *corev1.Node) *corev1.Taint {
	at := slices.IndexFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeUnschedulable })
	if at < 0 {
		return nil
	}
	return &node.Spec.Taints[at]
}

const (
	// drainTime is how long after a cordon a node is expected to be drained.
	drainTime = 10 * time.Minute

	// soon is the time to the next check of a node that is being drained; kubectl repeats evictions as often.
	soon = 5 * time.Second

	// later is the time to the next check of a node that is only cordoned.
	later = time.Minute
)

// nextLook returns when to check the clients on a cordoned node again. They are not watched.
func nextLook(node *corev1.Node, pods []corev1.Pod, now time.Time) time.Duration {
	terminating := slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
	taint := cordonTaint(node)
	old := taint != nil && taint.TimeAdded != nil && now.Sub(taint.TimeAdded.Time) > drainTime
	if terminating || !old {
		return soon
	}
	return later
}
