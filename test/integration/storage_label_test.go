package integration

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/node/stage"
	"github.com/albertofaria/pav/internal/workflow"
)

// storageOf returns a PersistentVolume of an administrator's storage, which is removed at the end of the test.
func storageOf(t *testing.T, c *cluster, name, driver, handle string, labels map[string]string) *corev1.PersistentVolume {
	t.Helper()
	pv := samePV(name, &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{
		AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: handle}},
	}})
	pv.Labels = labels
	mustCreate(t, c, pv)
	t.Cleanup(func() { mustDeleteLasting(t, c, pv) })
	return pv
}

// labelled waits until a PersistentVolume has PaV's labels, and its other labels.
func labelled(t *testing.T, c *cluster, pv *corev1.PersistentVolume, others map[string]string) {
	t.Helper()
	want := workflow.VolumeLabels(pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle)
	maps.Copy(want, others)
	exists(t, c, pv, "has the labels "+fmt.Sprint(want), func(pv *corev1.PersistentVolume) bool { return cmp.Equal(want, pv.Labels) })
}

func TestPersistentVolumes_AreLabelled(t *testing.T) {
	c := start(t)
	run(t, c)
	own := map[string]string{"own": "label"}
	others := storageOf(t, c, "labelled-others", "labelled-other-driver", "h", own)
	wrong := storageOf(t, c, "labelled-wrong", "labelled", "wrong", map[string]string{pavv1.StorageLabel: "wrong"})
	before := storageOf(t, c, "labelled-before", "labelled", "before", nil)
	driver(t, c, "labelled", func(p *pavv1.PavProvisioner, _ *storagev1.StorageClass) {
		p.Spec.ProvisioningModes = []pavv1.ProvisioningMode{pavv1.ProvisioningModeDynamic, pavv1.ProvisioningModeStatic}
	})
	labelled(t, c, wrong, nil)
	labelled(t, c, before, nil)
	after := storageOf(t, c, "labelled-after", "labelled", "a handle / of any form", own)
	labelled(t, c, after, own)

	claim := mustCreate(t, c, claimOf("labelled", "labelled"))
	pv, volume := bound(t, c, claim)
	labelled(t, c, pv, nil)
	mustPatch(t, c, pv, func(pv *corev1.PersistentVolume) { pv.Labels = own })
	labelled(t, c, pv, own)
	mustDelete(t, c, claim)
	gone(t, c, volume)

	if err := c.Admin.Get(t.Context(), client.ObjectKeyFromObject(others), others); err != nil || !cmp.Equal(own, others.Labels) {
		t.Errorf("the PersistentVolume of another driver has the labels %v, error %v", others.Labels, err)
	}
}

func TestPersistentVolumes_HaveTheLabelOfTheirOwnDriverOnly(t *testing.T) {
	c := start(t)
	const reason = "is the name of its CSI driver"
	label := func(driver string) map[string]string { return map[string]string{pavv1.ProvisionerLabel: driver} }
	own := storageOf(t, c, "own-label", "labelled", "h", label("labelled"))
	for name, pv := range map[string]*corev1.PersistentVolume{"of another driver": samePV("wrong-label", own), "of no driver": volumeByHand("", claimOf("none", "labelled"))} {
		pv.Labels = label("another")
		if err := c.Admin.Create(t.Context(), pv); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("a PersistentVolume %s: %v", name, err)
		}
	}
	relabelled := []byte(`{"metadata": {"labels": {"` + pavv1.ProvisionerLabel + `": "another"}}}`)
	if err := c.Admin.Patch(t.Context(), own.DeepCopy(), client.RawPatch(types.MergePatchType, relabelled)); err == nil || !strings.Contains(err.Error(), reason) {
		t.Errorf("a label that is changed: %v", err)
	}
	if err := c.Admin.Status().Patch(t.Context(), own.DeepCopy(), client.RawPatch(types.MergePatchType, relabelled)); err == nil || !strings.Contains(err.Error(), reason) {
		t.Errorf("a label that is changed with the status: %v", err)
	}
	mustPatch(t, c, own, func(pv *corev1.PersistentVolume) { pv.Labels = nil })
}

// fullLists counts the lists of all PersistentVolumes that a client makes.
func fullLists(t *testing.T, c *cluster) (client.Reader, *atomic.Int64) {
	t.Helper()
	count := &atomic.Int64{}
	return interceptor.NewClient(c.Admin, interceptor.Funcs{
		List: func(ctx context.Context, w client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			_, pvs := list.(*corev1.PersistentVolumeList)
			if o := (&client.ListOptions{}).ApplyOptions(options); pvs && o.LabelSelector == nil && o.Continue == "" {
				count.Add(1)
			}
			return w.List(ctx, list, options...)
		},
	}), count
}

func TestIndex_FindsVolumes(t *testing.T) {
	c := start(t)
	const driver = "indexed"
	hash := func(handle string) map[string]string {
		return map[string]string{pavv1.StorageLabel: workflow.VolumeLabels(driver, handle)[pavv1.StorageLabel]}
	}
	storageOf(t, c, "indexed-labelled", driver, "labelled", hash("labelled"))
	storageOf(t, c, "indexed-twice-1", driver, "twice", hash("twice"))
	storageOf(t, c, "indexed-twice-2", driver, "twice", hash("twice"))
	storageOf(t, c, "indexed-borrowed", driver, "other", hash("labelled"))
	storageOf(t, c, "indexed-driver", "indexed-other", "labelled", hash("labelled"))
	storageOf(t, c, "indexed-none", driver, "none", nil)
	storageOf(t, c, "indexed-lost", driver, "lost", hash("another"))
	storageOf(t, c, "indexed-both-1", driver, "both", nil)
	storageOf(t, c, "indexed-both-2", driver, "both", map[string]string{"own": "label"})
	hostPath := mustCreate(t, c, volumeByHand("", claimOf("none", "indexed")))
	t.Cleanup(func() { mustDeleteLasting(t, c, hostPath) })

	for _, name := range []string{driver, "indexed-other"} {
		p := mustCreate(t, c, provisionerOf(name))
		t.Cleanup(func() { mustDeleteLasting(t, c, p) })
	}
	storageOf(t, c, "indexed-foreign", "indexed-foreign", "none", nil)
	reader, lists := fullLists(t, c)
	index := stage.NewIndex(reader, reader)
	find := func(handle string) []string {
		t.Helper()
		names, err := index.VolumeNames(t.Context(), driver, handle)
		if err != nil {
			t.Fatalf("finding %q: %v", handle, err)
		}
		slices.Sort(names)
		return names
	}
	begin := time.Now()
	got := map[string][]string{}
	for _, handle := range []string{"labelled", "twice"} {
		got[handle] = find(handle)
	}
	if n := lists.Load(); n != 0 {
		t.Errorf("all PersistentVolumes were listed %d times for volumes with the label", n)
	}
	for range 10 {
		for _, handle := range []string{"none", "lost", "both", "other", "unknown"} {
			got[handle] = find(handle)
		}
	}
	want := map[string][]string{
		"labelled": {"indexed-labelled"}, "twice": {"indexed-twice-1", "indexed-twice-2"}, "none": {"indexed-none"}, "lost": {"indexed-lost"},
		"both": {"indexed-both-1", "indexed-both-2"}, "other": {"indexed-borrowed"}, "unknown": nil,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if n, most := lists.Load(), 1+int64(time.Since(begin)/(10*time.Second)); n < 1 || n > most {
		t.Errorf("all PersistentVolumes were listed %d times, want 1 to %d", n, most)
	}
	late := storageOf(t, c, "indexed-late", driver, "late", nil)
	eventually(t, "a PersistentVolume without label that was created later is found", func(context.Context) (bool, string) {
		names := find("late")
		return slices.Equal(names, []string{late.Name}), fmt.Sprint(names)
	})
}
