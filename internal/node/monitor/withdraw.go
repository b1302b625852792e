package monitor

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	staging "github.com/albertofaria/pav/internal/node/stage"
	"github.com/albertofaria/pav/internal/workflow"
)

const (
	// recheckAfter is how long after a mount was published it is checked again. Times of conditions are in seconds.
	recheckAfter = staging.SettleTime + time.Second

	// recheckUntil ends the time in which it is checked: an agent that restarts does not check a volume that has been
	// published for long.
	recheckUntil = time.Minute
)

// gatherExchanged gathers whether the staging pod has replaced or unmounted /pav/volume a few seconds after it
// created /pav/ready. Client pods still have the former mount. The pod does not serve that mount, and unstaging will
// not write its data to the storage.
func (m *Monitor) gatherExchanged(ctx context.Context, stage *pavv1.PavStage, is *snapshot) error {
	ready := meta.FindStatusCondition(stage.Status.Conditions, pavv1.StageReady)
	if !is.attached || is.stagingPod != workflow.Running || stage.Spec.VolumeMode == corev1.PersistentVolumeBlock ||
		ready == nil || ready.Status != metav1.ConditionTrue {
		return nil
	}
	age := m.clusterTime().Sub(ready.LastTransitionTime.Time)
	if age > recheckUntil {
		return nil
	}
	if left := recheckAfter - age; left > 0 {
		m.queue.AddAfter(stage.Name, left)
		return nil
	}
	var err error
	is.exchanged, err = m.dirs.Exchanged(ctx, stage.Name)
	return err
}

// withdraw ensures that no further client pod gets the volume of a stage, and reports that on the client pods that
// have it. It stays mounted for them, as they may be writing to it. When they are gone, it is unstaged, and staged
// again for the next client pod.
func (m *Monitor) withdraw(ctx context.Context, stage *pavv1.PavStage) error {
	release, err := m.stager.Lock(staging.SubjectOf(stage))
	if err != nil {
		return err
	}
	defer release()
	now, err := m.get(ctx, stage.Name)
	if err != nil || now == nil || now.UID != stage.UID || now.Status.Attempt != stage.Status.Attempt ||
		now.Status.Phase != pavv1.StageStaged || now.Status.Restaging {
		return err // A call was faster.
	}
	exchanged, err := m.dirs.Exchanged(ctx, now.Name)
	if err != nil || !exchanged {
		return err
	}
	publications, err := m.stager.Publications(ctx, now.Name)
	if err != nil {
		return err
	}
	words := fmt.Sprintf("volume %s of provisioner %q on node %s is not published to further pods: %s",
		now.Spec.VolumeName, now.Spec.Provisioner, now.Spec.NodeName, staging.ExchangedMessage)
	if len(publications) > 0 {
		words += "; pods have the former mount, and what they write may be lost: delete them, and the volume is staged again"
	}
	if err = m.degrade(ctx, now, publications, metav1.ConditionTrue, string(lossDetached), words); err != nil {
		return err
	}
	return m.dirs.Detach(ctx, now.Name)
}
