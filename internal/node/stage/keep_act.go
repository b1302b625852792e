package stage

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/node/pavdir"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/workflow"
)

// act does what was decided about a stage. What is to be said is on record before the staging pod may go.
func (k *Keeper) act(ctx context.Context, stage *pavv1.PavStage, is kept, pod *corev1.Pod) error {
	v := decideKeep(is)
	if v.loss != is.degraded {
		if err := k.report(ctx, stage, is, v, pod); err != nil {
			return err
		}
	}
	if v.release {
		if err := k.stager.runner.Release(ctx, pod); err != nil {
			return err
		}
	}
	if v.unstage {
		k.goOnUnstaging(ctx, stage)
	}
	if v.withdraw {
		k.begin(ctx, stage.Name, func(ctx context.Context) error { return k.withdraw(ctx, stage) })
	}
	if v.restage {
		k.begin(ctx, stage.Name, func(ctx context.Context) error { return k.restage(ctx, stage) })
	}
	return nil
}

// report puts what is wrong with a volume, or that nothing is any more, on record, and tells everybody.
func (k *Keeper) report(ctx context.Context, stage *pavv1.PavStage, is kept, v verdict, pod *corev1.Pod) error {
	// Before the record, after which there is no second time.
	publications, err := k.stager.livePublications(ctx, stage.Name)
	if err != nil {
		return err
	}
	kind, reason, condition := corev1.EventTypeWarning, string(v.loss), metav1.ConditionTrue
	words := observability.Clip(describeLoss(stage, is, v.loss, pod), maxMessage)
	if v.loss == lossNone {
		kind, reason, condition = corev1.EventTypeNormal, "VolumeAnswers", metav1.ConditionFalse
		words = fmt.Sprintf("volume %s answers again on node %s", stage.Spec.VolumeName, k.stager.node)
	}
	k.stager.setCondition(stage, pavv1.StageDegraded, condition, reason, words)
	if err := k.stager.writeStatus(ctx, stage); err != nil {
		return err
	}
	k.health.Update(stage)
	k.tell(ctx, stage, publications, kind, reason, words)
	return nil
}

// errNotRestaged means that a volume is not staged anew, for reasons that are not known here.
var errNotRestaged = errors.New("the volume was not staged anew")

// restage stages a volume anew under its clients.
func (k *Keeper) restage(ctx context.Context, stage *pavv1.PavStage) error {
	if err := k.restageStage(ctx, stage.Name); err != nil {
		return err
	}
	now, err := k.get(ctx, stage.Name)
	if err != nil || now == nil || now.UID != stage.UID {
		return err // Kubelet has unstaged it in between.
	}
	status := &now.Status
	if status.Phase != pavv1.StageStaged || status.Restaging || !stage.Status.Restaging && status.Attempt == stage.Status.Attempt {
		return errNotRestaged
	}
	publications, err := k.stager.livePublications(ctx, stage.Name)
	if err != nil {
		return err
	}
	k.tell(ctx, now, publications, corev1.EventTypeNormal, "VolumeRestaged",
		fmt.Sprintf("volume %s was staged anew on node %s; %s", stage.Spec.VolumeName, k.stager.node, whoRecovers(stage)))
	return nil
}

// tell tells the claim's user, those of the pods that have the volume, and whoever looks at the PavStage.
func (k *Keeper) tell(ctx context.Context, stage *pavv1.PavStage, publications []pavdir.Publication, kind, reason, words string) {
	note := observability.Clip(words, observability.MaxNote)
	k.stager.tellStage(ctx, stage, kind, reason, note)
	k.stager.tellPods(publications, kind, reason, note)
}

// describeLoss says what has happened to a volume, what PaV does about it, and what its users have to do.
func describeLoss(stage *pavv1.PavStage, is kept, found loss, pod *corev1.Pod) string {
	what := fmt.Sprintf("volume %s of provisioner %q on node %s ", stage.Spec.VolumeName, stage.Spec.Provisioner, stage.Spec.NodeName)
	why := describePod(stage, pod)
	const whenGone = "the volume is staged anew when all pods on the node that use it are gone: delete them if it has to be"
	switch found {
	case lossEnded:
		return what + "has lost its staging pod, but still answers, and goes on being served as it is; " + whenGone + "; " + why
	case lossSilent:
		return what + "does not answer (" + is.told + "); PaV does nothing, as it may still write to its storage: mend that storage, or delete the pods on the node that use it; " + why
	case lossDetached:
		return what + "is not mounted for pods any more: somebody has unmounted it; " + whenGone + "; " + why
	case lossDead:
		if !is.restageable {
			return what + "never answers again, and all that pods do with it fails; spec.volumeStaging.recovery of the provisioner forbids PaV to stage it anew: " +
				"delete the pods on the node that use it; " + why
		}
		return what + "never answers again, and all that pods do with it fails; PaV stages it anew: " + whoRecovers(stage) + "; " + why
	default:
		return what + "answers"
	}
}

// whoRecovers says which pods get a volume that is staged anew.
func whoRecovers(stage *pavv1.PavStage) string {
	if stage.Spec.VolumeMode == corev1.PersistentVolumeBlock {
		return "pods that use the block device must be restarted"
	}
	return "containers that mount it with mountPropagation HostToContainer get the new one, and all other pods that use it must be restarted"
}

// describePod says what has become of a staging pod.
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
