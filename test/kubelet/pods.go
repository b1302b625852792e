package kubelet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// Pod is a workflow pod of the node, as its script sees it.
type Pod struct {
	*corev1.Pod

	// Pav is the directory that the pod's containers would have as /pav.
	Pav string

	// Seen is when kubelet saw the pod first.
	Seen time.Time
}

// Workflow returns the workflow of the pod.
func (p *Pod) Workflow() string { return p.Labels[pavv1.WorkflowLabel] }

// Handle returns the handle of the pod's volume.
func (p *Pod) Handle() string { return p.Annotations[pavv1.HandleAnnotation] }

// worker runs one pod.
type worker struct {
	deleted context.CancelFunc
}

// ours selects the node's PavStages and their pods.
func (k *Kubelet) ours() client.MatchingLabels {
	return client.MatchingLabels{pavv1.NodeLabel: workflow.Hash(k.Node)}
}

// watchPods runs the pods of the node until ctx ends.
func (k *Kubelet) watchPods(ctx context.Context) {
	for ctx.Err() == nil {
		events, err := k.admin.Watch(ctx, &corev1.PodList{}, k.ours())
		if err != nil {
			k.rest(ctx)
			continue
		}
		for event := range events.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok {
				k.see(ctx, pod, event.Type)
			}
		}
	}
}

// see starts to run a pod, or stops it.
func (k *Kubelet) see(ctx context.Context, pod *corev1.Pod, event watch.EventType) {
	k.mu.Lock()
	defer k.mu.Unlock()
	w := k.workers[string(pod.UID)]
	gone := event == watch.Deleted
	if w == nil && !gone && (pod.DeletionTimestamp == nil || pod.Spec.NodeName != "") && !over(pod) {
		running, cancel := context.WithCancel(ctx)
		w = &worker{deleted: cancel}
		k.workers[string(pod.UID)] = w
		go k.run(ctx, running, &Pod{Pod: pod.DeepCopy(), Pav: k.podVolume(string(pod.UID), "pav"), Seen: time.Now()})
	}
	if w != nil && (gone || pod.DeletionTimestamp != nil) {
		w.deleted()
	}
}

// Settled reports whether no pod is starting or stopping: each runs its script, or has ended and its /pav is
// unpublished.
func (k *Kubelet) Settled() bool { return k.moving.Load() == 0 }

func over(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// run runs a pod from its binding to its deletion. The context running ends when the pod is to be stopped.
func (k *Kubelet) run(ctx, running context.Context, p *Pod) {
	pod := p.Pod
	k.moving.Add(1)
	if pod.Spec.NodeName == "" && !k.bind(running, pod) {
		k.moving.Add(-1)
		return // It was deleted before it was bound, so no kubelet ever sees it.
	}
	published := os.MkdirAll(filepath.Dir(p.Pav), 0o750) == nil && k.publishPav(running, p)
	code := int32(137)
	if published && running.Err() == nil {
		k.Journal.add(Entry{Workflow: p.Workflow(), Handle: p.Handle(), Pod: pod.UID})
		k.report(running, pod, corev1.PodRunning, 0)
		k.moving.Add(-1)
		code = k.script(running, p)
		k.moving.Add(1)
	}
	phase := corev1.PodSucceeded
	if code != 0 {
		phase = corev1.PodFailed
	}
	// Kubelet reports that the containers have ended, then unmounts the volumes, then deletes the pod.
	k.report(ctx, pod, phase, code)
	k.Until(ctx, func(ctx context.Context) error { return k.unpublishPav(ctx, p) })
	_ = os.RemoveAll(filepath.Join(k.Dir, "pods", string(pod.UID)))
	k.moving.Add(-1)
	<-running.Done()
	var now int64
	last := &client.DeleteOptions{GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &pod.UID}}
	k.Until(ctx, func(ctx context.Context) error {
		err := k.admin.Delete(ctx, pod, last)
		if apierrors.IsConflict(err) {
			return nil // Another pod has the name by now.
		}
		return client.IgnoreNotFound(err)
	})
}

// bind binds a pod to the node, as the scheduler does.
func (k *Kubelet) bind(ctx context.Context, pod *corev1.Pod) bool {
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: k.Node},
	}
	errs := k.Until(ctx, func(ctx context.Context) error {
		return k.admin.SubResource("binding").Create(ctx, pod.DeepCopy(), binding)
	})
	return errs[len(errs)-1] == nil
}

// report writes the status of a pod, unless ctx ends first.
func (k *Kubelet) report(ctx context.Context, pod *corev1.Pod, phase corev1.PodPhase, code int32) {
	now := metav1.Now()
	state := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}
	if phase != corev1.PodRunning {
		state = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: now}}
	}
	k.Until(ctx, func(ctx context.Context) error {
		before := pod.DeepCopy()
		pod.Status.Phase = phase
		if pod.Status.StartTime == nil {
			pod.Status.StartTime = &now
		}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: pod.Spec.Containers[0].Name, State: state}}
		return client.IgnoreNotFound(k.admin.Status().Patch(ctx, pod, client.MergeFrom(before)))
	})
}

// publishPav publishes /pav for a pod, unless ctx ends first.
func (k *Kubelet) publishPav(ctx context.Context, p *Pod) bool {
	errs := k.Until(ctx, func(ctx context.Context) error {
		return k.call(ctx, pavv1.Driver, func(ctx context.Context, node csi.NodeClient) error {
			_, err := node.NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{
				VolumeId: inlineID(p), TargetPath: p.Pav,
				VolumeCapability: capability(Volume{}),
				VolumeContext:    podInfo(p.Namespace, p.Name, string(p.UID), "true"),
			})
			return err
		})
	})
	return errs[len(errs)-1] == nil
}

func (k *Kubelet) unpublishPav(ctx context.Context, p *Pod) error {
	return k.call(ctx, pavv1.Driver, func(ctx context.Context, node csi.NodeClient) error {
		_, err := node.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: inlineID(p), TargetPath: p.Pav})
		return err
	})
}

// inlineID returns the volume ID that kubelet gives to a pod's inline volume.
func inlineID(p *Pod) string {
	sum := sha256.Sum256([]byte("pav" + p.Namespace + string(p.UID)))
	return "csi-" + hex.EncodeToString(sum[:])
}

// podInfo returns the entries that kubelet adds to the volume context of a driver with podInfoOnMount.
func podInfo(namespace, name, uid, ephemeral string) map[string]string {
	return map[string]string{
		"csi.storage.k8s.io/pod.namespace":       namespace,
		"csi.storage.k8s.io/pod.name":            name,
		"csi.storage.k8s.io/pod.uid":             uid,
		"csi.storage.k8s.io/serviceAccount.name": "default",
		"csi.storage.k8s.io/ephemeral":           ephemeral,
	}
}

// podVolume returns the path at which kubelet has a volume of a pod.
func (k *Kubelet) podVolume(uid, name string) string {
	return filepath.Join(k.Dir, "pods", uid, "volumes", "kubernetes.io~csi", name, "mount")
}

// watchStages simulates the garbage collector of Kubernetes: it deletes the pods of PavStages that are gone.
func (k *Kubelet) watchStages(ctx context.Context) {
	for ctx.Err() == nil {
		events, err := k.admin.Watch(ctx, &pavv1.PavStageList{}, k.ours())
		if err != nil {
			k.rest(ctx)
			continue
		}
		// Some may have been deleted while nothing was watched.
		k.Until(ctx, func(ctx context.Context) error { return k.collect(ctx, k.ours()) })
		for event := range events.ResultChan() {
			if stage, ok := event.Object.(*pavv1.PavStage); ok && event.Type == watch.Deleted {
				k.Until(ctx, func(ctx context.Context) error {
					return k.collect(ctx, client.MatchingLabels{pavv1.StageLabel: stage.Name})
				})
			}
		}
	}
}

// collect deletes those of the selected pods whose PavStage is gone.
func (k *Kubelet) collect(ctx context.Context, selected client.MatchingLabels) error {
	pods := &corev1.PodList{}
	if err := k.admin.List(ctx, pods, selected); err != nil {
		return err
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		owner := metav1.GetControllerOf(pod)
		if owner == nil || owner.Kind != "PavStage" || pod.DeletionTimestamp != nil {
			continue
		}
		stage := &pavv1.PavStage{}
		err := k.admin.Get(ctx, client.ObjectKey{Name: owner.Name}, stage)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err == nil && stage.UID == owner.UID {
			continue
		}
		if err := client.IgnoreNotFound(k.admin.Delete(ctx, pod, client.Preconditions{UID: &pod.UID})); err != nil {
			return err
		}
	}
	return nil
}
