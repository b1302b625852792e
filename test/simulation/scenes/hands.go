package scenes

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// Scene is a play.
type Scene struct {
	// Name is part of the names of all that it makes.
	Name string

	// Play acts, and has all objects compared at each Look. What it made is gone when it ends.
	Play func(ctx context.Context, h *Hands) error
}

// Hands are what a scene acts with, in one of the worlds.
type Hands struct {
	// Scene is the name of the scene.
	Scene string

	// Kube may do everything, and NodeAgent what the agent of the node Node may.
	Kube, NodeAgent client.Client
	Node            string

	// Look compares all objects of the scene once they are at rest, or remembers how they are. Text describes them now.
	Look func(ctx context.Context, name string, text func(context.Context) (string, error)) error

	// claims are those that were made, by UID.
	claims map[string]string
}

// until waits until something is true.
func until(ctx context.Context, what string, is func() (bool, error)) error {
	for {
		done, err := is()
		if err != nil || done {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting until %s: %w", what, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// gone waits until objects do not exist.
func (h *Hands) gone(ctx context.Context, objects ...client.Object) error {
	for _, object := range objects {
		if err := until(ctx, fmt.Sprintf("%T %s is gone", object, object.GetName()), func() (bool, error) {
			err := h.Kube.Get(ctx, client.ObjectKeyFromObject(object), object)
			return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
		}); err != nil {
			return err
		}
	}
	return nil
}

// claim claims a volume of a class.
func (h *Hands) claim(ctx context.Context, name string) (*corev1.PersistentVolumeClaim, error) {
	claim := newClaim(h.Scene, name)
	if err := h.Kube.Create(ctx, claim); err != nil {
		return nil, err
	}
	if h.claims == nil {
		h.claims = map[string]string{}
	}
	h.claims[string(claim.UID)] = name
	return claim, nil
}

func volumeOf(claim *corev1.PersistentVolumeClaim) *pavv1.PavVolume {
	return &pavv1.PavVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-" + string(claim.UID)}}
}

func pvOf(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-" + string(claim.UID)}}
}

// end waits for a pod of a claim's volume, and has it run to its end.
func (h *Hands) end(ctx context.Context, claim *corev1.PersistentVolumeClaim, kind string, exitCode int32, result workflow.Result) error {
	pod, err := h.pod(ctx, claim, kind)
	if err != nil {
		return err
	}
	binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: h.Node}}
	if err := h.Kube.SubResource("binding").Create(ctx, pod.DeepCopy(), binding); err != nil {
		return err
	}
	ended := pod.DeepCopy()
	ended.Status.Phase = corev1.PodSucceeded
	if exitCode != 0 {
		ended.Status.Phase = corev1.PodFailed
	}
	ended.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: pod.Spec.Containers[0].Name, State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: exitCode, FinishedAt: metav1.Now()},
	}}}
	if err := h.Kube.Status().Patch(ctx, ended, client.MergeFrom(pod)); err != nil {
		return err
	}
	text, err := result.Encode()
	if err != nil {
		return err
	}
	told := pod.DeepCopy()
	metav1.SetMetaDataAnnotation(&told.ObjectMeta, pavv1.ResultAnnotation, text)
	// Nobody waits for what a deletion pod that succeeded has left.
	return client.IgnoreNotFound(h.NodeAgent.Patch(ctx, told, client.MergeFrom(pod)))
}

// pod waits for a pod of a claim's volume.
func (h *Hands) pod(ctx context.Context, claim *corev1.PersistentVolumeClaim, kind string) (*corev1.Pod, error) {
	volume, pod := volumeOf(claim), &corev1.Pod{}
	err := until(ctx, "there is a pod for "+kind, func() (bool, error) {
		if err := h.Kube.Get(ctx, client.ObjectKeyFromObject(volume), volume); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		ref := volume.Status.Pod
		if ref == nil || ref.UID == "" {
			return false, nil
		}
		err := h.Kube.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, pod)
		over := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		return err == nil && pod.UID == ref.UID && pod.Labels[pavv1.WorkflowLabel] == kind && !over, client.IgnoreNotFound(err)
	})
	return pod, err
}

// made has the volume of a claim made and bound, and its record have a copy of the claim as it is then: PaV does not
// wait for that before it goes on.
func (h *Hands) made(ctx context.Context, claim *corev1.PersistentVolumeClaim, result workflow.Result) error {
	if err := h.end(ctx, claim, pavv1.WorkflowCreation, 0, result); err != nil {
		return err
	}
	volume := volumeOf(claim)
	return until(ctx, "claim "+claim.Name+" is bound, and copied", func() (bool, error) {
		if err := h.Kube.Get(ctx, client.ObjectKeyFromObject(claim), claim); err != nil {
			return false, err
		}
		if err := h.Kube.Get(ctx, client.ObjectKeyFromObject(volume), volume); err != nil {
			return false, err
		}
		copied := &corev1.PersistentVolumeClaim{}
		err := json.Unmarshal(volume.Spec.Claim.Raw, copied)
		return claim.Status.Phase == corev1.ClaimBound && copied.ResourceVersion == claim.ResourceVersion, err
	})
}

// deleted has the volume of a claim deleted by a pod.
func (h *Hands) deleted(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	if err := h.end(ctx, claim, pavv1.WorkflowDeletion, 0, workflow.Result{}); err != nil {
		return err
	}
	return h.gone(ctx, pvOf(claim), volumeOf(claim))
}

// look has all objects of the scene compared.
func (h *Hands) look(ctx context.Context, name string) error {
	return h.Look(ctx, name, h.describe)
}

// change changes an object, as it is now.
func change[T client.Object](ctx context.Context, h *Hands, object T, how func(T)) error {
	if err := h.Kube.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return err
	}
	before, _ := object.DeepCopyObject().(client.Object)
	how(object)
	return h.Kube.Patch(ctx, object, client.MergeFrom(before))
}

// names replaces what differs from world to world in a text.
func (h *Hands) names(text string) string {
	for uid, name := range h.claims {
		text = strings.ReplaceAll(text, uid, "UID-OF-"+name)
	}
	text = podName.ReplaceAllString(text, "$1-HASH")
	text = hash.ReplaceAllString(text, "${1}HASH")
	text = moment.ReplaceAllString(text, "TIME")
	return text
}
