package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// snapshotFinalizer is one of the snapshot-controller's: a VolumeSnapshot stays until its VolumeSnapshotContent is gone.
const snapshotFinalizer = "snapshot.storage.kubernetes.io/volumesnapshot-bound-protection"

// snapshottable gives a provisioner snapshot creation and deletion pods, which have an annotation of what they see.
func snapshottable(p *pavv1.PavProvisioner, _ *storagev1.StorageClass) {
	p.Spec.SnapshotCreation = &pavv1.SnapshotCreation{PodTemplate: field(`{
		"metadata": {"annotations": {"sees": "{{ handle == pv.spec.csi.volumeHandle }} {{ defaultSnapshotHandle == 'snapshot-' + snapshot.metadata.uid }} {{ snapshotHandle | default('none', true) }} {{ params.tier }} {{ pvc.metadata.name }} {{ snapshot.metadata.name }}"}},
		"spec": {"containers": [{"name": "main", "image": "none"}]}
	}`)}
	p.Spec.SnapshotDeletion = &pavv1.SnapshotDeletion{PodTemplate: field(`{
		"metadata": {"annotations": {"sees": "{{ snapshotHandle | default('none', true) }}"}},
		"spec": {"containers": [{"name": "main", "image": "none"}]}
	}`)}
}

// snapshotClass makes a VolumeSnapshotClass of a driver, which is gone when the test ends.
func snapshotClass(t *testing.T, c *cluster, driver, name string) {
	t.Helper()
	class := mustCreate(t, c, &snapshotv1.VolumeSnapshotClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Driver: driver, DeletionPolicy: snapshotv1.VolumeSnapshotContentDelete,
		Parameters: map[string]string{"tier": "cold"},
	})
	t.Cleanup(func() { mustDeleteLasting(t, c, class) })
}

// snappedVolume returns a volume of a provisioner with snapshots, for which there is a VolumeSnapshotClass; all of the same name.
func snappedVolume(t *testing.T, c *cluster, name string, changes ...func(*pavv1.PavProvisioner, *storagev1.StorageClass)) (*pavv1.PavProvisioner, *corev1.PersistentVolume, *pavv1.PavVolume) {
	t.Helper()
	provisioner := driver(t, c, name, append([]func(*pavv1.PavProvisioner, *storagev1.StorageClass){snapshottable}, changes...)...)
	snapshotClass(t, c, name, name)
	pv, volume := bound(t, c, mustCreate(t, c, ownedClaim(name, "me")))
	return provisioner, pv, volume
}

// snapshot is a VolumeSnapshot with its VolumeSnapshotContent, which the tests write as the snapshot-controller does, and its record.
type snapshot struct {
	c       *cluster
	object  *snapshotv1.VolumeSnapshot
	content *snapshotv1.VolumeSnapshotContent
	record  *pavv1.PavSnapshot
}

// requestSnapshot requests a snapshot of a volume. A change may change the VolumeSnapshotContent.
func requestSnapshot(t *testing.T, c *cluster, pv *corev1.PersistentVolume, class, name string, changes ...func(*snapshotv1.VolumeSnapshotContent)) *snapshot {
	t.Helper()
	s := &snapshot{c: c, object: mustCreate(t, c, &snapshotv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Finalizers: []string{snapshotFinalizer}},
		Spec: snapshotv1.VolumeSnapshotSpec{
			Source: snapshotv1.VolumeSnapshotSource{PersistentVolumeClaimName: &pv.Spec.ClaimRef.Name}, VolumeSnapshotClassName: &class,
		},
	})}
	s.record = &pavv1.PavSnapshot{ObjectMeta: metav1.ObjectMeta{Name: "snapshot-" + string(s.object.UID)}}
	s.content = &snapshotv1.VolumeSnapshotContent{
		ObjectMeta: metav1.ObjectMeta{Name: "snapcontent-" + string(s.object.UID), Finalizers: []string{boundFinalizer}},
		Spec: snapshotv1.VolumeSnapshotContentSpec{
			VolumeSnapshotRef:       corev1.ObjectReference{Kind: "VolumeSnapshot", Namespace: "default", Name: name, UID: s.object.UID},
			DeletionPolicy:          snapshotv1.VolumeSnapshotContentDelete,
			Driver:                  pv.Spec.CSI.Driver,
			VolumeSnapshotClassName: &class,
			Source:                  snapshotv1.VolumeSnapshotContentSource{VolumeHandle: &pv.Spec.CSI.VolumeHandle},
		},
	}
	for _, change := range changes {
		change(s.content)
	}
	mustCreate(t, c, s.content)
	t.Cleanup(func() { s.remove(t) })
	return s
}

// remove removes by force what a test that failed has left.
func (s *snapshot) remove(t *testing.T) {
	t.Helper()
	if !t.Failed() {
		return
	}
	const bare = `{"metadata": {"finalizers": null}}`
	removeHeld(t, s.c, s.content, bare)
	removeHeld(t, s.c, s.object, bare)
	_ = s.c.Admin.Delete(lasting(t), s.record)
	_ = patching(s.record, bare)(lasting(t), s.c.Admin)
}

// pod waits for the pod of a snapshot with a number, from 1, which is of a kind.
func (s *snapshot) pod(t *testing.T, kind string, number int32) *corev1.Pod {
	t.Helper()
	exists(t, s.c, s.record, fmt.Sprintf("has pod %d, a %s pod", number, kind), func(r *pavv1.PavSnapshot) bool {
		if r.Status.Pods > number {
			t.Fatalf("there are %d pods already, the last one of which is %+v", r.Status.Pods, r.Status.Pod)
		}
		return r.Status.Pods == number && r.Status.Pod != nil && r.Status.Pod.UID != ""
	})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.record.Status.Pod.Namespace, Name: s.record.Status.Pod.Name}}
	exists(t, s.c, pod, "exists", func(p *corev1.Pod) bool { return p.UID == s.record.Status.Pod.UID })
	if got := pod.Labels[pavv1.WorkflowLabel]; got != kind {
		t.Fatalf("pod %d is a %s pod, not a %s pod", number, got, kind)
	}
	return pod
}

// creation waits for a creation pod with a number, which sees a handle.
func (s *snapshot) creation(t *testing.T, number int32, handle string) *corev1.Pod {
	t.Helper()
	pod := s.pod(t, pavv1.WorkflowSnapshotCreation, number)
	if got, want := pod.Annotations["sees"], "True True "+handle+" cold data "+s.object.Name; got != want {
		t.Errorf("the creation pod sees %q, want %q", got, want)
	}
	return pod
}

// deletion waits for a deletion pod with a number, which sees a handle.
func (s *snapshot) deletion(t *testing.T, number int32, handle string) *corev1.Pod {
	t.Helper()
	pod := s.pod(t, pavv1.WorkflowSnapshotDeletion, number)
	if got := pod.Annotations["sees"]; got != handle {
		t.Errorf("the deletion pod sees %q, want %q", got, handle)
	}
	return pod
}

// says returns what a VolumeSnapshotContent says of its snapshot, besides the time.
func says(content *snapshotv1.VolumeSnapshotContent) string {
	var words []string
	if value, found := content.Annotations[beingCreated]; found {
		words = append(words, "creating: "+value)
	}
	if status := content.Status; status != nil {
		if status.SnapshotHandle != nil {
			words = append(words, *status.SnapshotHandle)
		}
		if status.RestoreSize != nil {
			words = append(words, fmt.Sprint(*status.RestoreSize))
		}
		if status.ReadyToUse != nil && *status.ReadyToUse {
			words = append(words, "ready")
		}
		if status.Error != nil {
			words = append(words, "failed: "+*status.Error.Message)
		}
	}
	return strings.Join(words, ", ")
}

// wantSays waits until the VolumeSnapshotContent begins with something; with a dot at the end, until that is all that it says.
func (s *snapshot) wantSays(t *testing.T, want string) {
	t.Helper()
	exists(t, s.c, s.content, "says "+want, func(content *snapshotv1.VolumeSnapshotContent) bool {
		return strings.HasPrefix(says(content)+".", want)
	})
}

// wantWaiting waits until the record says that there is no snapshot yet, for a reason.
func (s *snapshot) wantWaiting(t *testing.T, reason string) {
	t.Helper()
	exists(t, s.c, s.record, "waits: "+reason, func(r *pavv1.PavSnapshot) bool {
		found := meta.FindStatusCondition(r.Status.Conditions, pavv1.SnapshotCreated)
		return found != nil && found.Status == metav1.ConditionFalse && found.Reason == reason
	})
}

// wantReaders waits until these snapshots, and no others, read a volume.
func wantReaders(t *testing.T, c *cluster, volume *pavv1.PavVolume, readers ...pavv1.Reader) {
	t.Helper()
	exists(t, c, volume, fmt.Sprintf("has the readers %v", readers), func(v *pavv1.PavVolume) bool { return slices.Equal(v.Status.Readers, readers) })
}

func (s *snapshot) reader() pavv1.Reader {
	return pavv1.Reader{Kind: "PavSnapshot", Name: s.record.Name}
}

// delete deletes a snapshot: the snapshot-controller deletes the VolumeSnapshotContent.
func (s *snapshot) delete(t *testing.T) {
	t.Helper()
	mustDelete(t, s.c, s.object)
	mustDelete(t, s.c, s.content)
}

// wantGone waits until nothing is left of a snapshot that is being deleted.
func (s *snapshot) wantGone(t *testing.T) {
	t.Helper()
	gone(t, s.c, s.content)
	mustPatch(t, s.c, s.object, func(o *snapshotv1.VolumeSnapshot) { o.Finalizers = nil })
	gone(t, s.c, s.object)
	gone(t, s.c, s.record)
}

func TestSnapshot_Life(t *testing.T) {
	c := start(t)
	a := run(t, c)
	_, pv, volume := snappedVolume(t, c, "snapped")
	before := len(a.Line.Writes())
	s := requestSnapshot(t, c, pv, "snapped", "monday")
	creation := s.creation(t, 1, "none")
	s.wantSays(t, "creating: yes.")
	wantReaders(t, c, volume, s.reader())
	wantOrder(t, a.Line.Writes()[before:],
		"POST /apis/"+pavv1.GroupVersion.String()+"/pavsnapshots", "PATCH /apis/"+pavv1.GroupVersion.String()+"/pavvolumes/"+pv.Name+"/status",
		"PATCH /apis/snapshot.storage.k8s.io/v1/volumesnapshotcontents/"+s.content.Name, "POST /api/v1/namespaces/pav-pods/pods")
	end(t, c, creation, workflow.Result{SnapshotHandle: "cut", SnapshotSize: "3Mi"}, 0)

	s.wantSays(t, "cut, 3145728, ready.")
	wantReaders(t, c, volume)
	exists(t, c, s.record, "is ready", func(r *pavv1.PavSnapshot) bool { return r.Status.Phase == pavv1.SnapshotReady })
	if r := s.record; r.Status.Handle != "cut" || r.Status.Pod != nil || r.Status.Step != "" || r.Status.Failure != nil || !meta.IsStatusConditionTrue(r.Status.Conditions, pavv1.SnapshotCreated) {
		t.Errorf("the status of the record is %+v", r.Status)
	}
	if at := s.content.Status.CreationTime; at == nil || *at != s.record.Status.CreationTime.UnixNano() || s.record.Status.CreationTime.Before(&metav1.MicroTime{Time: creation.CreationTimestamp.Time}) {
		t.Errorf("the VolumeSnapshotContent was cut at %v, and the record says %s", at, s.record.Status.CreationTime)
	}
	wantSpec := pavv1.PavSnapshotSpec{
		Provisioner: "snapped", ContentRef: pavv1.SnapshotContentReference{Name: s.content.Name, UID: s.content.UID},
		SnapshotRef: pavv1.SnapshotReference{Namespace: "default", Name: "monday", UID: s.object.UID},
		VolumeName:  pv.Name, VolumeHandle: pv.Spec.CSI.VolumeHandle, ClaimUID: pv.Spec.ClaimRef.UID, DeletionPolicy: pavv1.SnapshotPolicyDelete, Objects: s.record.Spec.Objects,
	}
	if diff := cmp.Diff(wantSpec, s.record.Spec); diff != "" {
		t.Errorf("the record (-want +got):\n%s", diff)
	}
	noPodIsLeft(t, c)

	s.delete(t)
	deletion := s.deletion(t, 2, "cut")
	exists(t, c, s.content, "is kept", func(content *snapshotv1.VolumeSnapshotContent) bool { return len(content.Finalizers) == 1 })
	if got := says(s.content); got != "cut, 3145728, ready" {
		t.Errorf("while it is deleted, the VolumeSnapshotContent says %q", got)
	}
	end(t, c, deletion, workflow.Result{}, 0)
	s.wantGone(t)
	noPodIsLeft(t, c)
}

// wantOrder fails the test unless the first of each of these writes was made, in this order.
func wantOrder(t *testing.T, writes []string, order ...string) {
	t.Helper()
	last := -1
	for _, write := range order {
		i := slices.Index(writes, write)
		if i <= last {
			t.Errorf("%q is write %d, after write %d, of %q", write, i, last, writes)
		}
		last = i
	}
}
