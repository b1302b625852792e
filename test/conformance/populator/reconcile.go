package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// These names are the same as in the original populator.
const (
	primePrefix   = "prime-"
	podPrefix     = "populate-"
	finalizer     = group + "/populate-target-protection"
	populatedFrom = group + "/populated-from"
	selectedNode  = "volume.kubernetes.io/selected-node"
	mountPath     = "/mnt"
	devicePath    = "/dev/block"
)

// state has the cached objects of one population. An object that does not exist is nil.
type state struct {
	claim, prime *corev1.PersistentVolumeClaim
	pod          *corev1.Pod
}

// reconcile performs the next step for a claim.
func (c *controller) reconcile(ctx context.Context, uid string) error {
	s := state{
		prime: get[*corev1.PersistentVolumeClaim](c.claims, c.namespace+"/"+primePrefix+uid),
		pod:   get[*corev1.Pod](c.pods, c.namespace+"/"+podPrefix+uid),
	}
	claims, err := c.claims.GetIndexer().ByIndex(byUID, uid)
	if err != nil {
		return fmt.Errorf("looking the claim up: %w", err)
	}
	for _, object := range claims {
		if claim, ok := object.(*corev1.PersistentVolumeClaim); ok && claim.Namespace != c.namespace {
			s.claim = claim
		}
	}
	if s.claim == nil || s.claim.DeletionTimestamp != nil {
		return c.cleanUp(ctx, s)
	}
	if s.claim.Spec.VolumeName == "" {
		return c.fill(ctx, s)
	}
	if s.prime != nil && s.prime.Status.Phase != corev1.ClaimLost {
		return nil // Kubernetes has not yet noticed that the volume belongs to the other claim
	}
	return c.cleanUp(ctx, s)
}

// fill performs the next step for a claim without a volume.
func (c *controller) fill(ctx context.Context, s state) error {
	hello := get[*unstructured.Unstructured](c.hellos, s.claim.Namespace+"/"+s.claim.Spec.DataSourceRef.Name)
	node, ready := c.place(s.claim)
	switch {
	case hello == nil || !ready:
		return nil
	case !slices.Contains(s.claim.Finalizers, finalizer):
		return c.patchFinalizers(ctx, s.claim, map[string]any{"finalizers": []string{finalizer}})
	case s.prime == nil:
		_, err := c.client.CoreV1().PersistentVolumeClaims(c.namespace).Create(ctx, c.primeOf(s.claim, node), metav1.CreateOptions{})
		return unless(apierrors.IsAlreadyExists, err)
	case s.pod == nil:
		pod, err := c.podOf(s.claim, hello, node)
		if err != nil {
			return err
		}
		_, err = c.client.CoreV1().Pods(c.namespace).Create(ctx, pod, metav1.CreateOptions{})
		return unless(apierrors.IsAlreadyExists, err)
	case s.pod.Status.Phase == corev1.PodFailed:
		slog.Info("a pod failed; another one follows", "claim", s.claim.UID, "message", s.pod.Status.Message)
		return c.deletePod(ctx, s.pod)
	case s.pod.Status.Phase != corev1.PodSucceeded:
		return nil
	}
	return c.handOver(ctx, s.claim, s.prime.Spec.VolumeName)
}

// place returns the node on which a claim must be populated, or an empty string if any node will do. It also reports
// whether the population can begin.
func (c *controller) place(claim *corev1.PersistentVolumeClaim) (node string, ready bool) {
	if claim.Spec.StorageClassName == nil {
		return "", true
	}
	class := get[*storagev1.StorageClass](c.classes, *claim.Spec.StorageClassName)
	if class == nil {
		return "", false
	}
	if mode := class.VolumeBindingMode; mode == nil || *mode != storagev1.VolumeBindingWaitForFirstConsumer {
		return "", true
	}
	node = claim.Annotations[selectedNode]
	return node, node != ""
}

// primeOf returns the claim that is provisioned in the place of the user's claim. The user's claim cannot be
// provisioned itself, because it names a data source.
func (c *controller) primeOf(claim *corev1.PersistentVolumeClaim, node string) *corev1.PersistentVolumeClaim {
	prime := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: primePrefix + string(claim.UID)},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: claim.Spec.AccessModes, Resources: claim.Spec.Resources,
			StorageClassName: claim.Spec.StorageClassName, VolumeMode: claim.Spec.VolumeMode,
		},
	}
	if node != "" {
		prime.Annotations = map[string]string{selectedNode: node}
	}
	return prime
}

// podOf returns the pod that writes the file of a Hello to the volume of the claim's prime.
func (c *controller) podOf(claim *corev1.PersistentVolumeClaim, hello *unstructured.Unstructured, node string) (*corev1.Pod, error) {
	file, _, err := unstructured.NestedString(hello.Object, "spec", "fileName")
	if err != nil {
		return nil, fmt.Errorf("reading the Hello: %w", err)
	}
	contents, _, err := unstructured.NestedString(hello.Object, "spec", "fileContents")
	if err != nil {
		return nil, fmt.Errorf("reading the Hello: %w", err)
	}
	const volume = "target"
	container := corev1.Container{Name: "populate", Image: c.image, ImagePullPolicy: corev1.PullIfNotPresent}
	path := mountPath + "/" + file
	if mode := claim.Spec.VolumeMode; mode != nil && *mode == corev1.PersistentVolumeBlock {
		path = devicePath
		container.VolumeDevices = []corev1.VolumeDevice{{Name: volume, DevicePath: path}}
	} else {
		container.VolumeMounts = []corev1.VolumeMount{{Name: volume, MountPath: mountPath}}
	}
	container.Args = []string{"--mode=populate", "--file-name=" + path, "--file-contents=" + contents}
	source := &corev1.PersistentVolumeClaimVolumeSource{ClaimName: primePrefix + string(claim.UID)}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: podPrefix + string(claim.UID)},
		Spec: corev1.PodSpec{
			NodeName: node, RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{container},
			Volumes: []corev1.Volume{{Name: volume, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: source}}},
		},
	}, nil
}

// handOver binds the volume to the user's claim.
func (c *controller) handOver(ctx context.Context, claim *corev1.PersistentVolumeClaim, volume string) error {
	pv := get[*corev1.PersistentVolume](c.volumes, volume)
	if pv == nil || pv.Spec.ClaimRef != nil && pv.Spec.ClaimRef.UID == claim.UID {
		return nil // the next event of the volume, or of the bound claim, starts the next step
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": map[string]string{populatedFrom: claim.Namespace + "/" + claim.Spec.DataSourceRef.Name}},
		"spec": map[string]any{"claimRef": map[string]any{
			"namespace": claim.Namespace, "name": claim.Name, "uid": claim.UID, "resourceVersion": claim.ResourceVersion,
		}},
	})
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	_, err = c.client.CoreV1().PersistentVolumes().Patch(ctx, volume, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	return err
}

// cleanUp removes everything that a finished or abandoned population leaves.
func (c *controller) cleanUp(ctx context.Context, s state) error {
	if s.pod != nil {
		if err := c.deletePod(ctx, s.pod); err != nil {
			return err
		}
	}
	if s.prime != nil && s.prime.DeletionTimestamp == nil {
		options := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(s.prime.UID))}
		err := c.client.CoreV1().PersistentVolumeClaims(c.namespace).Delete(ctx, s.prime.Name, options)
		if err := unless(apierrors.IsNotFound, err); err != nil {
			return err
		}
	}
	if s.claim == nil || !slices.Contains(s.claim.Finalizers, finalizer) {
		return nil
	}
	return c.patchFinalizers(ctx, s.claim, map[string]any{"$deleteFromPrimitiveList/finalizers": []string{finalizer}})
}

func (c *controller) deletePod(ctx context.Context, pod *corev1.Pod) error {
	if pod.DeletionTimestamp != nil {
		return nil
	}
	options := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))}
	return unless(apierrors.IsNotFound, c.client.CoreV1().Pods(c.namespace).Delete(ctx, pod.Name, options))
}

func (c *controller) patchFinalizers(ctx context.Context, claim *corev1.PersistentVolumeClaim, metadata map[string]any) error {
	metadata["uid"] = claim.UID // so that a new claim of the same name is not patched
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	_, err = c.client.CoreV1().PersistentVolumeClaims(claim.Namespace).Patch(ctx, claim.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	return unless(apierrors.IsNotFound, err)
}

// get returns the cached object with a key, or nil.
func get[T any](informer cache.SharedIndexInformer, key string) T {
	object, _, _ := informer.GetIndexer().GetByKey(key) // GetByKey never returns an error here
	typed, _ := object.(T)
	return typed
}

// unless returns nil if the error is of the given kind, and err otherwise.
func unless(kind func(error) bool, err error) error {
	if kind(err) {
		return nil
	}
	return err
}
