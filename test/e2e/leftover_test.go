package e2e

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"testing"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cosiv1 "github.com/albertofaria/pav/internal/api/cosi/v1alpha1"
	obcv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

const (
	kubeletDir = "/var/lib/kubelet"
	kubeletCSI = kubeletDir + "/plugins/kubernetes.io/csi"
	pavDir     = kubeletDir + "/plugins/" + pavv1.Driver
)

// checkNothingLeft fails the test if anything that it created is left some time after it: objects, workflow pods, mounts,
// directories or sockets.
func checkNothingLeft(t *testing.T) {
	t.Helper()
	ctx, cancel := cleanupContext(t)
	defer cancel()
	if err := poll(ctx, wantNothingLeft); err != nil {
		t.Errorf("something is left: %v", err)
	}
}

func wantNothingLeft(ctx context.Context) error {
	if err := objectsLeft(ctx); err != nil {
		return err
	}
	for _, node := range nodes {
		if err := leftOnNode(ctx, node); err != nil {
			return err
		}
	}
	return nil
}

// namespacesAreGone returns an error if a namespace is being deleted: see removeLater.
func namespacesAreGone(ctx context.Context) error {
	namespaces := &corev1.NamespaceList{}
	if err := kube.List(ctx, namespaces); err != nil {
		return err
	}
	for i := range namespaces.Items {
		if n := &namespaces.Items[i]; n.DeletionTimestamp != nil {
			return fmt.Errorf("namespace %s is being deleted: %+v", n.Name, n.Status.Conditions)
		}
	}
	return nil
}

func objectsLeft(ctx context.Context) error {
	for _, list := range []client.ObjectList{&pavv1.PavProvisionerList{}, &pavv1.PavVolumeList{}, &pavv1.PavStageList{}, &pavv1.PavSnapshotList{},
		&snapshotv1.VolumeSnapshotContentList{}, &corev1.PersistentVolumeList{}} {
		if err := noneIn(ctx, list); err != nil {
			return err
		}
	}
	if err := bucketsLeft(ctx); err != nil {
		return err
	}
	pods := &corev1.PodList{}
	if err := kube.List(ctx, pods, client.HasLabels{pavv1.WorkflowLabel}); err != nil {
		return err
	}
	if len(pods.Items) > 0 {
		return fmt.Errorf("workflow pod %s/%s is left", pods.Items[0].Namespace, pods.Items[0].Name)
	}
	drivers := &storagev1.CSIDriverList{}
	if err := kube.List(ctx, drivers); err != nil {
		return err
	}
	if len(drivers.Items) != 1 {
		return fmt.Errorf("%d CSIDrivers, want that of /pav alone", len(drivers.Items))
	}
	return nil
}

// bucketsLeft objects to claims of buckets, their records and what was made for them: ObjectBuckets, Secrets and ConfigMaps of accesses,
// and the keys of attempts.
func bucketsLeft(ctx context.Context) error {
	credentials, accesses := client.InNamespace(pavv1.CredentialsNamespace), client.HasLabels{pavv1.AccessLabel}
	return errors.Join(
		noneIn(ctx, &obcv1.ObjectBucketClaimList{}), noneIn(ctx, &obcv1.ObjectBucketList{}),
		noneIn(ctx, &cosiv1.BucketClaimList{}), noneIn(ctx, &cosiv1.BucketAccessList{}), noneIn(ctx, &cosiv1.BucketList{}),
		noneIn(ctx, &pavv1.PavBucketList{}), noneIn(ctx, &pavv1.PavBucketAccessList{}),
		noneIn(ctx, &corev1.SecretList{}, credentials), noneIn(ctx, &corev1.SecretList{}, accesses), noneIn(ctx, &corev1.ConfigMapList{}, accesses),
	)
}

// noneIn objects to objects of a kind.
func noneIn(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := kube.List(ctx, list, options...); err != nil {
		return err
	}
	if n := meta.LenList(list); n > 0 {
		return fmt.Errorf("%d objects in a %T", n, list)
	}
	return nil
}

func leftOnNode(ctx context.Context, node string) error {
	mounts, err := onNode(ctx, node, "cat", "/proc/self/mountinfo")
	if err != nil {
		return err
	}
	for line := range strings.Lines(mounts) {
		fields := strings.Fields(line)
		if point := fields[4]; strings.HasPrefix(point, pavDir) || strings.Contains(point, "kubernetes.io~csi") || strings.Contains(point, "plugins/kubernetes.io/csi") {
			return fmt.Errorf("on %s, %s is still mounted", node, point)
		}
	}
	files, err := onNode(ctx, node, "find", kubeletDir+"/plugins", kubeletDir+"/plugins_registry", "-mindepth", "1")
	if err != nil {
		return err
	}
	for file := range strings.FieldsSeq(files) {
		if !expectedFile(file) {
			return fmt.Errorf("on %s, %s is left", node, file)
		}
	}
	return nil
}

// expectedFile reports whether a file below kubelet's plugin directories belongs there when no volume and
// no provisioner exists.
func expectedFile(file string) bool {
	switch file {
	case kubeletDir + "/plugins/kubernetes.io", kubeletCSI, pavDir, pavDir + "/csi", pavDir + "/pods", pavDir + "/stages":
		return true
	case socket(pavv1.Driver), registrationSocket(pavv1.Driver):
		return true
	}
	// Kubelet makes a directory for each driver, and never removes it.
	if path.Dir(file) == kubeletCSI {
		return true
	}
	// Kubelet also never removes the directories for all devices, and its record of a device whose staging was refused.
	below, ofDevice := strings.CutPrefix(file, kubeletCSI+"/volumeDevices/")
	name, rest, _ := strings.Cut(below, "/")
	if name == "publish" || name == "staging" {
		return rest == ""
	}
	return ofDevice && (rest == "" || rest == "data" || rest == "data/vol_data.json")
}
