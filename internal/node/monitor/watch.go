package monitor

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	staging "github.com/albertofaria/pav/internal/node/stage"
)

// WatchPods wakes the calls that wait for a stage when a pod of the stage changes, queues a check by the monitor, and
// removes the finalizers of pods whose outcome is recorded. Only the metadata of pods is cached, as a change is all
// that matters.
func WatchPods(ctx context.Context, mgr manager.Manager, notifier *staging.Notifier, m *Monitor) error {
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
			notifier.Wake(stage)
			m.Recheck(stage)
		}
	}
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    wake,
		UpdateFunc: func(_, object any) { wake(object) },
		DeleteFunc: wake,
	}); err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}

	return registerOutcomes(mgr, m)
}

// resumeUnstaging continues an unstaging between kubelet's calls, which interrupt it.
func (m *Monitor) resumeUnstaging(ctx context.Context, stage *pavv1.PavStage) {
	of := staging.SubjectOf(stage)
	m.begin(ctx, stage.Name, func(ctx context.Context) error {
		return m.unstage(ctx, of, func(ctx context.Context) (bool, error) {
			now, err := m.get(ctx, stage.Name)
			return now != nil && now.UID == stage.UID && recorded(now).unstaging(), err
		})
	})
}

// recheckNow checks a stage now, without backoff.
func (m *Monitor) recheckNow(stage string) {
	m.mu.Lock()
	delete(m.pauses, stage)
	m.mu.Unlock()
	m.retries.Forget(stage)
	m.Recheck(stage)
}

// WatchStages wakes the call that works on a stage when a retry is requested, and queues a check by the monitor then, when the
// account of a volume was replaced, and when a PavStage is gone: a call of kubelet that came late may have left a directory
// that nobody uses.
func WatchStages(ctx context.Context, mgr manager.Manager, notifier *staging.Notifier, m *Monitor) error {
	stages := &metav1.PartialObjectMetadata{}
	stages.SetGroupVersionKind(pavv1.GroupVersion.WithKind("PavStage"))
	informer, err := mgr.GetCache().GetInformer(ctx, stages)
	if err != nil {
		return fmt.Errorf("watching PavStages: %w", err)
	}
	if _, err := informer.AddEventHandler(stageEvents(notifier, m)); err != nil {
		return fmt.Errorf("watching PavStages: %w", err)
	}
	return nil
}

// stageEvents handles the events of PavStages. Requests that already exist are found when the monitor first checks all
// stages.
func stageEvents(notifier *staging.Notifier, m *Monitor) toolscache.ResourceEventHandlerFuncs {
	return toolscache.ResourceEventHandlerFuncs{UpdateFunc: func(before, after any) {
		old, ok := before.(client.Object)
		stage, also := after.(client.Object)
		if !ok || !also {
			return
		}
		changed := func(annotation string) bool {
			return old.GetAnnotations()[annotation] != stage.GetAnnotations()[annotation]
		}
		if changed(pavv1.RetryAnnotation) {
			notifier.Wake(stage.GetName())
			m.recheckNow(stage.GetName())
		} else if changed(pavv1.RestageAnnotation) {
			m.Recheck(stage.GetName())
		}
	}, DeleteFunc: func(object any) {
		if name, err := toolscache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
			m.stager.Forget(name)
			m.Recheck(name)
		}
	}}
}
