package main

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// image is the image of all pods that only need a shell. All nodes have it.
const image = "busybox:1.37.0"

// storageOf is the place of PersistentVolumes that are made before their claims.
const storageOf = "/var/lib/pav-bench"

func storageClass(name, provisioner string, mode storagev1.VolumeBindingMode) *storagev1.StorageClass {
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner, VolumeBindingMode: &mode, AllowVolumeExpansion: new(true)}
}

// claims returns claims for 1 MiB of a class.
func (w *world) claims(count int, class string) []*corev1.PersistentVolumeClaim {
	var made []*corev1.PersistentVolumeClaim
	for range count {
		made = append(made, &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: w.named("claim")},
			Spec: corev1.PersistentVolumeClaimSpec{
				StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources: corev1.VolumeResourceRequirements{Requests: storage()},
			},
		})
	}
	return made
}

func storage() corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}
}

// volumes returns PersistentVolumes of a class, which are directories of the node, or volumes of a CSI driver if there is
// one.
func (w *world) volumes(count int, class, driver string) []client.Object {
	var found []client.Object
	for range count {
		name := w.named("pav-bench")
		source := corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{
			Path: storageOf + "/" + name, Type: new(corev1.HostPathDirectoryOrCreate),
		}}
		if driver != "" {
			source = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: name}}
		}
		found = append(found, &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.PersistentVolumeSpec{
				StorageClassName: class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, Capacity: storage(),
				PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain, PersistentVolumeSource: source,
			},
		})
	}
	return found
}

// makeVolumes creates PersistentVolumes that claims of the class can be bound to.
func (w *world) makeVolumes(ctx context.Context, volumes []client.Object) error {
	if err := w.create(ctx, volumes...); err != nil {
		return err
	}
	return eventually(ctx, "PersistentVolumes are available", func(ctx context.Context) error {
		for _, volume := range volumes {
			seen := &corev1.PersistentVolume{}
			if err := w.kube.Get(ctx, client.ObjectKeyFromObject(volume), seen); err != nil {
				return err
			}
			if seen.Status.Phase != corev1.VolumeAvailable {
				return errors.New(seen.Name + " is not")
			}
		}
		return nil
	})
}

// boundClaims creates claims of a class, and waits until they are bound.
func (w *world) boundClaims(ctx context.Context, count int, class string) ([]*corev1.PersistentVolumeClaim, error) {
	claims := w.claims(count, class)
	_, err := w.watch.observe(ctx, func() error { return w.create(ctx, objects(claims)...) }, bound(claims...))
	return claims, err
}

// client returns a pod on the node that has these volumes, does nothing, and ends when it is told to.
func (w *world) client(volumes ...corev1.VolumeSource) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: w.named("client")},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{corev1.LabelHostname: w.node},
			Containers:   []corev1.Container{{Name: "client", Image: image, Command: []string{"sh", "-c", "trap exit TERM; sleep infinity & wait"}}},
		},
	}
	for i, volume := range volumes {
		name := fmt.Sprintf("volume-%d", i)
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: volume})
		pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: name, MountPath: "/" + name})
	}
	return pod
}

// endingPod returns a pod on the node that runs true.
func (w *world) endingPod() *corev1.Pod {
	pod := w.client()
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	pod.Spec.Containers[0].Command = []string{"true"}
	return pod
}

// started creates a pod and waits until it runs.
func (w *world) started(ctx context.Context, pod *corev1.Pod) error {
	_, err := w.watch.observe(ctx, func() error { return w.create(ctx, pod) }, running(pod))
	return err
}

// claimed returns the sources of volumes that are used through claims.
func claimed(claims ...*corev1.PersistentVolumeClaim) []corev1.VolumeSource {
	var sources []corev1.VolumeSource
	for _, claim := range claims {
		sources = append(sources, corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name}})
	}
	return sources
}

// emptyDirs returns the sources of volumes that need no provisioner.
func emptyDirs(count int) []corev1.VolumeSource {
	sources := make([]corev1.VolumeSource, count)
	for i := range sources {
		sources[i].EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	return sources
}

// objects returns a list of objects of one kind as a list of any objects.
func objects[T client.Object](list []T) []client.Object {
	all := make([]client.Object, len(list))
	for i := range list {
		all[i] = list[i]
	}
	return all
}
