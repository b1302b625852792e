package integration

import (
	"context"
	"fmt"
	"testing"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	contract "github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/workflow"
	"github.com/albertofaria/pav/test/agent"
	"github.com/albertofaria/pav/test/controlplane"
)

// grantKind is a definition of ReferenceGrants, and the rights that crossNamespaceSources.enabled of the chart adds.
const grantKind = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: referencegrants.gateway.networking.k8s.io
  annotations: {api-approved.kubernetes.io: "unapproved, for a test"}
spec:
  group: gateway.networking.k8s.io
  scope: Namespaced
  names: {kind: ReferenceGrant, listKind: ReferenceGrantList, plural: referencegrants, singular: referencegrant}
  versions:
    - {name: v1beta1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: cross-namespace-sources}
rules:
  - {apiGroups: [gateway.networking.k8s.io], resources: [referencegrants], verbs: [list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: cross-namespace-sources}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cross-namespace-sources}
subjects:
  - {apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:serviceaccounts:` + namespace + `"}
`

// apply creates the objects of a text in YAML, as soon as the API server knows their kinds, and deletes them after the test.
func apply(t *testing.T, c *cluster, text string) {
	t.Helper()
	objects, err := controlplane.Objects([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		t.Cleanup(func() {
			if err := client.IgnoreNotFound(c.Admin.Delete(lasting(t), object)); err != nil {
				t.Error(err)
			}
		})
		eventually(t, "the API server takes "+object.GetKind()+" "+object.GetName(), func(ctx context.Context) (bool, string) {
			err := c.Admin.Create(ctx, object)
			return err == nil || apierrors.IsAlreadyExists(err), fmt.Sprint(err)
		})
	}
}

// grant returns a ReferenceGrant by which claims of a namespace may use one object of the namespace default.
func grant(from, group, kind, name string) string {
	return fmt.Sprintf(`
apiVersion: gateway.networking.k8s.io/v1beta1
kind: ReferenceGrant
metadata: {namespace: default, name: %s}
spec:
  from: [{group: "", kind: PersistentVolumeClaim, namespace: %s}]
  to: [{group: %q, kind: %s, name: %s}]
`, name, from, group, kind, name)
}

// revoke deletes a ReferenceGrant.
func revoke(t *testing.T, c *cluster, name string) {
	t.Helper()
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("gateway.networking.k8s.io/v1beta1")
	object.SetKind("ReferenceGrant")
	object.SetNamespace("default")
	object.SetName(name)
	mustDelete(t, c, object)
	gone(t, c, object)
}

// A claim waits until the owner of the source's namespace lets its own namespace use the source, and goes on by itself.
func TestSource_OfAnotherNamespace(t *testing.T) {
	c := start(t)
	apply(t, c, grantKind)
	o := agent.Options(namespace)
	o.CrossNamespaceSources = true
	a := agent.Launch(t, c.agent, o, &agent.Line{})
	t.Cleanup(func() { a.Stop(t); checkNothingLeft(t, c) })
	borrower := mustCreate(t, c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "borrower-"}}).Name
	source, pv, _ := copyingVolume(t, c, "lent")
	s := readySnapshot(t, c, pv, "lent")

	restored, clone := fromSnapshot("lent", "restored", "monday"), fromClaim("lent", "clone", source.Name)
	for _, claim := range []*corev1.PersistentVolumeClaim{restored, clone} {
		claim.Namespace, claim.Spec.DataSourceRef.Namespace = borrower, new("default")
		mustCreate(t, c, claim)
		if claim.Spec.DataSourceRef.Namespace == nil {
			t.Fatal("the API server has dropped the namespace of the source")
		}
		wantEvent(t, c, claim, "Warning", "ProvisioningFailed", `no ReferenceGrant in namespace "default" lets claims of namespace "`+borrower+`" use the source`)
	}
	apply(t, c, grant(borrower, "snapshot.storage.k8s.io", "VolumeSnapshot", "monday"))
	end(t, c, creationOf(t, c, restored, `VolumeSnapshot default/monday cut-monday 1073741824 {"tier": "cold"} []`), workflow.Result{}, 0)
	made, _ := bound(t, c, restored)
	noVolume(t, c, clone)
	revoke(t, c, "monday")
	deleteVolume(t, c, restored, made) // It was created while it might use the snapshot.

	apply(t, c, grant(borrower, "", "PersistentVolumeClaim", source.Name))
	end(t, c, creationOf(t, c, clone, "PersistentVolumeClaim default/data "+pv.Name+` 1073741824 {"pool": "gold"} []`), workflow.Result{}, 0)
	made, _ = bound(t, c, clone)
	revoke(t, c, source.Name)
	late := fromClaim("lent", "late", source.Name)
	late.Namespace, late.Spec.DataSourceRef.Namespace = borrower, new("default")
	mustCreate(t, c, late)
	wantEvent(t, c, late, "Warning", "ProvisioningFailed", "no ReferenceGrant")
	noVolume(t, c, late)
	mustDelete(t, c, late)

	deleteVolume(t, c, clone, made)
	deleteSnapshot(t, c, s, 2)
	deleteVolume(t, c, source, pv)
}

// An administrator lets a snapshot of a file system be restored as a device: the claim that waits for it goes on.
func TestSource_WithAnotherVolumeMode(t *testing.T) {
	c := start(t)
	run(t, c)
	source, pv, _ := copyingVolume(t, c, "as-device", func(p *pavv1.PavProvisioner, _ *storagev1.StorageClass) {
		p.Spec.VolumeValidation = &pavv1.VolumeValidation{VolumeModes: field(`["Filesystem", "Block"]`)}
	})
	s := readySnapshot(t, c, pv, "as-device")
	mustPatch(t, c, s.content, func(content *snapshotv1.VolumeSnapshotContent) {
		content.Spec.SourceVolumeMode = new(corev1.PersistentVolumeFilesystem)
	})
	device := fromSnapshot("as-device", "device", "monday")
	device.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
	mustCreate(t, c, device)
	wantEvent(t, c, device, "Warning", "ProvisioningFailed", "has the volume mode Filesystem, and the claim requests Block")
	mustPatch(t, c, s.content, func(content *snapshotv1.VolumeSnapshotContent) {
		metav1.SetMetaDataAnnotation(&content.ObjectMeta, contract.AllowVolumeModeChange, "true")
	})
	end(t, c, creationOf(t, c, device, `VolumeSnapshot default/monday cut-monday 1073741824 {"tier": "cold"} []`), workflow.Result{}, 0)
	made, _ := bound(t, c, device)
	deleteVolume(t, c, device, made)
	deleteSnapshot(t, c, s, 2)
	deleteVolume(t, c, source, pv)
}
