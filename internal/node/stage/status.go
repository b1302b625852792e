package stage

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/observability"
)

// update writes a changed status, and fails if the object was changed since it was read.
func (t *task) update(ctx context.Context, change func(*pavv1.PavStageStatus)) error {
	before := t.stage.Status.DeepCopy()
	change(&t.stage.Status)
	// The status is missing if an agent was killed between the object and its first status.
	t.stage.Status.Attempt = max(t.stage.Status.Attempt, 1)
	if err := t.writeStatus(ctx, t.stage); err != nil {
		return err
	}
	t.logProgress(ctx, before)
	t.measure(before)
	return nil
}

// writeStatus writes the status of a stage, with the version of the agent.
func (s *Stager) writeStatus(ctx context.Context, stage *pavv1.PavStage) error {
	stage.Status.AgentVersion = s.version
	if err := s.client.Status().Update(ctx, stage); err != nil {
		return fmt.Errorf("writing the status of PavStage %q: %w", stage.Name, err)
	}
	return nil
}

func (s *Stager) setReady(stage *pavv1.PavStage, status metav1.ConditionStatus, reason, message string) {
	s.setCondition(stage, pavv1.StageReady, status, reason, message)
}

func (s *Stager) setCondition(stage *pavv1.PavStage, kind string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&stage.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: stage.Generation,
		LastTransitionTime: metav1.NewTime(s.clusterTime()),
	})
}

// eventf records an event on the claim and on the PavStage.
func (t *task) eventf(ctx context.Context, kind, reason, format string, args ...any) {
	t.reportOnStage(ctx, t.stage, kind, reason, observability.Clip(fmt.Sprintf(format, args...), observability.MaxNote))
}

// reportFailure records the event about an attempt that has failed, unless the attempt before failed for the same reason in the last
// minutes: kubelet repeats its call every two minutes, which would use up the events of the claim.
func (t *task) reportFailure(ctx context.Context, reason, what string, failure *pavv1.WorkflowFailure) {
	// Each attempt has another pod.
	news := what + ": " + strings.ReplaceAll(failure.Message, failure.PodName, "")
	if due, _ := t.repeats.Due(t.stage.Name, news, t.now()); due {
		t.eventf(ctx, corev1.EventTypeWarning, reason, "%s: provisioner %q: %s", what, t.stage.Spec.Provisioner, failure.Message)
	}
}

// reportOnStage records an event on the claim and on the PavStage.
func (s *Stager) reportOnStage(ctx context.Context, stage *pavv1.PavStage, kind, reason, note string) {
	s.events.Event(s.claimOf(ctx, stage), kind, reason, note)
	s.events.Event(stage, kind, reason, note)
}

// claimOf returns the claim that the stage's volume is bound to: a volume populator binds the volume to another claim
// than the one it was staged for. If that cannot be read, it is the claim that the volume was staged for.
func (s *Stager) claimOf(ctx context.Context, stage *pavv1.PavStage) *corev1.ObjectReference {
	spec := &stage.Spec
	staged := claimNamed(spec.ClaimRef.Namespace, spec.ClaimRef.Name, spec.ClaimRef.UID)
	volume := &corev1.PersistentVolume{}
	if err := s.client.Get(ctx, client.ObjectKey{Name: spec.VolumeName}, volume); err != nil {
		return staged
	}
	// The PersistentVolume of the name may be another one by now.
	csi, ref := volume.Spec.CSI, volume.Spec.ClaimRef
	if csi != nil && csi.Driver == spec.Provisioner && csi.VolumeHandle == spec.VolumeHandle && ref != nil && ref.UID != "" {
		return claimNamed(ref.Namespace, ref.Name, ref.UID)
	}
	return staged
}

// claimNamed returns the reference to a claim in events.
func claimNamed(namespace, name string, uid types.UID) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: namespace, Name: name, UID: uid}
}
