package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var (
	//go:embed manifests/pav.yaml
	pavManifest string
	//go:embed manifests/external-provisioner.yaml
	externalManifest string
	//go:embed manifests/local-path-provisioner.yaml
	localPathManifest string
)

// controllers is the node of all controllers, and of the control plane. It is never rebooted.
const controllers = "node1"

// instantDriver is the name of the driver in manifests/external-provisioner.yaml.
const instantDriver = "instant.pav-bench"

// provider is where the volumes of claims come from.
type provider struct {
	class  string // the StorageClass has this name and that of the binding mode
	driver string // the provisioner of the class
}

var (
	// made is for PersistentVolumes that exist before the claims.
	made      = provider{"bench-made", "kubernetes.io/no-provisioner"}
	external  = provider{"bench-external", instantDriver}
	localPath = provider{"bench-local-path", "rancher.io/local-path"}
	// These are the provisioners of manifests/pav.yaml.
	staging      = provider{"bench-staging", "bench-staging"}
	stagingReady = provider{"bench-staging-ready", "bench-staging-ready"}
	both         = provider{"bench-both", "bench-both"}
	bothReady    = provider{"bench-both-ready", "bench-both-ready"}
)

var providers = []provider{made, external, localPath, staging, stagingReady, both, bothReady}

// Binding modes of a provider's classes.
const (
	immediate = storagev1.VolumeBindingImmediate
	wait      = storagev1.VolumeBindingWaitForFirstConsumer
)

func (p provider) className(mode storagev1.VolumeBindingMode) string {
	return p.class + "-" + strings.ToLower(string(mode))
}

// install installs the peers and what the cases use of PaV, and waits until all of it is ready.
func (w *world) install(ctx context.Context) error {
	if err := w.judged(ctx); err != nil {
		return err
	}
	for _, manifest := range []string{externalManifest, localPathManifest, pavManifest} {
		if err := w.apply(ctx, w.placed(manifest)); err != nil {
			return err
		}
	}
	for _, p := range providers {
		for _, mode := range []storagev1.VolumeBindingMode{immediate, wait} {
			if err := w.create(ctx, storageClass(p.className(mode), p.driver, mode)); err != nil {
				return err
			}
		}
	}
	for _, object := range []client.Object{
		&appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "pav-bench-external", Name: "driver"}},
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "pav-bench-external", Name: "csi-provisioner"}},
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "local-path-storage", Name: "local-path-provisioner"}},
	} {
		err := eventually(ctx, object.GetName()+" is ready", func(ctx context.Context) error { return w.available(ctx, object) })
		if err != nil {
			return err
		}
	}
	return w.registered(ctx, instantDriver, staging.driver, stagingReady.driver, both.driver, bothReady.driver)
}

// placed returns a manifest with the names of the nodes.
func (w *world) placed(manifest string) string {
	return strings.TrimSpace(strings.NewReplacer("MEASURED_NODE", w.node, "CONTROLLER_NODE", controllers).Replace(manifest))
}

// judged waits until PaV's webhook judges definitions: the API server can reach it a little later than its pods are ready.
func (w *world) judged(ctx context.Context) error {
	return eventually(ctx, "PaV's webhook answers", func(ctx context.Context) error {
		object, err := decode(fmt.Sprintf(idleProvisioner, 0))
		if err != nil {
			return err
		}
		return w.kube.Create(ctx, object, client.DryRunAll)
	})
}

// available returns an error while not all pods of a DaemonSet or a Deployment are ready.
func (w *world) available(ctx context.Context, object client.Object) error {
	if err := w.kube.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return err
	}
	ready := false
	switch o := object.(type) {
	case *appsv1.DaemonSet:
		ready = o.Status.DesiredNumberScheduled > 0 && o.Status.NumberReady == o.Status.DesiredNumberScheduled
	case *appsv1.Deployment:
		ready = o.Status.AvailableReplicas == *o.Spec.Replicas
	}
	if !ready {
		return errors.New("it is not")
	}
	return nil
}

// registered waits until kubelet knows the drivers.
func (w *world) registered(ctx context.Context, drivers ...string) error {
	return eventually(ctx, fmt.Sprintf("kubelet knows %d drivers", len(drivers)), func(ctx context.Context) error {
		node := &storagev1.CSINode{}
		if err := w.kube.Get(ctx, client.ObjectKey{Name: w.node}, node); err != nil {
			return err
		}
		known := map[string]bool{}
		for _, driver := range node.Spec.Drivers {
			known[driver.Name] = true
		}
		for _, driver := range drivers {
			if !known[driver] {
				return fmt.Errorf("it does not know %s", driver)
			}
		}
		return nil
	})
}

// readyPodOf returns the pod on the node that has a value of a label. It waits until there is one that is ready.
func (w *world) readyPodOf(ctx context.Context, space, label, value string) (found *corev1.Pod, err error) {
	err = eventually(ctx, "a pod with "+label+"="+value+" is ready", func(ctx context.Context) error {
		pods := &corev1.PodList{}
		err := w.kube.List(ctx, pods, client.InNamespace(space), client.MatchingLabels{label: value}, client.MatchingFields{"spec.nodeName": w.node})
		if err != nil {
			return err
		}
		for i := range pods.Items {
			if ready(&pods.Items[i]) {
				found = &pods.Items[i]
				return nil
			}
		}
		return errors.New("none is")
	})
	return found, err
}
