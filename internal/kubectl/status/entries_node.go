package status

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// stageEntries returns the entries about a volume on a node.
func stageEntries(f *Facts, s *pavv1.PavStage) []Entry {
	object := "node " + s.Spec.NodeName
	what := "staging began"
	if c := s.Spec.Client; c != nil {
		what += " for pod " + c.Name
	}
	all := []Entry{{Time: s.CreationTimestamp, Object: object, What: what, rank: rankStage}}
	if c := meta.FindStatusCondition(s.Status.Conditions, pavv1.StageReady); c != nil && c.Status == metav1.ConditionTrue {
		e := Entry{Time: c.LastTransitionTime, Object: object, What: "staged: " + c.Message, State: Healthy, rank: rankStaging + 5}
		if s.Status.Attempt <= 1 {
			e.Duration, e.Of = took(s.CreationTimestamp.Time, c.LastTransitionTime.Time), "in all"
		}
		all = append(all, e)
	}
	if c := degraded(s); c != nil && !eventTells(f, c.Message) {
		all = append(all, Entry{Time: c.LastTransitionTime, Object: object, What: c.Reason + ": " + Brief(c.Message), State: Failing, rank: rankEvent})
	}
	all = append(all, failureEntry(f, object, s.Status.StagingFailure)...)
	all = append(all, failureEntry(f, object, s.Status.UnstagingFailure)...)
	return all
}

// degraded returns the condition Degraded of a stage if it is true, or nil.
func degraded(s *pavv1.PavStage) *metav1.Condition {
	if c := meta.FindStatusCondition(s.Status.Conditions, pavv1.StageDegraded); c != nil && c.Status == metav1.ConditionTrue {
		return c
	}
	return nil
}

func eventTells(f *Facts, message string) bool {
	for i := range f.Events {
		if f.Events[i].Message == message {
			return true
		}
	}
	return false
}

// clientEntries returns the entries about a pod that uses the claim.
func clientEntries(pod *corev1.Pod) []Entry {
	object := "pod " + pod.Name
	all := []Entry{{Time: pod.CreationTimestamp, Object: object, What: "created; it uses the claim", rank: rankClient}}
	since := pod.CreationTimestamp
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue {
			since = c.LastTransitionTime
			all = append(all, Entry{Time: since, Object: object, What: "scheduled to node " + pod.Spec.NodeName,
				Duration: took(pod.CreationTimestamp.Time, since.Time), Of: "wait", rank: rankClient + 1})
		}
	}
	if at := began(pod); !at.IsZero() {
		all = append(all, Entry{Time: at, Object: object, What: "started with the volume", State: Healthy,
			Duration: took(since.Time, at.Time), Of: "volumes and images", rank: rankRunning})
	}
	all = append(all, deleted(&pod.ObjectMeta, object, rankEnd)...)
	if state := workflow.Observe(pod); state.IsOver() {
		what := "completed"
		if state == workflow.Failed {
			what = "failed" + exit(pod)
		}
		all = append(all, Entry{Time: ended(pod), Object: object, What: what, rank: rankEnd + 1})
	}
	return all
}

// nodeEntries returns the entries about a node that is not ready.
func nodeEntries(name string, node *Node) []Entry {
	c := notReady(node)
	if c == nil {
		return nil
	}
	return []Entry{{Time: c.LastTransitionTime, Object: "node " + name, What: fmt.Sprintf("not ready: %s", Brief(c.Message)), State: Failing, rank: rankEvent}}
}

// notReady returns the condition of a node that is not ready, or nil.
func notReady(node *Node) *corev1.NodeCondition {
	if node == nil || node.Object == nil {
		return nil
	}
	for i := range node.Object.Status.Conditions {
		if c := &node.Object.Status.Conditions[i]; c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			return c
		}
	}
	return nil
}
