package collect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/node/pavdir"
)

// ErrBusy is wrapped where another call for the same volume is going on.
var ErrBusy = errors.New("another call for the volume is going on")

// API is what is needed of the API server. It must not answer from a cache: what it says decides
// whether files are kept.
type API interface {
	Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error
	Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error
}

// Collector gives pods of the controller agent their /pav, and tells what they left.
type Collector struct {
	api  API
	dirs Directories
	boot pavdir.Boot
	log  logr.Logger

	mu   sync.Mutex
	busy map[string]bool // by ID of volume
}

// New returns a Collector for the directories of a node, whose present start is boot. The logger is for Sweep only.
func New(api API, dirs Directories, boot pavdir.Boot, log logr.Logger) *Collector {
	return &Collector{api: api, dirs: dirs, boot: boot, log: log, busy: map[string]bool{}}
}

// Publish makes the /pav of a pod available at target. It may be repeated.
func (c *Collector) Publish(ctx context.Context, volumeID string, pod pavdir.Pod, target string) error {
	release, err := c.claim(volumeID)
	if err != nil {
		return err
	}
	defer release()
	pod.Boot = c.boot
	return c.dirs.PublishPod(ctx, volumeID, pod, target)
}

// Unpublish tells on the pod what it left in its /pav, and takes that away. It must be called after
// the end of the pod's containers, and again until it returns no error, wherever it was interrupted:
//  1. The record in the directory says whose /pav it is.
//  2. The result is read and told, unless the pod is gone, or has been told of already.
//  3. The target is unmounted, what the pod left mounted is, and the directory goes, with the record.
//
// It returns false, and has done nothing, where the volume is none of a pod that was published here.
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
		if err := c.tell(ctx, volumeID, *pod); err != nil {
			return true, err
		}
	}
	return true, c.dirs.UnpublishPod(ctx, volumeID, target)
}

// Sweep removes the directories of pods that are gone and that nobody has mounted: kubelet may have
// forgotten a pod that was deleted by force while no agent was there. It makes one pass, logs what it
// cannot remove, and always returns nil.
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
		return false, nil // Somebody takes care of it right now.
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

// tell writes the result on the pod. It is written once: where it is told already, it stays.
func (c *Collector) tell(ctx context.Context, volumeID string, of pavdir.Pod) error {
	pod, err := c.get(ctx, of)
	if err != nil || pod == nil {
		return err
	}
	if _, told := pod.Annotations[pavv1.ResultAnnotation]; told {
		return nil
	}
	result := lost
	if of.Same(c.boot) {
		result, err = c.read(ctx, volumeID)
	}
	if errors.Is(err, pavdir.ErrLost) {
		result, err = lost, nil
	}
	if err != nil {
		return fmt.Errorf("collecting what pod %s/%s left: %w", of.Namespace, of.Name, err)
	}
	value, err := result.Encode()
	if err != nil {
		return err
	}
	// A patch with another UID than the pod's is refused.
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":         of.UID,
		"annotations": map[string]string{pavv1.ResultAnnotation: value},
	}})
	if err != nil {
		return fmt.Errorf("encoding the patch of a pod: %w", err)
	}
	err = c.api.Patch(ctx, pod, client.RawPatch(types.MergePatchType, patch))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("telling on pod %s/%s what it left: %w", of.Namespace, of.Name, err)
	}
	return nil
}

// get returns the pod, or nil where it is gone.
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

// claim keeps calls for the same volume apart. Nobody waits: kubelet calls again.
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
