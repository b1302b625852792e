package stage

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/observe"
	"github.com/albertofaria/pav/internal/workflow"
)

// handleIndex finds persistent volumes by driver and handle.
const handleIndex = "driverAndHandle"

// IndexVolumes adds the index that Cache finds persistent volumes with.
func IndexVolumes(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &corev1.PersistentVolume{}, handleIndex, func(object client.Object) []string {
		if volume, ok := object.(*corev1.PersistentVolume); ok && volume.Spec.CSI != nil {
			return []string{workflow.Hash(volume.Spec.CSI.Driver, volume.Spec.CSI.VolumeHandle)}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("indexing persistent volumes: %w", err)
	}
	return nil
}

// TrimVolume keeps of a persistent volume in the cache what IndexVolumes needs.
func TrimVolume(object any) (any, error) {
	volume, ok := object.(*corev1.PersistentVolume)
	if !ok {
		return object, nil
	}
	trimmed := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: volume.Name, UID: volume.UID, ResourceVersion: volume.ResourceVersion}}
	if source := volume.Spec.CSI; source != nil {
		trimmed.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: source.Driver, VolumeHandle: source.VolumeHandle}
	}
	return trimmed, nil
}

// Cache is a Catalogue over the agent's caches.
type Cache struct {
	// Reader reads the caches.
	Reader client.Reader
}

// VolumeNames implements Catalogue.
func (c Cache) VolumeNames(ctx context.Context, driver, handle string) ([]string, error) {
	list := &corev1.PersistentVolumeList{}
	if err := c.Reader.List(ctx, list, client.MatchingFields{handleIndex: workflow.Hash(driver, handle)}); err != nil {
		return nil, fmt.Errorf("finding the volume: %w", err)
	}
	names := make([]string, 0, len(list.Items))
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, nil
}

// Provisioner implements Catalogue.
func (c Cache) Provisioner(ctx context.Context, name string) (*pavv1.PavProvisioner, error) {
	provisioner := &pavv1.PavProvisioner{}
	if err := c.Reader.Get(ctx, client.ObjectKey{Name: name}, provisioner); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("getting PavProvisioner %q: %w", name, err)
	}
	return provisioner, nil
}

// WatchPods wakes whoever waits for a stage when a pod of it changes, has the keeper look at the stage,
// and lets pods go whose outcome is recorded. Only the metadata of pods is kept: that it has changed is
// all that a wake-up says.
func WatchPods(ctx context.Context, mgr manager.Manager, hub *Hub, stager *Stager, keeper *Keeper) error {
	pods := &metav1.PartialObjectMetadata{}
	pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	informer, err := mgr.GetCache().GetInformer(ctx, pods)
	if err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	wake := func(object any) {
		if gone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
			object = gone.Obj
		}
		if pod, ok := object.(client.Object); ok {
			stage := pod.GetLabels()[pavv1.StageLabel]
			hub.Wake(stage)
			keeper.Look(stage)
		}
	}
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    wake,
		UpdateFunc: func(_, object any) { wake(object) },
		DeleteFunc: wake,
	}); err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}

	held := predicate.NewPredicateFuncs(func(pod client.Object) bool {
		return pod.GetDeletionTimestamp() != nil && controllerutil.ContainsFinalizer(pod, pavv1.PodFinalizer)
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("outcome").
		For(&corev1.Pod{}, builder.OnlyMetadata, builder.WithPredicates(held)).
		WithLogConstructor(observe.Requests(mgr.GetLogger(), "outcome", observe.Pod, nil)).
		Complete(&outcomes{stager})
}

// outcomes lets workflow pods go that somebody deletes after their outcome was recorded.
type outcomes struct{ stager *Stager }

// Reconcile implements reconcile.Reconciler.
func (o *outcomes) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	pod := &corev1.Pod{}
	if err := o.stager.client.Get(ctx, request.NamespacedName, pod); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if state := workflow.Observe(pod); state != workflow.Succeeded && state != workflow.Failed {
		return reconcile.Result{}, nil
	}
	recorded, err := o.recorded(ctx, pod)
	if err != nil || !recorded {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, o.stager.runner.Release(ctx, pod)
}

// recorded says whether the ledger does not need the pod any more: its stage is gone, or has gone on to
// other pods. The end of the staging pod of a volume that is staged is for the keeper to record, which
// then lets the pod go itself.
func (o *outcomes) recorded(ctx context.Context, pod *corev1.Pod) (bool, error) {
	name := pod.Labels[pavv1.StageLabel]
	if owner := metav1.GetControllerOf(pod); owner != nil {
		name = owner.Name
	}
	if name == "" {
		return true, nil
	}
	stage := &pavv1.PavStage{}
	if err := o.stager.client.Get(ctx, client.ObjectKey{Name: name}, stage); apierrors.IsNotFound(err) {
		return true, nil
	} else if err != nil {
		return false, fmt.Errorf("getting PavStage %q: %w", name, err)
	}
	return !workflow.Belongs(pod, stage.UID) || !needs(&stage.Status, pod), nil
}

// needs says whether the outcome of a pod is yet to be recorded in a status that was read after the pod.
// As every pod is recorded before it is created, one that is not there is of an earlier attempt.
func needs(status *pavv1.PavStageStatus, pod *corev1.Pod) bool {
	is := func(ref *pavv1.PodReference) bool {
		return ref != nil && ref.Namespace == pod.Namespace && ref.Name == pod.Name
	}
	return is(status.StagingPod) || is(status.UnstagingPod) || is(status.ValidationPod) && !status.Validated
}
