package controller

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/workflow"
)

// A map that is written must be one that no other object has: what is written to one is seen in what shares it.
func TestShare_GivesEqualValuesOnce_AndOthersAsTheyAre(t *testing.T) {
	written := func(s *sharing, first, second map[string]string) bool {
		a, b := share(s, first), share(s, second)
		if diff := cmp.Diff(first, a); diff != "" {
			t.Errorf("the first: -want +got:\n%s", diff)
		}
		if diff := cmp.Diff(second, b); diff != "" {
			t.Errorf("the second: -want +got:\n%s", diff)
		}
		a["written"] = "x"
		_, found := b["written"]
		return found
	}
	tests := []struct {
		name          string
		first, second map[string]string
		want          bool
	}{
		{"equal", map[string]string{"a": "b"}, map[string]string{"a": "b"}, true},
		{"another value", map[string]string{"a": "b"}, map[string]string{"a": "c"}, false},
		{"another key", map[string]string{"a": "b"}, map[string]string{"c": "b"}, false},
		{"one more", map[string]string{"a": "b"}, map[string]string{"a": "b", "c": "d"}, false},
		{"bytes that are no text", map[string]string{"a": "\xff"}, map[string]string{"a": "\xfe"}, false},
		{"bytes that are no text, and a text", map[string]string{"a": "\xff"}, map[string]string{"a": "\ufffd"}, false},
		{"too large", map[string]string{"a": strings.Repeat("b", 100)}, map[string]string{"a": strings.Repeat("b", 100)}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := written(newSharing(10, 100), test.first, test.second); got != test.want {
				t.Errorf("shared: got %t, want %t", got, test.want)
			}
		})
	}
}

func TestShare_TypesWithTheSameJSONAreApart(t *testing.T) {
	s := newSharing(10, 100)
	if got := share(s, "Bound"); got != "Bound" {
		t.Errorf("got %q", got)
	}
	if got := share(s, corev1.ClaimBound); got != corev1.ClaimBound {
		t.Errorf("got %q", got)
	}
	if got := share(s, corev1.VolumeBound); got != corev1.VolumeBound {
		t.Errorf("got %q", got)
	}
}

func TestShare_RemembersTheNewestValues(t *testing.T) {
	s := newSharing(10, 100)
	for i := range 100 {
		share(s, []string{fmt.Sprint(i)})
	}
	if s.known.Len() != 10 {
		t.Errorf("%d values are remembered, want 10", s.known.Len())
	}
}

func TestTrim_ClaimsShareAllButTheirIdentity(t *testing.T) {
	s := newSharing(sharedValues, largestShared)
	claim := func(name, volume string) *corev1.PersistentVolumeClaim {
		c := &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "tenant", Name: name, Labels: map[string]string{"a": "b"},
				Annotations: map[string]string{corev1.BetaStorageClassAnnotation: "fast", "other": name},
			},
			Spec: corev1.PersistentVolumeClaimSpec{
				VolumeName: volume, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
			},
			Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}},
		}
		s.trimClaim(c)
		return c
	}
	first, second := claim("first", "pv-1"), claim("second", "")
	want := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "first", Annotations: map[string]string{corev1.BetaStorageClassAnnotation: "fast"}},
		Spec: corev1.PersistentVolumeClaimSpec{
			VolumeName: "pv-1", AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
	}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if second.Name != "second" || second.Spec.VolumeName != "" {
		t.Errorf("the second is %q of %q", second.Name, second.Spec.VolumeName)
	}
	if &first.Spec.AccessModes[0] != &second.Spec.AccessModes[0] {
		t.Error("claims with the same request do not share it")
	}
}

func TestTrim_CSINodesShareTheirListsOfDrivers(t *testing.T) {
	s := newSharing(sharedLists, largestList)
	node := func(name string, drivers ...string) *storagev1.CSINode {
		n := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "u", ResourceVersion: "7", Labels: map[string]string{"a": "b"}}}
		for _, driver := range drivers {
			n.Spec.Drivers = append(n.Spec.Drivers, storagev1.CSINodeDriver{Name: driver, NodeID: name, TopologyKeys: []string{"zone"}})
		}
		s.trimCSINode(n)
		return n
	}
	first, same, other, none := node("a", "x", "y"), node("b", "y", "x"), node("c", "x"), node("d")
	want := &storagev1.CSINode{
		ObjectMeta: metav1.ObjectMeta{Name: "b", UID: "u", ResourceVersion: "7"},
		Spec:       storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: "x"}, {Name: "y"}}},
	}
	if diff := cmp.Diff(want, same); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if &first.Spec.Drivers[0] != &same.Spec.Drivers[0] {
		t.Error("the same drivers have two lists")
	}
	if len(other.Spec.Drivers) != 1 || len(none.Spec.Drivers) != 0 {
		t.Errorf("other drivers: got %v and %v", other.Spec.Drivers, none.Spec.Drivers)
	}
}

// Events are recorded on the claim of a PersistentVolume, and shown for the kind that they name.
func TestTrim_PersistentVolumesKeepWhatTheyAreOf(t *testing.T) {
	ref := corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: "tenant", Name: "claim", UID: "u", ResourceVersion: "7"}
	pv := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{
		ClaimRef: &ref, MountOptions: []string{"ro"}, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
			Driver: "driver", VolumeHandle: "handle", VolumeAttributes: map[string]string{"a": "b"},
		}},
	}}
	newSharing(sharedValues, largestShared).trimPV(pv)
	ref.ResourceVersion = ""
	want := corev1.PersistentVolumeSpec{
		ClaimRef: &ref, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "driver", VolumeHandle: "handle"}},
	}
	if diff := cmp.Diff(want, pv.Spec); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// The label reconciler and its index take these labels from the cache.
func TestTrim_PersistentVolumesShareTheirLabels_IfTheyAreAsTheyShouldBe(t *testing.T) {
	s := newSharing(sharedValues, largestShared)
	pv := func(handle string, labels map[string]string) *corev1.PersistentVolume {
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Labels: labels}}
		pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "driver", VolumeHandle: handle}
		s.trimPV(pv)
		s.trimPV(pv) // a cache may do that
		return pv
	}
	first, second := pv("a", workflow.VolumeLabels("driver", "a")), pv("b", workflow.VolumeLabels("driver", "b"))
	if !reconcile.IsLabelled(first) || !reconcile.IsLabelled(second) {
		t.Errorf("the labels %v and %v count for none", first.Labels, second.Labels)
	}
	if first.Labels["written"] = "x"; second.Labels["written"] != "x" {
		t.Error("each has labels of its own")
	}
	for what, labels := range map[string]map[string]string{
		"no labels":                 {},
		"those of another volume":   workflow.VolumeLabels("driver", "c"),
		"those of another driver":   workflow.VolumeLabels("other", "a"),
		"the provisioner's only":    {pavv1.ProvisionerLabel: "driver"},
		"the right handle, no more": {pavv1.StorageLabel: workflow.Hash("driver", "a")},
	} {
		got := pv("a", maps.Clone(labels))
		if diff := cmp.Diff(labels, got.Labels); diff != "" || reconcile.IsLabelled(got) {
			t.Errorf("%s: labelled: %t; -want +got:\n%s", what, reconcile.IsLabelled(got), diff)
		}
	}
	if errs := validation.IsValidLabelValue(reconcile.LabelAsItShouldBe); len(errs) == 0 {
		t.Error("a PersistentVolume of the API server can have the value that the cache has in place of a label's")
	}
}

// A cache trims an object again when it reads all objects again. Readers of the others must not see anything written: run it with -race.
func TestTrim_StagesThatAreTrimmedAgain_WriteNothingToOthers(t *testing.T) {
	s := newSharing(sharedValues, largestShared)
	stage := func() *pavv1.PavStage {
		stage := &pavv1.PavStage{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{pavv1.AdmittedAnnotation: `{"copies":"of the claim"}`}}}
		s.trimStage(stage)
		return stage
	}
	first, second := stage(), stage()
	read := make(chan string)
	go func() { read <- first.Annotations[pavv1.AdmittedAnnotation] }()
	s.trimStage(second)
	if got := <-read; got != "{}" {
		t.Errorf("a stage is admitted by %s", got)
	}
	if first.Annotations["written"] = "x"; second.Annotations["written"] != "x" {
		t.Error("each has annotations of its own")
	}
}
