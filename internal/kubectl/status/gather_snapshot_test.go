package status

import (
	"context"
	"errors"
	"strings"
	"testing"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	cosiv1 "github.com/albertofaria/pav/internal/api/cosi/v1alpha1"
	cosiv2 "github.com/albertofaria/pav/internal/api/cosi/v1alpha2"
	objectbucketv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

func testScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientscheme.AddToScheme(scheme), pavv1.AddToScheme(scheme), snapshotv1.AddToScheme(scheme),
		objectbucketv1.AddToScheme(scheme), cosiv1.AddToScheme(scheme), cosiv2.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return scheme
}

// noSnapshotKinds answers as a cluster without the CustomResourceDefinitions of snapshots, and those of PaV from before there were any.
func noSnapshotKinds() interceptor.Funcs {
	absent := func(object runtime.Object) error {
		switch object.(type) {
		case *snapshotv1.VolumeSnapshot, *snapshotv1.VolumeSnapshotContent, *snapshotv1.VolumeSnapshotClass, *snapshotv1.VolumeSnapshotList,
			*snapshotv1.VolumeSnapshotClassList, *pavv1.PavSnapshot, *pavv1.PavSnapshotList:
			return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "Snapshot"}}
		}
		return nil
	}
	return interceptor.Funcs{
		Get: func(ctx context.Context, reader client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if err := absent(object); err != nil {
				return err
			}
			return reader.Get(ctx, key, object, options...)
		},
		List: func(ctx context.Context, reader client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if err := absent(list); err != nil {
				return err
			}
			return reader.List(ctx, list, options...)
		},
	}
}

func builder(t *testing.T) *fake.ClientBuilder {
	t.Helper()
	none := func(client.Object) []string { return nil }
	return fake.NewClientBuilder().WithScheme(testScheme(t)).
		WithIndex(&corev1.Pod{}, "spec.nodeName", none).
		WithIndex(&corev1.Event{}, "involvedObject.kind", none).
		WithIndex(&corev1.Event{}, "involvedObject.name", none)
}

func podOfSnapshot(name, record string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "pav-pods", Name: name,
		Labels:      map[string]string{pavv1.WorkflowLabel: pavv1.WorkflowSnapshotCreation, pavv1.VolumeLabel: workflow.Hash("pvc-u1")},
		Annotations: map[string]string{pavv1.VolumeAnnotation: "pvc-u1", pavv1.SnapshotAnnotation: record}}}
}

// Whichever object of a snapshot the user names, all others are found from it.
func TestGather_FindsAllObjectsOfASnapshot(t *testing.T) {
	w := recorded(pavv1.PavSnapshotStatus{}).with(func(f *Facts) {
		f.Snapshot.Content.Spec.VolumeSnapshotRef = corev1.ObjectReference{Namespace: "apps", Name: "nightly", UID: "s1"}
	})
	s := w.f.Snapshot
	for _, ref := range []Ref{{Snapshot, "apps", "nightly"}, {Content, "", "snapcontent-s1"}, {PavSnapshot, "", "snapshot-s1"}} {
		t.Run(ref.String(), func(t *testing.T) {
			reader := builder(t).WithObjects(w.f.Claim, w.f.PV, w.f.Volume, w.f.Provisioner, s.Object, s.Content, s.Class, s.Record,
				podOfSnapshot("mine", "snapshot-s1"), podOfSnapshot("another", "snapshot-s2")).Build()
			f, err := Gather(t.Context(), reader, ref, atNoon)
			if err != nil {
				t.Fatal(err)
			}
			got := f.Snapshot
			if got.Object == nil || got.Content == nil || got.Record == nil || got.Class == nil || f.Claim == nil || f.PV == nil || f.Volume == nil || f.Provisioner == nil {
				t.Errorf("found %+v, claim %v, PV %v", got, f.Claim, f.PV)
			}
			if len(f.Pods) != 1 || f.Pods[0].Name != "mine" || len(f.Snapshots) != 1 {
				t.Errorf("%d records, pods %v", len(f.Snapshots), f.Pods)
			}
		})
	}
}

// A record may be left of a VolumeSnapshot that is gone, and another VolumeSnapshot may have its name.
func TestGather_OfASnapshotThatIsGone(t *testing.T) {
	w := recorded(pavv1.PavSnapshotStatus{Phase: pavv1.SnapshotDeleting})
	f, err := Gather(t.Context(), builder(t).WithObjects(w.f.Snapshot.Record).Build(), Ref{Snapshot, "apps", "nightly"}, atNoon)
	if err != nil || f.Snapshot.Record == nil || len(f.Snapshots) != 1 {
		t.Errorf("got %+v, %v", f, err)
	}
	w.f.Snapshot.Object.UID = "s2"
	f, err = Gather(t.Context(), builder(t).WithObjects(w.f.Snapshot.Record, w.f.Snapshot.Object).Build(), Ref{PavSnapshot, "", "snapshot-s1"}, atNoon)
	if err != nil || f.Snapshot.Object != nil {
		t.Errorf("another VolumeSnapshot is taken for that of the record: %+v, %v", f, err)
	}
}

func TestGather_WithoutSnapshotKinds(t *testing.T) {
	w := bound()
	reader := builder(t).WithObjects(w.f.Claim, w.f.PV, w.f.Volume, w.f.Provisioner).WithInterceptorFuncs(noSnapshotKinds()).Build()
	f, err := Gather(t.Context(), reader, w.f.Subject, atNoon)
	if err != nil || f.Volume == nil {
		t.Errorf("got %+v, %v", f, err)
	}
	for ref, want := range map[Ref]string{
		{Snapshot, "apps", "nightly"}: `there is no VolumeSnapshot "nightly" in namespace "apps"`,
		{Content, "", "c"}:            `there is no VolumeSnapshotContent "c"`,
		{PavSnapshot, "", "r"}:        `there is no PavSnapshot "r"`,
	} {
		if _, err := Gather(t.Context(), reader, ref, atNoon); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("of %s: %v", ref, err)
		}
	}
	if rows, err := readSnapshots(t.Context(), reader, ""); err != nil || len(rows) != 0 {
		t.Errorf("got %v, %v", rows, err)
	}
}

func TestTargetsOf_ASnapshot(t *testing.T) {
	w := recorded(pavv1.PavSnapshotStatus{})
	reader := builder(t).WithObjects(w.f.Snapshot.Record, w.f.Snapshot.Object).Build()
	targets, err := TargetsOf(t.Context(), reader, Ref{Snapshot, "apps", "nightly"})
	if err != nil || len(targets) != 1 || targets[0].Volume != "pvc-u1" || !targets[0].Has(podOfSnapshot("p", "snapshot-s1")) || targets[0].Has(podOfSnapshot("p", "snapshot-s2")) {
		t.Fatalf("got %+v, %v", targets, err)
	}
	if gone, err := targets[0].IsGone(t.Context(), reader); gone || err != nil {
		t.Errorf("gone %t, %v", gone, err)
	}
	if volume := (Target{Volume: "pvc-u1"}); !volume.Has(podOfSnapshot("p", "snapshot-s1")) {
		t.Error("the pod of a snapshot is not one of its volume")
	}
	w.f.Snapshot.Record.Spec.VolumeName = ""
	static := Target{Snapshot: w.f.Snapshot.Record}
	if labels := static.Labels(); labels[pavv1.ProvisionerLabel] != "demo" || static.Name() != "pavsnapshot/snapshot-s1" {
		t.Errorf("of one without a volume: %v, %s", labels, static.Name())
	}
}
