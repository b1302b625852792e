package snapshot

import (
	"encoding/json"
	"testing"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan"
)

// A snapshot is one of the claim that its VolumeSnapshot names, also if the volume is given to another claim before it is recorded.
func TestClaimOf(t *testing.T) {
	named := &snapshotv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{UID: "u-snapshot"}, Spec: snapshotv1.VolumeSnapshotSpec{Source: snapshotv1.VolumeSnapshotSource{PersistentVolumeClaimName: new("data")}},
	}
	later := named.DeepCopy()
	later.UID, later.Spec.Source.PersistentVolumeClaimName = "u-later", new("other")
	for name, test := range map[string]struct {
		bound    *corev1.ObjectReference
		snapshot *snapshotv1.VolumeSnapshot
		refused  bool
	}{
		"bound to the claim":                {bound: &corev1.ObjectReference{Namespace: "default", Name: "data", UID: "u"}, snapshot: named},
		"bound to another claim":            {bound: &corev1.ObjectReference{Namespace: "default", Name: "other", UID: "u"}, snapshot: named, refused: true},
		"bound to another tenant's claim":   {bound: &corev1.ObjectReference{Namespace: "foreign", Name: "data", UID: "u"}, snapshot: named, refused: true},
		"another tenant's, snapshot gone":   {bound: &corev1.ObjectReference{Namespace: "foreign", Name: "data", UID: "u"}, refused: true},
		"the VolumeSnapshot is a later one": {bound: &corev1.ObjectReference{Namespace: "default", Name: "data", UID: "u"}, snapshot: later},
		"not bound":                         {snapshot: named, refused: true},
		"to be bound":                       {bound: &corev1.ObjectReference{Namespace: "default", Name: "data"}, snapshot: named, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			record := &pavv1.PavSnapshot{Spec: pavv1.PavSnapshotSpec{SnapshotRef: pavv1.SnapshotReference{Namespace: "default", Name: "s", UID: "u-snapshot"}}}
			record.Spec.Objects.PersistentVolume = encoded(t, &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{ClaimRef: test.bound}})
			if test.snapshot != nil {
				record.Spec.Objects.Snapshot = encoded(t, test.snapshot)
			}
			named, err := claimNamed(record)
			if err != nil {
				t.Fatal(err)
			}
			claim, err := claimOf(record, named)
			if podplan.IsRefusal(err) != test.refused || !test.refused && (err != nil || claim.UID != "u") {
				t.Errorf("got %v, %v", claim, err)
			}
		})
	}
}

// Of several PersistentVolumes of one handle, the snapshot is of the one that is bound to its claim.
func TestVolumeOf(t *testing.T) {
	pv := func(name, claim string, phase corev1.PersistentVolumePhase) *corev1.PersistentVolume {
		return &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{ClaimRef: &corev1.ObjectReference{Namespace: "default", Name: claim}},
			Status: corev1.PersistentVolumeStatus{Phase: phase},
		}
	}
	released, bound, other := pv("released", "data", corev1.VolumeReleased), pv("bound", "data", corev1.VolumeBound), pv("other", "other", corev1.VolumeBound)
	unbound := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "unbound"}}
	for name, test := range map[string]struct {
		volumes []*corev1.PersistentVolume
		want    string
	}{
		"one is another claim's": {[]*corev1.PersistentVolume{other, bound}, "bound"},
		"one is released":        {[]*corev1.PersistentVolume{released, bound, unbound}, "bound"},
		"only one is released":   {[]*corev1.PersistentVolume{other, released}, "released"},
		"none is the claim's":    {[]*corev1.PersistentVolume{unbound}, "unbound"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := volumeOf(test.volumes, "default", "data"); got.Name != test.want {
				t.Errorf("got %s, want %s", got.Name, test.want)
			}
		})
	}
	if got := volumeOf(nil, "default", "data"); got != nil {
		t.Errorf("got %s", got.Name)
	}
}

func encoded(t *testing.T, object any) *apiextensionsv1.JSON {
	t.Helper()
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return &apiextensionsv1.JSON{Raw: raw}
}
