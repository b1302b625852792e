package collect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/node/pavdir"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/workflow"
)

// ErrBusy is wrapped if another call for the same volume is in progress.
var ErrBusy = errors.New("another call for the volume is going on")

// API reads and patches pods. It must not read from a cache: the answer decides whether files are kept.
type API interface {
	Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error
	Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error
}

// Collector gives pods of the controller agent their /pav, and reports the files that they leave.
type Collector struct {
	api  API
	dirs Directories
	boot pavdir.Boot
	log  logr.Logger

	mu    sync.Mutex
	busy  map[string]bool                // by ID of volume
	queue func(pod types.NamespacedName) // queues a report of a pod; nil before WatchPods
}

// New returns a Collector for the directories of a node, whose current start is boot. Only Sweep uses the logger.
func New(api API, dirs Directories, boot pavdir.Boot, log logr.Logger) *Collector {
	return &Collector{api: api, dirs: dirs, boot: boot, log: log, busy: map[string]bool{}}
}

// Publish mounts the /pav of a pod at target. It may be repeated.
func (c *Collector) Publish(ctx context.Context, volumeID string, pod pavdir.Pod, target string) error {
	release, err := c.claim(volumeID)
	if err != nil {
		return err
	}
	defer release()
	pod.Boot = c.boot
	return c.dirs.PublishPod(ctx, volumeID, pod, target)
}

// Announce says in an annotation of a pod that it has got /pav. It must be called before the pod's containers start. Where the
// policies are those of an earlier version, as while PaV is rolled back, the pod starts without the annotation: that version
// does not know it.
func (c *Collector) Announce(ctx context.Context, pod pavdir.Pod) error {
	err := c.annotate(ctx, pod, pavv1.GivenAnnotation, "true")
	if apierrors.IsForbidden(err) && strings.Contains(err.Error(), formerRefusal) {
		c.log.Info("a pod gets /pav without an annotation that says so, as the policies are those of an earlier version", observability.Pod, observability.Name(pod.Namespace, pod.Name))
		return nil
	}
	return err
}

// formerRefusal is what the policy of versions before the annotation says to it.
const formerRefusal = "a node agent may only write the result of a pod of the controller agent, once"

// Unpublish reports the files in a pod's /pav in an annotation of the pod, and removes the /pav. It must be called
// after the pod's containers have ended, and repeated until it returns no error:
//  1. The pod is read from the record in the directory.
//  2. The files are read and reported, unless the pod is gone, or the report exists.
//  3. The target and the pod's mounts are unmounted, and the directory is removed with the record.
//
// It does nothing and returns false if the volume was not published here for a pod.
func (c *Collector) Unpublish(ctx context.Context, volumeID, target string) (bool, error) {
	release, err := c.claim(volumeID)
	if err != nil {
		return false, err
	}
	defer release()
	pod, exists, err := c.dirs.Pod(ctx, volumeID)
	if errors.Is(err, pavdir.ErrVolumeID) {
		return false, nil
	}
	if err != nil || !exists {
		return false, err
	}
	if pod != nil {
		of := *pod
		left := func(pod *corev1.Pod) (*workflow.Result, error) { return c.left(ctx, volumeID, of, pod) }
		if err := c.tell(ctx, of, left); err != nil {
			return true, err
		}
	}
	return true, c.dirs.UnpublishPod(ctx, volumeID, target)
}

// Sweep removes the directories of pods that are gone and that are not mounted any more: kubelet may have lost track
// of a pod that was deleted by force while no agent was running. It makes one pass, logs errors, and always returns
// nil.
func (c *Collector) Sweep(ctx context.Context) error {
	ids, err := c.dirs.Pods(ctx)
	if err != nil {
		c.log.Error(err, "directories of pods cannot be looked for")
	}
	for _, id := range ids {
		removed, err := c.sweep(ctx, id)
		switch {
		case err != nil:
			c.log.Error(err, "the directory of a pod cannot be removed", "directory", id)
		case removed:
			c.log.Info("the directory of a pod that is gone was removed", "directory", id)
		}
	}
	return nil
}

func (c *Collector) sweep(ctx context.Context, volumeID string) (removed bool, err error) {
	release, err := c.claim(volumeID)
	if errors.Is(err, ErrBusy) {
		return false, nil // Another call works on it.
	}
	if err != nil {
		return false, err
	}
	defer release()
	of, exists, err := c.dirs.Pod(ctx, volumeID)
	if err != nil || !exists {
		return false, err
	}
	if of != nil {
		if pod, err := c.get(ctx, *of); err != nil || pod != nil {
			return false, err
		}
	}
	inUse, err := c.dirs.RemovePod(ctx, volumeID)
	return err == nil && !inUse, err
}

// tell writes the result of a pod to it, unless it is gone or has one. Result returns it, or nil if it is not to be
// written yet.
func (c *Collector) tell(ctx context.Context, of pavdir.Pod, result func(*corev1.Pod) (*workflow.Result, error)) error {
	pod, err := c.get(ctx, of)
	if err != nil || pod == nil || workflow.IsReported(pod) {
		return err
	}
	found, err := result(pod)
	if err != nil {
		return fmt.Errorf("collecting what pod %s/%s left: %w", of.Namespace, of.Name, err)
	}
	if found == nil {
		return nil
	}
	value, err := found.Encode()
	if err != nil {
		return err
	}
	return c.annotate(ctx, of, pavv1.ResultAnnotation, value)
}

// left returns the files that a pod has left, or that they are lost. What a pod did after /pav/ready does not count, even
// if the agent was away when it was created.
func (c *Collector) left(ctx context.Context, volumeID string, of pavdir.Pod, pod *corev1.Pod) (*workflow.Result, error) {
	gone := lost(pod)
	if !of.Same(c.boot) {
		return &gone, nil
	}
	result, err := c.read(ctx, volumeID, pod)
	if err == nil && workflow.MayBeReady(pod) {
		result.Ready, err = c.isReady(ctx, volumeID, of)
	}
	if errors.Is(err, pavdir.ErrLost) {
		return &gone, nil
	}
	if err != nil {
		return nil, err
	}
	return &result, nil
}

// annotate adds an annotation to a pod, unless the pod is gone.
func (c *Collector) annotate(ctx context.Context, of pavdir.Pod, key, value string) error {
	// The API server rejects a patch with another UID than the pod's.
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": of.UID, "annotations": map[string]string{key: value}}})
	if err != nil {
		return fmt.Errorf("encoding the patch of a pod: %w", err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: of.Name}}
	if err := c.api.Patch(ctx, pod, client.RawPatch(types.MergePatchType, patch)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the annotation %s of pod %s/%s: %w", key, of.Namespace, of.Name, err)
	}
	return nil
}

// get returns the pod, or nil if it is gone.
func (c *Collector) get(ctx context.Context, of pavdir.Pod) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	err := c.api.Get(ctx, client.ObjectKey{Namespace: of.Namespace, Name: of.Name}, pod)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("getting pod %s/%s: %w", of.Namespace, of.Name, err)
	}
	if pod.UID != of.UID {
		return nil, nil
	}
	return pod, nil
}

// claim locks a volume against other calls. No call waits: kubelet calls again.
func (c *Collector) claim(volumeID string) (release func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy[volumeID] {
		return nil, ErrBusy
	}
	c.busy[volumeID] = true
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.busy, volumeID)
	}, nil
}
