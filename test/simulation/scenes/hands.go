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

// Scene is a short sequence of actions in a cluster.
type Scene struct {
	// Name is part of the names of all objects of the scene.
	Name string

	// Play runs the scene and calls Look to compare all objects. At its end, all objects of the scene are gone.
	Play func(ctx context.Context, h *Hands) error

	// mounted says that the scene has clients, and needs a node.
	mounted bool
}

// Hands has the clients of a scene in one of the two worlds.
type Hands struct {
	// Scene is the name of the scene.
	Scene string

	// Kube has all permissions. NodeAgent has the permissions of the node agent on the node named Node.
	Kube, NodeAgent client.Client
	Node            string

	// Namespace is the namespace of the claims and their clients: "default" for the scenes of All.
	Namespace string

	// Exit makes the container of a client exit successfully, and Evict makes kubelet evict a client. Only the scenes of
	// Mounted need them.
	Exit, Evict func(ctx context.Context, pod *corev1.Pod) error

	// Look waits until the objects of the scene no longer change. Then it compares them with those of the other world,
	// or stores their description. Text describes the current objects.
	Look func(ctx context.Context, name string, text func(context.Context) (string, error)) error

	// claims has the names of the scene's claims, by UID.
	claims map[string]string
}

// until waits until a condition is true.
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

// gone waits until none of the objects exists.
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

// claim creates a claim for the scene's class.
func (h *Hands) claim(ctx context.Context, name string) (*corev1.PersistentVolumeClaim, error) {
	claim := h.newClaim(name)
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

// end waits for a workflow pod of a claim's volume. It makes the pod end with an exit code and a result.
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
	reported := pod.DeepCopy()
	metav1.SetMetaDataAnnotation(&reported.ObjectMeta, pavv1.ResultAnnotation, text)
	// PaV does not wait for the result of a successful deletion pod, so the pod may be gone.
	return client.IgnoreNotFound(h.NodeAgent.Patch(ctx, reported, client.MergeFrom(pod)))
}

// pod waits for a workflow pod of a claim's volume and returns it. The pod has not ended.
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

// made makes the creation pod of a claim succeed, and waits until the claim is bound.
func (h *Hands) made(ctx context.Context, claim *corev1.PersistentVolumeClaim, result workflow.Result) error {
	if err := h.end(ctx, claim, pavv1.WorkflowCreation, 0, result); err != nil {
		return err
	}
	return h.bound(ctx, claim)
}

// bound waits until a claim is bound, and until PaV's record has a copy of the bound claim: PaV does not wait for that
// copy before it continues.
func (h *Hands) bound(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	volume := volumeOf(claim)
	return until(ctx, "claim "+claim.Name+" is bound, and copied", func() (bool, error) {
		if err := h.Kube.Get(ctx, client.ObjectKeyFromObject(claim), claim); err != nil {
			return false, err
		}
		if err := h.Kube.Get(ctx, client.ObjectKeyFromObject(volume), volume); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		copied := &corev1.PersistentVolumeClaim{}
		err := json.Unmarshal(volume.Spec.Claim.Raw, copied)
		return claim.Status.Phase == corev1.ClaimBound && copied.ResourceVersion == claim.ResourceVersion, err
	})
}

// deleted makes the deletion pod of a claim's volume succeed, and waits until the volume is gone.
func (h *Hands) deleted(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	if err := h.end(ctx, claim, pavv1.WorkflowDeletion, 0, workflow.Result{}); err != nil {
		return err
	}
	return h.gone(ctx, pvOf(claim), volumeOf(claim))
}

// look compares all objects of the scene.
func (h *Hands) look(ctx context.Context, name string) error {
	return h.Look(ctx, name, h.describe)
}

// change changes the current version of an object.
func change[T client.Object](ctx context.Context, h *Hands, object T, how func(T)) error {
	if err := h.Kube.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return err
	}
	before, _ := object.DeepCopyObject().(client.Object)
	how(object)
	return h.Kube.Patch(ctx, object, client.MergeFrom(before))
}

// names replaces the values in a text that differ between the two worlds.
func (h *Hands) names(text string) string {
	text = strings.NewReplacer(h.Node, "NODE", h.Namespace, "NAMESPACE").Replace(text)
	for claim, name := range h.claims {
		text = strings.ReplaceAll(text, claim, "UID-OF-"+name)
	}
	text = podName.ReplaceAllString(text, "$1-HASH")
	text = hash.ReplaceAllString(text, "${1}HASH")
	text = moment.ReplaceAllString(text, "TIME")
	text = uid.ReplaceAllString(text, "UID")
	return text
}
