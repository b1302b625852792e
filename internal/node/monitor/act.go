package monitor

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/node/pavdir"
	"github.com/albertofaria/pav/internal/workflow"
)

// act takes the steps of a decision. It records a loss before it releases the staging pod.
func (m *Monitor) act(ctx context.Context, stage *pavv1.PavStage, is snapshot, pod *corev1.Pod) error {
	v := decide(is)
	if v.loss != is.degraded {
		if err := m.report(ctx, stage, is, v, pod); err != nil {
			return err
		}
	}
	if v.release {
		if err := m.runner.Release(ctx, pod); err != nil {
			return err
		}
	}
	if v.stop {
		if err := m.renew(ctx, stage, pod); err != nil {
			return err
		}
	}
	if v.unstage {
		m.resumeUnstaging(ctx, stage)
	}
	if v.withdraw {
		m.begin(ctx, stage.Name, func(ctx context.Context) error { return m.withdraw(ctx, stage) })
	}
	if v.restage {
		m.begin(ctx, stage.Name, func(ctx context.Context) error { return m.restage(ctx, stage) })
	}
	return nil
}

// report records what is wrong with a volume, or that nothing is any more, in its PavStage and in events.
func (m *Monitor) report(ctx context.Context, stage *pavv1.PavStage, is snapshot, v decision, pod *corev1.Pod) error {
	// They are read first: once the loss is recorded, it is not reported again.
	publications, err := m.stager.Publications(ctx, stage.Name)
	if err != nil {
		return err
	}
	reason, condition := string(v.loss), metav1.ConditionTrue
	words := describeLoss(stage, is, v.loss, pod)
	if v.loss == lossNone {
		reason, condition = "VolumeAnswers", metav1.ConditionFalse
		words = fmt.Sprintf("volume %s answers again on node %s", stage.Spec.VolumeName, m.node)
	}
	return m.degrade(ctx, stage, publications, condition, reason, words)
}

// degrade writes to a PavStage whether something is wrong with its volume, and records an event of it.
func (m *Monitor) degrade(ctx context.Context, stage *pavv1.PavStage, publications []pavdir.Publication, degraded metav1.ConditionStatus, reason, message string) error {
	if err := m.stager.SetDegraded(ctx, stage, degraded, reason, message); err != nil {
		return err
	}
	kind := corev1.EventTypeWarning
	if degraded == metav1.ConditionFalse {
		kind = corev1.EventTypeNormal
	}
	m.health.Update(stage)
	m.stager.Report(ctx, stage, publications, kind, reason, message)
	return nil
}

// writeBack is how long to wait until what clients have written is in the storage, before a staging pod is stopped that they did not end.
const writeBack = 10 * time.Second

// renew stops the staging pod of a volume whose account was replaced. The volume dies with its daemon, and is then restaged as any other. What
// the node has in memory of it is written first: if that fails, the former account works on, and it is tried again.
func (m *Monitor) renew(ctx context.Context, stage *pavv1.PavStage, pod *corev1.Pod) error {
	publications, err := m.stager.Publications(ctx, stage.Name)
	if err != nil {
		return err
	}
	if !stage.Spec.ReadOnly {
		bounded, cancel := context.WithTimeout(ctx, writeBack)
		defer cancel()
		if err := m.dirs.Sync(bounded, stage.Name); err != nil {
			return err
		}
	}
	if err := m.runner.Stop(ctx, pod); err != nil {
		return err
	}
	m.stager.Report(ctx, stage, publications, corev1.EventTypeNormal, "AccountReplaced",
		fmt.Sprintf("the account of volume %s was replaced: PaV stops its staging pod on node %s, and stages the volume again; %s", stage.Spec.VolumeName, m.node, whoRecovers(stage)))
	return nil
}

// errNotRestaged means that a volume was not restaged, for reasons that are not known here.
var errNotRestaged = errors.New("the volume was not restaged")

// restage restages a volume while clients have it.
func (m *Monitor) restage(ctx context.Context, stage *pavv1.PavStage) error {
	if err := m.restageStage(ctx, stage.Name); err != nil {
		return err
	}
	now, err := m.get(ctx, stage.Name)
	if err != nil || now == nil || now.UID != stage.UID {
		return err // Kubelet has unstaged it since.
	}
	status := &now.Status
	if status.Phase != pavv1.StageStaged || status.Restaging || !stage.Status.Restaging && status.Attempt == stage.Status.Attempt {
		return errNotRestaged
	}
	publications, err := m.stager.Publications(ctx, stage.Name)
	if err != nil {
		return err
	}
	m.stager.Report(ctx, now, publications, corev1.EventTypeNormal, "VolumeRestaged",
		fmt.Sprintf("volume %s was staged again on node %s; %s", stage.Spec.VolumeName, m.node, whoRecovers(stage)))
	return nil
}

// describeLoss describes what has happened to a volume, what PaV does about it, and what its users must do.
func describeLoss(stage *pavv1.PavStage, is snapshot, found loss, pod *corev1.Pod) string {
	what := fmt.Sprintf("volume %s of provisioner %q on node %s ", stage.Spec.VolumeName, stage.Spec.Provisioner, stage.Spec.NodeName)
	why := describePod(stage, pod)
	const whenGone = "the volume is staged again when all pods on the node that use it are gone: delete them if it has to be"
	switch found {
	case lossEnded:
		return what + "has lost its staging pod, but still answers, and goes on being served as it is; " + whenGone + "; " + why
	case lossSilent:
		return what + "does not answer (" + is.probeError + "); PaV does nothing, as it may still write to its storage: fix that storage, or delete the pods on the node that use it; " + why
	case lossDetached:
		return what + "is not mounted for pods any more: it was unmounted by hand; " + whenGone + "; " + why
	case lossDead:
		if !is.restageable {
			return what + "never answers again, and all that pods do with it fails; spec.volumeStaging.recovery of the provisioner forbids PaV to stage it again: " +
				"delete the pods on the node that use it; " + why
		}
		return what + "never answers again, and all that pods do with it fails; PaV stages it again: " + whoRecovers(stage) + "; " + why
	default:
		return what + "answers"
	}
}

// whoRecovers says which pods get a volume that is staged again.
func whoRecovers(stage *pavv1.PavStage) string {
	if stage.Spec.VolumeMode == corev1.PersistentVolumeBlock {
		return "pods that use the block device must be restarted"
	}
	return "containers that mount it with mountPropagation HostToContainer get the new one, and all other pods that use it must be restarted"
}

// describePod describes the state of a staging pod.
func describePod(stage *pavv1.PavStage, pod *corev1.Pod) string {
	ref := stage.Status.StagingPod
	switch {
	case pod == nil && ref == nil:
		return "it has no staging pod"
	case pod == nil:
		return fmt.Sprintf("staging pod %s/%s is gone", ref.Namespace, ref.Name)
	case workflow.Observe(pod) == workflow.Succeeded:
		return fmt.Sprintf("staging pod %s/%s has completed", pod.Namespace, pod.Name)
	case pod.DeletionTimestamp != nil:
		return fmt.Sprintf("staging pod %s/%s was deleted", pod.Namespace, pod.Name)
	case workflow.Observe(pod) == workflow.Failed:
		return "staging " + workflow.Failure(pavv1.WorkflowStaging, pod, "").Message
	}
	return fmt.Sprintf("staging pod %s/%s runs; see kubectl logs -n %s %s --all-containers", pod.Namespace, pod.Name, pod.Namespace, pod.Name)
}
