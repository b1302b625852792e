package integration

import (
	"testing"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/albertofaria/pav/internal/admission"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// Words of upstream's, which the policy has, too.
const (
	beingCreated   = "snapshot.storage.kubernetes.io/volumesnapshot-being-created"
	boundFinalizer = "snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection"
)

// snapshotContent creates a VolumeSnapshotContent, with two finalizers and an annotation.
func snapshotContent(t *testing.T, c *cluster, name string, annotations map[string]string) *snapshotv1.VolumeSnapshotContent {
	t.Helper()
	content := &snapshotv1.VolumeSnapshotContent{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations, Finalizers: []string{boundFinalizer, "example.org/other"}},
		Spec: snapshotv1.VolumeSnapshotContentSpec{
			DeletionPolicy: snapshotv1.VolumeSnapshotContentRetain, Driver: "policed", Source: snapshotv1.VolumeSnapshotContentSource{VolumeHandle: new("h")},
		},
	}
	content.Spec.VolumeSnapshotRef.Namespace, content.Spec.VolumeSnapshotRef.Name = "default", "s"
	mustCreate(t, c, content)
	t.Cleanup(func() { removeHeld(t, c, content, `{"metadata": {"finalizers": null}}`) })
	return content
}

// removeHeld deletes an object, which a patch makes possible.
func removeHeld(t *testing.T, c *cluster, object client.Object, patch string) {
	t.Helper()
	if err := patching(object, patch)(lasting(t), c.Admin); client.IgnoreNotFound(err) != nil {
		t.Error(err)
	}
	mustDeleteLasting(t, c, object)
}

func TestControllerToken_WritesTheStateOfSnapshotsOnly(t *testing.T) {
	c := start(t)
	const annotation, finalizer, group = "may add and remove the annotation", "of the finalizers of a VolumeSnapshotContent", "which group of snapshots"
	content := snapshotContent(t, c, "policed", map[string]string{"a": "b"})
	underWay := snapshotContent(t, c, "policed-creating", map[string]string{beingCreated: "yes"})
	deleted := snapshotContent(t, c, "policed-deleted", nil)
	mustDelete(t, c, deleted)
	annotations := func(text string) string { return `{"metadata": {"annotations": ` + text + `}}` }
	another := content.DeepCopy()
	another.Name = "policed-other"
	try(t, stolenController(t, c), []attempt{
		{"it says that the snapshot is being created", patching(content, annotations(`{"`+beingCreated+`": "yes"}`)), ""},
		{"it says that it is not any more", patching(underWay, annotations("null")), ""},
		{"it says something else of that", patching(underWay, annotations(`{"`+beingCreated+`": "no"}`)), annotation},
		{"it adds another annotation", patching(content, annotations(`{"snapshot.storage.kubernetes.io/volumesnapshot-being-deleted": "yes"}`)), annotation},
		{"it changes another annotation", patching(content, annotations(`{"a": "c"}`)), annotation},
		{"it removes another annotation", patching(content, annotations("null")), annotation},
		{"it adds a label", patching(content, relabel), annotation},
		{"it gives it an owner", patching(content, adopted), annotation},
		{"it has the snapshot deleted", patching(content, `{"spec": {"deletionPolicy": "Delete"}}`), annotation},
		{"it gives it to another VolumeSnapshot", patching(content, `{"spec": {"volumeSnapshotRef": {"name": "other"}}}`), annotation},
		{"it takes the driver's finalizer", patching(content, `{"metadata": {"finalizers": ["example.org/other"]}}`), finalizer},
		{"it takes the driver's finalizer of one that is being deleted", patching(deleted, `{"metadata": {"finalizers": ["example.org/other"]}}`), ""},
		{"it takes all finalizers of one that is being deleted", patching(deleted, `{"metadata": {"finalizers": null}}`), finalizer},
		{"it adds a finalizer", patching(content, `[{"op": "add", "path": "/metadata/finalizers/-", "value": "example.org/mine"}]`), finalizer},
		{"it says what became of it", patching(content, `{"status": {"snapshotHandle": "s", "creationTime": 1, "readyToUse": true, "restoreSize": 1}}`, "status"), ""},
		{"it says why it failed", patching(content, `{"status": {"readyToUse": false, "error": {"message": "no"}}}`, "status"), ""},
		{"it puts it into a group", patching(content, `{"status": {"volumeGroupSnapshotHandle": "g"}}`, "status"), group},
		{"it makes one", creating(another), notInTheRole},
		{"it deletes one", deleting(content), notInTheRole},
	})
}

// snapshotRecord creates a PavSnapshot.
func snapshotRecord(t *testing.T, c *cluster, name, provisioner string, policy pavv1.SnapshotDeletionPolicy, finalizers ...string) *pavv1.PavSnapshot {
	t.Helper()
	record := mustCreate(t, c, &pavv1.PavSnapshot{
		ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: finalizers, Labels: map[string]string{pavv1.ProvisionerLabel: provisioner}},
		Spec: pavv1.PavSnapshotSpec{
			Provisioner: provisioner, DeletionPolicy: policy,
			ContentRef: pavv1.SnapshotContentReference{Name: "c", UID: "c"}, SnapshotRef: pavv1.SnapshotReference{Namespace: "default", Name: "s", UID: "s"},
			Objects: pavv1.SnapshotObjects{Snapshot: field(`{"metadata": {"namespace": "default"}}`)},
		},
	})
	t.Cleanup(func() {
		removeHeld(t, c, record, `{"metadata": {"finalizers": null}, "spec": {"deletionPolicy": "Retain"}}`)
	})
	return record
}

// A snapshot that was retained and is to be deleted has its finalizer again before anybody can delete its record.
func TestSnapshotsToBeDeleted_AreNotForgotten(t *testing.T) {
	c := start(t)
	kept := snapshotRecord(t, c, "snapshot-kept", "policed", pavv1.SnapshotPolicyRetain)
	wanted := snapshotRecord(t, c, "snapshot-wanted", "policed", pavv1.SnapshotPolicyDelete)
	held := snapshotRecord(t, c, "snapshot-held", "policed", pavv1.SnapshotPolicyDelete, pavv1.SnapshotFinalizer)
	try(t, c.Admin, []attempt{
		{"a retained one", deleting(kept), ""},
		{"one that waits for its finalizer", deleting(wanted), "has yet to put its finalizer back"},
		{"one with its finalizer", deleting(held), ""},
	})
	try(t, stolenController(t, c), []attempt{{"the controller agent has deleted the snapshot", deleting(wanted), ""}})
	try(t, nodeAgent(t, c, fakeNode), []attempt{
		{"a node agent deletes one", deleting(held), notInTheRole},
		{"a node agent changes one", patching(held, `{"metadata": {"finalizers": null}}`), notInTheRole},
		{"a node agent writes its status", patching(held, `{"status": {"handle": "other"}}`, "status"), notInTheRole},
	})
}

// With the controller agent's token, pods of snapshots have no rights on nodes that the definition does not plan for their workflow.
func TestControllerPods_OfSnapshots_HaveTheRightsThatTheDefinitionPlans(t *testing.T) {
	c := start(t)
	t.Cleanup(func() { checkNothingLeft(t, c) })
	record := snapshotRecord(t, c, "snapshot-judged", "snapshots", pavv1.SnapshotPolicyRetain)
	// Or else the agent deletes it, as nobody wants the snapshot.
	mustPatchStatus(t, c, record, func(r *pavv1.PavSnapshot) { r.Status.Phase, r.Status.RecordUID = pavv1.SnapshotRetained, r.UID })
	serveWebhook(t, c).launch(t, admission.DefaultLifetimes())
	provisioner := provisionerOf("snapshots")
	provisioner.Spec.SnapshotCreation = &pavv1.SnapshotCreation{PodTemplate: field(`{"spec": {"containers": [{"name": "main", "image": "none"}]}}`)}
	provisioner.Spec.SnapshotDeletion = &pavv1.SnapshotDeletion{PodTemplate: field(`{"spec": {"hostPID": true, "containers": [{"name": "main", "image": "none"}]}}`)}
	mustCreate(t, c, provisioner)
	t.Cleanup(func() { mustDeleteLasting(t, c, provisioner) })
	thief := stolenController(t, c)
	const notPlanned, processes = "does not plan", "the processes of the node"
	for name, change := range rights {
		t.Run(name, func(t *testing.T) {
			wantForbidden(t, thief, forge(record, pavv1.WorkflowSnapshotCreation, change), notPlanned)
		})
		if name != processes {
			t.Run("beyond what is planned: "+name, func(t *testing.T) {
				wantForbidden(t, thief, forge(record, pavv1.WorkflowSnapshotDeletion, change), notPlanned)
			})
		}
	}
	t.Run("what is planned", func(t *testing.T) {
		pod := forge(record, pavv1.WorkflowSnapshotDeletion, rights[processes])
		mustAdmit(t, thief, pod)
		removeNow(t, c, pod)
	})
	t.Run("a workflow of volumes", func(t *testing.T) {
		wantForbidden(t, thief, forge(record, pavv1.WorkflowDeletion, rights[processes]), notPlanned)
	})
	t.Run("of no snapshot", func(t *testing.T) {
		other := forge(record, pavv1.WorkflowSnapshotDeletion, rights[processes])
		other.OwnerReferences[0].UID = "another"
		wantForbidden(t, thief, other, "another one by now")
		other.OwnerReferences[0].Name = "snapshot-none"
		wantForbidden(t, thief, other, `PavSnapshot "snapshot-none" does not exist`)
	})
}
