package integration

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// copying gives a provisioner creation pods that copy their source, and have an annotation of what they see.
func copying(p *pavv1.PavProvisioner, _ *storagev1.StorageClass) {
	const sees = `"metadata": {"annotations": {"sees": "{% if source %}{{ source.kind }} {{ source.namespace }}/{{ source.name }} {{ source.handle }} {{ source.capacity }} {{ source.params | tojson }} {{ source.accessibleTopology | tojson }}{% else %}empty{% endif %}"}}`
	p.Spec.VolumeCreation = &pavv1.VolumeCreation{
		Capacity: field(`"{{ requestedMinCapacity }}"`), DataSources: []pavv1.DataSourceKind{pavv1.DataSourceSnapshot, pavv1.DataSourceClaim},
		PodTemplate: field(`{` + sees + `, "spec": {"containers": [{"name": "main", "image": "none"}]}}`),
	}
	p.Spec.VolumeDeletion = &pavv1.VolumeDeletion{PodTemplate: field(`{` + sees + `, "spec": {"containers": [{"name": "main", "image": "none"}]}}`)}
}

// copyingVolume returns a volume of such a provisioner with snapshots, which was created empty.
func copyingVolume(t *testing.T, c *cluster, name string, changes ...func(*pavv1.PavProvisioner, *storagev1.StorageClass)) (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume, *pavv1.PavVolume) {
	t.Helper()
	driver(t, c, name, append([]func(*pavv1.PavProvisioner, *storagev1.StorageClass){snapshottable, inPool, copying}, changes...)...)
	snapshotClass(t, c, name, name)
	claim := mustCreate(t, c, ownedClaim(name, "me"))
	end(t, c, creationOf(t, c, claim, "empty"), workflow.Result{}, 0)
	pv, volume := bound(t, c, claim)
	return claim, pv, volume
}

// creationOf waits for the creation pod of a claim's volume, and fails the test if it sees another source.
func creationOf(t *testing.T, c *cluster, claim *corev1.PersistentVolumeClaim, sees string) *corev1.Pod {
	t.Helper()
	pod, _ := podOf(t, c, claim, pavv1.WorkflowCreation)
	if got := pod.Annotations["sees"]; got != sees {
		t.Errorf("the creation pod sees %q, want %q", got, sees)
	}
	return pod
}

// deletionOf waits for the deletion pod of a claim's volume, ends it, and waits until nothing is left.
func deletionOf(t *testing.T, c *cluster, claim *corev1.PersistentVolumeClaim) {
	t.Helper()
	pod, volume := podOf(t, c, claim, pavv1.WorkflowDeletion)
	end(t, c, pod, workflow.Result{}, 0)
	gone(t, c, volume)
}

// fromSnapshot returns a claim that restores a VolumeSnapshot, and fromClaim one that clones another claim.
func fromSnapshot(class, name, snapshot string) *corev1.PersistentVolumeClaim {
	claim := claimOf(class, name)
	claim.Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: new(snapshotv1.GroupName), Kind: "VolumeSnapshot", Name: snapshot}
	return claim
}

func fromClaim(class, name, source string) *corev1.PersistentVolumeClaim {
	claim := claimOf(class, name)
	claim.Spec.DataSourceRef = &corev1.TypedObjectReference{Kind: "PersistentVolumeClaim", Name: source}
	return claim
}

// bind writes what the snapshot-controller does when a VolumeSnapshot can be used.
func (s *snapshot) bind(t *testing.T, ready bool) {
	t.Helper()
	mustPatchStatus(t, s.c, s.object, func(o *snapshotv1.VolumeSnapshot) {
		o.Status = &snapshotv1.VolumeSnapshotStatus{BoundVolumeSnapshotContentName: &s.content.Name, ReadyToUse: &ready}
	})
}

// readySnapshot returns the snapshot "monday" of a volume, with the handle "cut-monday", that can be used.
func readySnapshot(t *testing.T, c *cluster, pv *corev1.PersistentVolume, class string) *snapshot {
	t.Helper()
	s := requestSnapshot(t, c, pv, class, "monday")
	end(t, c, s.creation(t, 1, "none"), workflow.Result{SnapshotHandle: "cut-monday"}, 0)
	s.wantSays(t, "cut-monday, 1073741824, ready.")
	s.bind(t, true)
	return s
}

// deleteSnapshot deletes a snapshot, ends its deletion pod, and waits until nothing is left of it.
func deleteSnapshot(t *testing.T, c *cluster, s *snapshot, number int32) {
	t.Helper()
	s.delete(t)
	end(t, c, s.deletion(t, number, "cut-"+s.object.Name), workflow.Result{}, 0)
	s.wantGone(t)
}

// A claim waits for its snapshot, is told for what, and goes on by itself. The tenant may delete the snapshot then: its storage is kept
// until the volume is created, and no longer.
func TestSource_Snapshot(t *testing.T) {
	c := start(t)
	run(t, c)
	claim, pv, _ := copyingVolume(t, c, "restored")
	early := mustCreate(t, c, fromSnapshot("restored", "early", "monday"))
	wantEvent(t, c, early, "Warning", "ProvisioningFailed", `spec.dataSourceRef: VolumeSnapshot "default/monday" does not exist`)
	s := requestSnapshot(t, c, pv, "restored", "monday")
	cutting := s.creation(t, 1, "none")
	s.bind(t, false)
	wantEvent(t, c, early, "Warning", "ProvisioningFailed", `spec.dataSourceRef: VolumeSnapshot "default/monday" is not ready to use yet`)
	end(t, c, cutting, workflow.Result{SnapshotHandle: "cut"}, 0)
	s.wantSays(t, "cut, 1073741824, ready.")
	s.bind(t, true)

	const sees = "VolumeSnapshot default/monday cut 1073741824 {\"tier\": \"cold\"} []"
	creation := creationOf(t, c, early, sees)
	volume := volumeOf(early)
	exists(t, c, volume, "has its source", func(v *pavv1.PavVolume) bool { return v.Spec.Source != nil })
	want := &pavv1.DataSource{
		Kind: "VolumeSnapshot", Namespace: "default", Name: "monday", UID: s.object.UID, SnapshotName: s.record.Name, Handle: "cut",
		Capacity: new(resource.MustParse("1Gi")), Parameters: map[string]string{"tier": "cold"},
	}
	if diff := cmp.Diff(want, volume.Spec.Source); diff != "" {
		t.Errorf("the source (-want +got):\n%s", diff)
	}
	s.delete(t)
	exists(t, c, s.record, "waits for the volume", func(r *pavv1.PavSnapshot) bool {
		return slices.Equal(r.Status.Readers, []pavv1.Reader{{Kind: "PavVolume", Name: volume.Name}}) && slices.ContainsFunc(r.Status.Conditions, func(c metav1.Condition) bool {
			return c.Type == pavv1.SnapshotDeleted && c.Reason == "SourceOfVolumes"
		})
	})
	late := mustCreate(t, c, fromSnapshot("restored", "late", "monday"))
	wantEvent(t, c, late, "Warning", "ProvisioningFailed", `spec.dataSourceRef: VolumeSnapshot "default/monday" is being deleted`)
	if s.record.Status.Pod != nil {
		t.Errorf("the pod %+v is recorded while a volume is created from the snapshot", s.record.Status.Pod)
	}
	end(t, c, creation, workflow.Result{}, 0)
	bound(t, c, early)
	end(t, c, s.deletion(t, 2, "cut"), workflow.Result{}, 0)
	s.wantGone(t)
	wantEvent(t, c, late, "Warning", "ProvisioningFailed", `spec.dataSourceRef: VolumeSnapshot "default/monday" does not exist`)
	mustDelete(t, c, late)

	mustDelete(t, c, early)
	deletion, _ := podOf(t, c, early, pavv1.WorkflowDeletion)
	if got := deletion.Annotations["sees"]; got != sees {
		t.Errorf("the deletion pod sees %q, want %q", got, sees)
	}
	deletionOf(t, c, early)
	deleteVolume(t, c, claim, pv)
}

// A clone keeps its source from changing while it is read, and only then; the tenant may delete the source meanwhile.
func TestSource_Claim(t *testing.T) {
	c := start(t)
	a := run(t, c)
	source, pv, volume := copyingVolume(t, c, "cloned", func(p *pavv1.PavProvisioner, s *storagev1.StorageClass) {
		growable(p, s)
		copying(p, s)
	})
	before := len(a.Line.Writes())
	clone := mustCreate(t, c, fromClaim("cloned", "clone", source.Name))
	creation := creationOf(t, c, clone, "PersistentVolumeClaim default/data "+pv.Name+" 1073741824 {\"pool\": \"gold\"} []")
	reader := pavv1.Reader{Kind: "PavVolume", Name: volumeOf(clone).Name}
	wantReaders(t, c, volume, reader)
	wantOrder(t, a.Line.Writes()[before:],
		"POST /apis/"+pavv1.GroupVersion.String()+"/pavvolumes", "PATCH /apis/"+pavv1.GroupVersion.String()+"/pavvolumes/"+pv.Name+"/status",
		"PATCH /apis/"+pavv1.GroupVersion.String()+"/pavvolumes/"+volumeOf(clone).Name+"/status", "POST /api/v1/namespaces/pav-pods/pods")
	mustPatch(t, c, source, requests("2Gi"))
	volumeWaits(t, c, volume, pavv1.VolumeExpanded, pavv1.ReasonBeingRead)

	// The first attempt fails. While it is reverted, the source grows; the claim is told, as it requests too little now.
	end(t, c, creation, workflow.Result{}, 3)
	expansion, _ := podOf(t, c, source, pavv1.WorkflowExpansion)
	wantReaders(t, c, volume)
	revert, _ := podOf(t, c, clone, pavv1.WorkflowDeletion)
	end(t, c, revert, workflow.Result{}, 0)
	end(t, c, expansion, workflow.Result{}, 0)
	wantSize(t, c, source, "2Gi")
	wantEvent(t, c, clone, "Warning", "ProvisioningFailed", `spec.dataSourceRef: PersistentVolumeClaim "default/data" has grown to 2Gi, and the claim requests 1Gi: create the claim again, with a request of at least as much`)
	mustDelete(t, c, clone)
	gone(t, c, clone)
	gone(t, c, volumeOf(clone))
	small := mustCreate(t, c, fromClaim("cloned", "small", source.Name))
	wantEvent(t, c, small, "Warning", "ProvisioningFailed", `spec.dataSourceRef: PersistentVolumeClaim "default/data" has a capacity of 2Gi, and the claim requests 1Gi: request at least as much`)
	mustDelete(t, c, small)
	gone(t, c, small)

	// The source is deleted while it is read.
	clone = fromClaim("cloned", "clone", source.Name)
	requests("2Gi")(clone)
	mustCreate(t, c, clone)
	creation = creationOf(t, c, clone, "PersistentVolumeClaim default/data "+pv.Name+" 2147483648 {\"pool\": \"gold\"} []")
	mustDelete(t, c, source)
	gone(t, c, source)
	volumeWaits(t, c, volume, pavv1.VolumeDeleted, "SourceOfVolumes")
	wantEvent(t, c, pv, "Normal", "VolumeDeletionWaiting", "such as PavVolume \""+volumeOf(clone).Name+"\"")
	end(t, c, creation, workflow.Result{}, 0)
	clonePV, cloneVolume := bound(t, c, clone)
	deleteVolume(t, c, source, pv)
	wantReaders(t, c, cloneVolume)
	deleteVolume(t, c, clone, clonePV)
}

// A source whose pods change it is not read, and one that is staged as the definition says.
func TestSource_ClaimThatIsStaged(t *testing.T) {
	c := start(t)
	a := run(t, c)
	nodeIn(t, c, fakeNode, "none")
	var provisioner *pavv1.PavProvisioner
	source, pv, volume := copyingVolume(t, c, "staged-source", func(p *pavv1.PavProvisioner, _ *storagev1.StorageClass) {
		provisioner, p.Spec.SnapshotCreation.WhileStaged = p, pavv1.SnapshotWait
	})
	stage := createStaged(t, c, stageOf(pv, "stage-source", fakeNode))
	clone := mustCreate(t, c, fromClaim("staged-source", "clone", source.Name))
	volumeWaits(t, c, volumeOf(clone), pavv1.VolumeProvisioned, "StillStaged")
	wantEvent(t, c, clone, "Normal", "Provisioning", "to be unstaged on node "+fakeNode)
	wantReaders(t, c, volume)
	removeStage(t, c, stage)
	creation := creationOf(t, c, clone, "PersistentVolumeClaim default/data "+pv.Name+" 1073741824 {\"pool\": \"gold\"} []")
	wantReaders(t, c, volume, pavv1.Reader{Kind: "PavVolume", Name: volumeOf(clone).Name, Unstaged: true})
	end(t, c, creation, workflow.Result{}, 0)
	clonePV, _ := bound(t, c, clone)
	wantReaders(t, c, volume)
	deleteVolume(t, c, clone, clonePV)

	mustPatch(t, c, provisioner, func(p *pavv1.PavProvisioner) { p.Spec.SnapshotCreation.WhileStaged = pavv1.SnapshotSync })
	stage = createStaged(t, c, stageOf(pv, "stage-source", fakeNode))
	made := podsMade(a)
	clone = mustCreate(t, c, fromClaim("staged-source", "clone", source.Name))
	exists(t, c, stage, "is to be written back", func(stage *pavv1.PavStage) bool { return stage.Annotations[pavv1.SyncAnnotation] != "" })
	exists(t, c, volumeOf(clone), "waits for that", func(v *pavv1.PavVolume) bool {
		stage.Status.SyncedTime = v.Status.SyncRequestTime
		return v.Status.SyncRequestTime != nil && v.Status.Pod != nil && v.Status.Pod.UID == ""
	})
	if n := podsMade(a); n != made {
		t.Errorf("%d pods were made before the node has answered", n-made)
	}
	if err := nodeAgent(t, c, fakeNode).Status().Update(t.Context(), stage); err != nil {
		t.Fatal(err)
	}
	end(t, c, creationOf(t, c, clone, "PersistentVolumeClaim default/data "+pv.Name+" 1073741824 {\"pool\": \"gold\"} []"), workflow.Result{}, 0)
	clonePV, _ = bound(t, c, clone)
	removeStage(t, c, stage)
	deleteVolume(t, c, clone, clonePV)
	deleteVolume(t, c, source, pv)
}

// The volume is made where its source is, whatever node the scheduler has selected, and the PersistentVolume says so.
func TestSource_OnAnotherNode(t *testing.T) {
	c := start(t)
	run(t, c)
	driver(t, c, "local-source", snapshottable, inPool, copying, func(p *pavv1.PavProvisioner, s *storagev1.StorageClass) {
		p.Spec.VolumeCreation.AccessibleTopology = field(`"{% set yaml = true %}[{zone: {{ selectedNode.metadata.labels.zone }}}]"`)
		s.VolumeBindingMode = new(storagev1.VolumeBindingWaitForFirstConsumer)
	})
	snapshotClass(t, c, "local-source", "local-source")
	for name, zone := range map[string]string{"source-a1": "a", "source-a2": "a", "source-b": "b"} {
		nodeIn(t, c, name, zone)
		mustPatchStatus(t, c, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		})
	}
	mustPatch(t, c, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "source-a1"}}, func(n *corev1.Node) { n.Spec.Unschedulable = true })
	source := mustCreate(t, c, claimOf("local-source", "data"))
	selectNode(t, c, source, "source-a1")
	end(t, c, creationOf(t, c, source, "empty"), workflow.Result{}, 0)
	pv, _ := bound(t, c, source)
	s := readySnapshot(t, c, pv, "local-source")

	for _, claim := range []*corev1.PersistentVolumeClaim{fromSnapshot("local-source", "restored", "monday"), fromClaim("local-source", "clone", source.Name)} {
		mustCreate(t, c, claim)
		selectNode(t, c, claim, "source-b")
		creation, volume := podOf(t, c, claim, pavv1.WorkflowCreation)
		if within := creation.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution; volume.Status.SelectedNode != "source-a2" ||
			!slices.ContainsFunc(within.NodeSelectorTerms[0].MatchExpressions, func(e corev1.NodeSelectorRequirement) bool {
				return e.Key == "zone" && slices.Equal(e.Values, []string{"a"})
			}) {
			t.Errorf("the volume is created for node %q, its pod may run on %+v", volume.Status.SelectedNode, within)
		}
		end(t, c, creation, workflow.Result{}, 0)
		made, _ := bound(t, c, claim)
		wantZones(t, made, "a")
		deleteVolume(t, c, claim, made)
	}
	deleteSnapshot(t, c, s, 2)
	deleteVolume(t, c, source, pv)
}

// Volumes that cannot exist without their source keep its storage.
func TestSource_ThatVolumesDependOn_GoesLast(t *testing.T) {
	c := start(t)
	run(t, c)
	source, pv, volume := copyingVolume(t, c, "needed-source", func(p *pavv1.PavProvisioner, _ *storagev1.StorageClass) { p.Spec.VolumeCreation.DependsOnSource = true })
	s := readySnapshot(t, c, pv, "needed-source")
	restored, clone := mustCreate(t, c, fromSnapshot("needed-source", "restored", "monday")), mustCreate(t, c, fromClaim("needed-source", "clone", source.Name))
	for _, claim := range []*corev1.PersistentVolumeClaim{restored, clone} {
		pod, _ := podOf(t, c, claim, pavv1.WorkflowCreation)
		end(t, c, pod, workflow.Result{}, 0)
		bound(t, c, claim)
	}
	s.delete(t)
	mustDelete(t, c, source)
	gone(t, c, source)
	volumeWaits(t, c, volume, pavv1.VolumeDeleted, "SourceOfVolumes")
	exists(t, c, s.record, "waits for the volume", func(r *pavv1.PavSnapshot) bool {
		return slices.ContainsFunc(r.Status.Conditions, func(c metav1.Condition) bool { return c.Reason == "SourceOfVolumes" })
	})
	mustDelete(t, c, restored)
	deletionOf(t, c, restored)
	end(t, c, s.deletion(t, 2, "cut-monday"), workflow.Result{}, 0)
	s.wantGone(t)
	mustDelete(t, c, clone)
	deletionOf(t, c, clone)
	deletionOf(t, c, source)
	gone(t, c, pv)
	noPodIsLeft(t, c)
}
