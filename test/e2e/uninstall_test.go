package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// uninstallWithin is the limit of each of the contract's two commands.
const uninstallWithin = stepTimeout

// startUninstall is start for a test that uninstalls PaV. However the test ends, PaV is installed again
// for the others.
func startUninstall(t *testing.T) string {
	t.Helper()
	namespace := start(t)
	if pavInCluster(t.Context(), t) == nil || pavOnNode(t.Context(), nodes[0]) == nil {
		t.Fatal("the check for what is left sees nothing of a PaV that is installed")
	}
	t.Cleanup(func() {
		ctx, cancel := cleanupContext(t)
		defer cancel()
		if err := install(ctx); err != nil {
			t.Errorf("PaV cannot be installed again: %v", err)
		}
	})
	return namespace
}

func TestUninstall_OfAnIdleInstallation_LeavesNothing(t *testing.T) {
	namespace := startUninstall(t)
	_, err := kubectl(t.Context(), provisioner("idle", "mkdir /pav/volume", ""), "create", "-f", "-")
	must(t, err)
	eventually(t, "the driver is registered", func(ctx context.Context) error { return registered(ctx, "idle") })

	deleteProvisioners(t)
	deleteDeployment(t)
	wantUninstalled(t)
	wantWorksAgain(t, namespace)
}

// A retained volume does not delay the uninstallation; an ordinary PersistentVolume is left of it.
func TestUninstall_WhileARetainedVolumeExists_LeavesNothing(t *testing.T) {
	namespace := startUninstall(t)
	class := storageClass("retaining") + "reclaimPolicy: Retain\n"
	apply(t, namespace, class)
	_, err := kubectl(t.Context(), provisioner("retaining", "mkdir /pav/volume", "true"), "create", "-f", "-")
	must(t, err)
	apply(t, namespace, documents(claim("data", "retaining", "ReadWriteOnce"), clientPod("client", "data", "")))
	waitRunning(t, namespace, "client")
	bound := &corev1.PersistentVolumeClaim{}
	must(t, kube.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "data"}, bound))
	remove(t, &corev1.Pod{ObjectMeta: objectMeta(namespace, "client")})
	remove(t, bound)
	volume := &corev1.PersistentVolume{ObjectMeta: objectMeta("", bound.Spec.VolumeName)}
	t.Cleanup(func() { remove(t, volume) })
	eventually(t, "the volume is released", func(ctx context.Context) error { return wantReleased(ctx, volume) })

	deleteProvisioners(t)
	deleteDeployment(t)
	wantUninstalled(t)

	must(t, wantReleased(t.Context(), volume))
	remove(t, volume)
	wantWorksAgain(t, namespace)
}

// wantReleased objects unless a PersistentVolume is released, and nothing but Kubernetes holds it.
func wantReleased(ctx context.Context, volume *corev1.PersistentVolume) error {
	if err := kube.Get(ctx, client.ObjectKeyFromObject(volume), volume); err != nil {
		return err
	}
	if volume.Status.Phase != corev1.VolumeReleased || volume.DeletionTimestamp != nil {
		return fmt.Errorf("volume %s is %s, deleted at %v", volume.Name, volume.Status.Phase, volume.DeletionTimestamp)
	}
	for _, finalizer := range volume.Finalizers {
		if finalizer != "kubernetes.io/pv-protection" {
			return fmt.Errorf("volume %s has finalizer %s", volume.Name, finalizer)
		}
	}
	return nil
}

func TestUninstall_WhileAVolumeIsInUse_WaitsForIt(t *testing.T) {
	namespace := startUninstall(t)
	_, err := kubectl(t.Context(), provisioner("in-use", "mkdir /pav/volume; touch /pav/volume/file", "test -e /pav/volume/file"), "create", "-f", "-")
	must(t, err)
	apply(t, namespace, documents(storageClass("in-use"), claim("data", "in-use", "ReadWriteOnce"), clientPod("client", "data", "")))
	waitRunning(t, namespace, "client")

	ended := make(chan error, 1)
	go func() { ended <- tryDeleteProvisioners(t.Context()) }()
	eventually(t, "the provisioner waits for its volume", func(ctx context.Context) error {
		return wantDeleting(ctx, "in-use", "pvc-")
	})
	if _, err := inPod(t.Context(), namespace, "client", "test -e /data/file"); err != nil {
		t.Errorf("the volume is not served any more: %v", err)
	}
	select {
	case err := <-ended:
		t.Fatalf("the command did not wait: %v", err)
	default:
	}

	remove(t, &corev1.Pod{ObjectMeta: objectMeta(namespace, "client")})
	remove(t, &corev1.PersistentVolumeClaim{ObjectMeta: objectMeta(namespace, "data")})
	must(t, <-ended)
	deleteDeployment(t)
	wantUninstalled(t)
	wantWorksAgain(t, namespace)
}

// deleteProvisioners is the first of the contract's two commands.
func deleteProvisioners(t *testing.T) {
	t.Helper()
	began := time.Now()
	must(t, tryDeleteProvisioners(t.Context()))
	t.Logf("the first command took %s", time.Since(began).Round(time.Millisecond))
}

func tryDeleteProvisioners(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, uninstallWithin)
	defer cancel()
	_, err := kubectl(ctx, "", "delete", "crd", "pavprovisioners.pav.albertofaria.github.io")
	return errors.Join(err, ctx.Err())
}

// deleteDeployment is the second of the contract's two commands.
func deleteDeployment(t *testing.T) {
	t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), uninstallWithin)
	defer cancel()
	_, err := kubectl(ctx, "", "delete", "--ignore-not-found", "-f", "deployment.yaml", "-f", bucketsManifest)
	must(t, errors.Join(err, ctx.Err()))
	t.Logf("the second command took %s", time.Since(began).Round(time.Millisecond))
}

func wantWorksAgain(t *testing.T, namespace string) {
	t.Helper()
	must(t, install(t.Context()))
	applyFile(t, namespace, "examples/1-hello-world/provisioner.yaml")
	applyFile(t, namespace, "examples/1-hello-world/usage.yaml")
	waitRunning(t, namespace, "hello-world")
	greeting, err := inPod(t.Context(), namespace, "hello-world", "cat /data/greeting.txt")
	must(t, err)
	if greeting != "Hello, world, from hello-world!\n" {
		t.Errorf("the volume has %q", greeting)
	}
}

// wantUninstalled fails the test if anything of PaV is left in the cluster. Kubelet takes a second to
// notice that a driver has gone, and PaV's directory goes when the agents have ended, so a short while is allowed.
func wantUninstalled(t *testing.T) {
	t.Helper()
	within(t, stepTimeout, "nothing of PaV is left", func(ctx context.Context) error {
		var errs []error
		for _, node := range nodes {
			errs = append(errs, pavOnNode(ctx, node))
		}
		return errors.Join(append(errs, pavInCluster(ctx, t))...)
	})
}

// pavInCluster objects to any object of any kind that is PaV's by its name or namespace, or that
// names PaV, as finalizers, owners, labels and entries in CSINodes do.
func pavInCluster(ctx context.Context, t *testing.T) error {
	t.Helper()
	config := restConfig(t)
	config.WarningHandler = rest.NoWarnings{} // Some kinds are deprecated.
	resources, err := discovery.NewDiscoveryClientForConfigOrDie(config).ServerPreferredResources()
	if err != nil {
		return err
	}
	lister, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	var errs []error
	for _, group := range resources {
		version, err := schema.ParseGroupVersion(group.GroupVersion)
		if err != nil {
			return err
		}
		if version.Group == pavv1.Group {
			errs = append(errs, fmt.Errorf("the API server still serves %s", version))
			continue
		}
		for i := range group.APIResources {
			if resource := &group.APIResources[i]; listable(resource, version) {
				errs = append(errs, pavInList(ctx, lister, version.WithKind(resource.Kind)))
			}
		}
	}
	return errors.Join(errs...)
}

// listable leaves out kinds that are not state, such as events.
func listable(resource *metav1.APIResource, version schema.GroupVersion) bool {
	if resource.Kind == "Event" || version.Group == "metrics.k8s.io" {
		return false
	}
	return slices.Contains(resource.Verbs, "list")
}

func pavInList(ctx context.Context, lister client.Client, kind schema.GroupVersionKind) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := lister.List(ctx, list); err != nil {
		return fmt.Errorf("listing %s: %w", kind, err)
	}
	var errs []error
	for i := range list.Items {
		object := &list.Items[i]
		object.SetManagedFields(nil)
		if kind.Kind == "PersistentVolume" { // It is the user's, and still names its driver.
			object.SetLabels(withoutVolumeLabels(object.GetLabels()))
		}
		raw, err := object.MarshalJSON()
		if err != nil {
			return err
		}
		if name := object.GetNamespace() + "/" + object.GetName(); strings.Contains(string(raw), pavv1.Group) || namedAsPav(object) {
			errs = append(errs, fmt.Errorf("%s %s is left, or names PaV: %s", kind.Kind, name, raw))
		}
	}
	return errors.Join(errs...)
}

func withoutVolumeLabels(labels map[string]string) map[string]string {
	for label := range workflow.VolumeLabels("", "") {
		delete(labels, label)
	}
	return labels
}

func namedAsPav(object *unstructured.Unstructured) bool {
	for _, name := range []string{object.GetNamespace(), object.GetName()} {
		if name == "pav" || strings.HasPrefix(name, "pav-") {
			return true
		}
	}
	return false
}

// pavOnNode objects to any mount, directory or socket of PaV on a node.
func pavOnNode(ctx context.Context, node string) error {
	mounts, err := onNode(ctx, node, "cat", "/proc/self/mountinfo")
	if err != nil {
		return err
	}
	if strings.Contains(mounts, pavv1.Group) {
		return fmt.Errorf("on %s, something of PaV is still mounted:\n%s", node, mounts)
	}
	files, err := onNode(ctx, node, "find", kubeletDir, "-path", "*"+pavv1.Group+"*", "-o", "-path", kubeletDir+"/plugins_registry/*")
	if err != nil {
		return err
	}
	for file := range strings.Lines(files) {
		// Kubelet makes a directory for each driver, and never removes it.
		if file = strings.TrimSpace(file); file != kubeletDir+"/plugins/kubernetes.io/csi/"+pavv1.Group {
			return fmt.Errorf("on %s, %s is left", node, file)
		}
	}
	return nil
}
