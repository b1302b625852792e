package volume

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/attempt"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/workflow"
)

// gather reads from the cache what the decision depends on.
func (r *Reconciler) gather(ctx context.Context, volume *pavv1.PavVolume) (observation, error) {
	o := observation{volume: volume, now: r.Now(), contended: r.slots.Contended(volume.Spec.Provisioner), dropsSizes: r.dropsSizes.Load(), dropsAttributes: r.dropsAttributes.Load()}
	o.retry = pavv1.RetryRequested(volume, volume.Status.LastHandledRetry, o.now)
	if err := r.gatherObjects(ctx, r.Client, &o); err != nil {
		return o, err
	}
	if err := r.gatherUsers(ctx, &o); err != nil {
		return o, err
	}
	driver, err := reconcile.Optional(ctx, r.Client, types.NamespacedName{Name: volume.Spec.Provisioner}, &storagev1.CSIDriver{})
	if err != nil {
		return o, err
	}
	o.wasBound = wasBound(volume)
	o.registered = driver != nil && driver.DeletionTimestamp == nil && o.provisioner != nil && metav1.IsControlledBy(driver, o.provisioner)
	if o.registered {
		if err := r.gatherRegistration(ctx, driver, &o); err != nil {
			return o, err
		}
	}
	if err := r.gatherPods(ctx, &o); err != nil {
		return o, err
	}
	if err := r.gatherFinders(ctx, &o); err != nil {
		return o, err
	}
	if err := r.gatherReaders(ctx, &o); err != nil {
		return o, err
	}
	if err := r.gatherSourceStages(ctx, &o); err != nil {
		return o, err
	}
	return o, r.gatherOthers(ctx, &o)
}

// checkVanished asks the API server whether a pod that the cache does not have is gone. The watches of pods and of
// PavVolumes are not ordered, so a pod may be recorded before the cache has it.
func (r *Reconciler) checkVanished(ctx context.Context, o observation) error {
	for _, a := range []attempt.Attempt{o.attempt(), o.creation()} {
		if a.Progress() != attempt.Vanished {
			continue
		}
		if err := attempt.CheckAbsent(ctx, r.Runner, a.Ref, o.volume.UID); err != nil {
			return err
		}
	}
	return nil
}

// gatherObjects reads the objects that decide whether the volume is still wanted.
func (r *Reconciler) gatherObjects(ctx context.Context, reader client.Reader, o *observation) error {
	volume := o.volume
	var err error
	if o.attributes, err = podplan.Attributes(volume); err != nil {
		return err
	}
	if o.provisioner, err = reconcile.Optional(ctx, reader, types.NamespacedName{Name: volume.Spec.Provisioner}, &pavv1.PavProvisioner{}); err != nil {
		return err
	}
	if o.pv, err = reconcile.Optional(ctx, reader, types.NamespacedName{Name: volume.Name}, &corev1.PersistentVolume{}); err != nil {
		return err
	}
	claim, err := reconcile.Optional(ctx, reader, claimKey(volume), &corev1.PersistentVolumeClaim{})
	if err != nil {
		return err
	}
	o.claim = stateOf(claim, volume)
	if err := r.gatherSource(ctx, reader, o); err != nil {
		return err
	}
	if err := o.gatherBucket(ctx, reader); err != nil {
		return err
	}
	if err := o.gatherUser(ctx, reader, claim); err != nil {
		return err
	}
	if o.claim == claimWaits && o.pending() {
		return r.gatherClass(ctx, claim, o)
	}
	return nil
}

// lacksPV reports whether the PersistentVolume of a volume is gone although its storage is not deleted: someone has removed it
// by force. A claim may still use it: the one that it was made for, or another one, to which a volume populator gave it.
func (o observation) lacksPV() bool {
	return o.pv == nil && !o.pending() && !o.storageDeleted() && !o.volume.Spec.Static
}

// gatherUsers looks for claims that use a volume without a PersistentVolume.
func (r *Reconciler) gatherUsers(ctx context.Context, o *observation) error {
	if !o.lacksPV() {
		return nil
	}
	claims := &corev1.PersistentVolumeClaimList{}
	if err := r.Client.List(ctx, claims, client.MatchingFields{reconcile.ClaimsByVolume: reconcile.Bucket(o.volume.Name)}); err != nil {
		return fmt.Errorf("looking up claims: %w", err)
	}
	o.addUsers(claims)
	return nil
}

// confirmUsers is gatherUsers with the claims that the API server has. It has no index of them.
func (r *Reconciler) confirmUsers(ctx context.Context, o *observation) error {
	if !o.lacksPV() {
		return nil
	}
	if err := reconcile.Pages(ctx, r.Live, &corev1.PersistentVolumeClaimList{}, nil, func() {}, o.addUsers); err != nil {
		return fmt.Errorf("asking which claims use PersistentVolume %q, which is gone: %w", o.volume.Name, err)
	}
	return nil
}

// addUsers records whether one of the claims uses the volume. Any tenant can write a claim that names it; only Kubernetes
// writes that it was bound.
func (o *observation) addUsers(claims *corev1.PersistentVolumeClaimList) {
	for i := range claims.Items {
		claim := &claims.Items[i]
		wasBound := claim.Status.Phase == corev1.ClaimBound || claim.Status.Phase == corev1.ClaimLost
		if wasBound && claim.Spec.VolumeName == o.volume.Name && claim.DeletionTimestamp == nil {
			o.claim = claimBound
		}
	}
}

// gatherClass reads from the StorageClass when and where the volume is created.
func (r *Reconciler) gatherClass(ctx context.Context, claim *corev1.PersistentVolumeClaim, o *observation) error {
	recorded := &storagev1.StorageClass{}
	if err := json.Unmarshal(o.volume.Spec.StorageClass.Raw, recorded); err != nil {
		return fmt.Errorf("spec.storageClass of PavVolume %q: %w", o.volume.Name, err)
	}
	if protocol.BindsLate(recorded) {
		o.selectedNode = claim.Annotations[protocol.SelectedNode]
		o.waitsForNode = o.selectedNode == ""
	}
	current, err := reconcile.Optional(ctx, r.Client, types.NamespacedName{Name: recorded.Name}, &storagev1.StorageClass{})
	o.classReplaced = current != nil && (current.UID != recorded.UID || current.ResourceVersion != recorded.ResourceVersion)
	return err
}

// gatherPods looks up the pods of the volume, and those of an earlier PavVolume of its name. The error is
// reconcile.ErrStale if the cache shows a PavVolume that is older than its pods.
func (r *Reconciler) gatherPods(ctx context.Context, o *observation) error {
	pods, err := r.podsOf(ctx, o.volume.Name)
	if err != nil {
		return err
	}
	for i := range pods {
		switch {
		case !metav1.IsControlledBy(&pods[i], o.volume):
			o.orphans = append(o.orphans, pods[i])
		case workflow.Attempt(&pods[i]) > o.volume.Status.Pods:
			return reconcile.ErrStale
		default:
			o.pods = append(o.pods, pods[i])
		}
	}
	return r.checkVanished(ctx, *o)
}

// podsOf returns all pods that a PavVolume of the name controls.
func (r *Reconciler) podsOf(ctx context.Context, volume string) ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	if err := r.Client.List(ctx, pods, client.MatchingFields{reconcile.PodsByVolume: volume}); err != nil {
		return nil, fmt.Errorf("looking up pods: %w", err)
	}
	return pods.Items, nil
}

// confirm decides again with the objects that the API server has, before a step that cannot be undone. If that gives
// another step, the cache is behind, and the error is reconcile.ErrStale.
func (r *Reconciler) confirm(ctx context.Context, o observation, d decision) error {
	_, err := r.confirmed(ctx, o, d)
	return err
}

// confirmed is confirm, and returns the observation with the objects that the API server has.
func (r *Reconciler) confirmed(ctx context.Context, o observation, d decision) (observation, error) {
	if err := r.gatherObjects(ctx, r.Live, &o); err != nil {
		return o, err
	}
	if decide(o).Step != d.Step {
		return o, reconcile.ErrStale
	}
	if err := r.confirmUsers(ctx, &o); err != nil { // only now, as it reads all claims
		return o, err
	}
	if o.deletesStorage(d.Step) {
		if err := r.confirmDependents(ctx, &o); err != nil {
			return o, err
		}
	}
	if decide(o).Step != d.Step {
		return o, reconcile.ErrStale
	}
	return o, nil
}

// whole returns the volume with its copies of the claim, which the cache does not keep completely. If the API server has
// another version of the volume, the cache is behind, and the error is reconcile.ErrStale.
func (r *Reconciler) whole(ctx context.Context, volume *pavv1.PavVolume) (*pavv1.PavVolume, error) {
	live := &pavv1.PavVolume{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(volume), live); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading PavVolume %q: %w", volume.Name, err)
	}
	if live.UID != volume.UID || live.ResourceVersion != volume.ResourceVersion {
		return nil, reconcile.ErrStale
	}
	live.SetManagedFields(nil)
	return live, nil
}

func claimKey(volume *pavv1.PavVolume) types.NamespacedName {
	return types.NamespacedName{Namespace: volume.Spec.ClaimRef.Namespace, Name: volume.Spec.ClaimRef.Name}
}
