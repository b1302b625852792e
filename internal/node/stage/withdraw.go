package stage

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/workflow"
)

const (
	// recheckAfter is how long after a mount was served it is looked at again. Times of conditions are in seconds.
	recheckAfter = settleTime + time.Second

	// recheckUntil ends the time in which that may be: an agent that begins anew does not judge a volume that has
	// been served for long.
	recheckUntil = time.Minute
)

// gatherExchanged gathers whether the staging pod has mounted something else at /pav/volume than what it called
// ready a few seconds ago, or has taken that away. Clients have the former mount, which is not, or not only, what
// the pod serves, and what unstaging will synchronise.
func (k *Keeper) gatherExchanged(ctx context.Context, stage *pavv1.PavStage, is *kept) error {
	ready := meta.FindStatusCondition(stage.Status.Conditions, pavv1.StageReady)
	if !is.attached || is.stagingPod != workflow.Running || stage.Spec.VolumeMode == corev1.PersistentVolumeBlock ||
		ready == nil || ready.Status != metav1.ConditionTrue {
		return nil
	}
	age := k.stager.clusterTime().Sub(ready.LastTransitionTime.Time)
	if age > recheckUntil {
		return nil
	}
	if left := recheckAfter - age; left > 0 {
		k.queue.AddAfter(stage.Name, left)
		return nil
	}
	var err error
	is.exchanged, err = k.stager.dirs.Exchanged(ctx, stage.Name)
	return err
}

// withdraw gives the volume of a stage to no more clients, and tells those that have it. It is not taken from
// them: they may be writing to it. Once they are gone it is unstaged, and staged anew for the next one.
func (k *Keeper) withdraw(ctx context.Context, stage *pavv1.PavStage) error {
	release, err := k.stager.claim(subjectOf(stage))
	if err != nil {
		return err
	}
	defer release()
	now, err := k.get(ctx, stage.Name)
	if err != nil || now == nil || now.UID != stage.UID || now.Status.Attempt != stage.Status.Attempt ||
		now.Status.Phase != pavv1.StageStaged || now.Status.Restaging {
		return err // A call was faster.
	}
	exchanged, err := k.stager.dirs.Exchanged(ctx, now.Name)
	if err != nil || !exchanged {
		return err
	}
	publications, err := k.stager.livePublications(ctx, now.Name)
	if err != nil {
		return err
	}
	words := fmt.Sprintf("volume %s of provisioner %q on node %s is given to no more pods: the staging pod has exchanged /pav/volume after it created /pav/ready%s",
		now.Spec.VolumeName, now.Spec.Provisioner, now.Spec.NodeName, tooEarly)
	if len(publications) > 0 {
		words += "; pods have what was there before, and what they write may be lost: delete them, and the volume is staged anew"
	}
	words = observability.Clip(words, maxMessage)
	k.stager.setCondition(now, pavv1.StageDegraded, metav1.ConditionTrue, string(lossDetached), words)
	if err = k.stager.writeStatus(ctx, now); err != nil {
		return err
	}
	k.health.Update(now)
	k.tell(ctx, now, publications, corev1.EventTypeWarning, string(lossDetached), words)
	return k.stager.dirs.Detach(ctx, now.Name)
}

// subjectOf returns what a stage is of.
func subjectOf(stage *pavv1.PavStage) subject {
	of := subject{Volume: Volume{Driver: stage.Spec.Provisioner, Handle: stage.Spec.VolumeHandle}}
	if c := stage.Spec.Client; c != nil {
		of.target = c.Target
	}
	return of
}
