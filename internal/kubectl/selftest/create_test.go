package selftest

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// withCluster gives a run a cluster that holds the objects, and whose API server answers Create by the
// function; as usual where it is nil.
func withCluster(t *testing.T, r *run, create func(context.Context, client.WithWatch, client.Object) error, objects ...client.Object) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientscheme.AddToScheme(scheme), pavv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithIndex(&corev1.Namespace{}, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} })
	if create != nil {
		builder.WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, object client.Object, _ ...client.CreateOption) error {
				return create(ctx, c, object)
			},
		})
	}
	r.client = builder.Build()
	r.progress = &progress{out: io.Discard}
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name, UID: "u"} }

// production is a provisioner with a volume.
func production(name string) []client.Object {
	return []client.Object{
		&pavv1.PavProvisioner{ObjectMeta: named(name)},
		&pavv1.PavVolume{ObjectMeta: metav1.ObjectMeta{Name: "precious", Labels: map[string]string{pavv1.ProvisionerLabel: name}}},
	}
}

func TestInstall_NameIsTaken_RefusesAndChangesNothing(t *testing.T) {
	tests := map[string]client.Object{
		"PavProvisioner mine-test-1 exists already": &pavv1.PavProvisioner{ObjectMeta: named("mine-test-1")},
		"StorageClass mine-test-1 exists already":   &storagev1.StorageClass{ObjectMeta: named("mine-test-1")},
		"CSIDriver mine-test-1 exists already":      &storagev1.CSIDriver{ObjectMeta: named("mine-test-1")},
		"Namespace mine-test-1 exists already":      &corev1.Namespace{ObjectMeta: named("mine-test-1")},
		"such as PavVolume precious":                production("mine-test-1")[1],
	}
	for want, there := range tests {
		t.Run(want, func(t *testing.T) {
			r := newRun(t, provisionerYAML, nil)
			withCluster(t, r, nil, there)
			if _, err := r.install(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
			if len(r.created) != 0 {
				t.Errorf("the test made %v", r.created)
			}
		})
	}
}

// A provisioner of the test's name that another one made in the meantime is none of the test's.
func TestCleanUp_ProvisionerIsAnother_LeavesItsVolumesAlone(t *testing.T) {
	r := newRun(t, provisionerYAML, func(o *options) { o.Timeout = time.Minute })
	withCluster(t, r, nil, production("mine-test-1")...)
	for object, fails := range map[client.Object]bool{r.namespace(): false, r.copyOf(): true} {
		if err := r.create(t.Context(), object); (err != nil) != fails {
			t.Fatalf("creating %s: %v", describeObject(object), err)
		}
	}
	if got := r.removal(); got != "kubectl delete namespace/mine-test-1" {
		t.Errorf("the advice is %q", got)
	}
	r.cleanUp(t.Context())
	if len(r.report.Left) != 0 || r.report.count(Failed) != 0 {
		t.Errorf("the report is %+v", r.report)
	}
	if err := r.client.Get(t.Context(), client.ObjectKey{Name: "precious"}, &pavv1.PavVolume{}); err != nil {
		t.Errorf("the volume: %v", err)
	}
	if err := r.client.Get(t.Context(), client.ObjectKey{Name: "mine-test-1"}, &corev1.Namespace{}); !apierrors.IsNotFound(err) {
		t.Errorf("the namespace: %v", err)
	}
}

func TestCreate_AnswerIsLost_AdoptsWhatIsItsOwn(t *testing.T) {
	lost := errors.New("connection reset")
	tests := map[string]struct {
		there  *corev1.Namespace
		create bool
		adopts bool
	}{
		"it was created":   {create: true, adopts: true},
		"it was not":       {},
		"another one's is": {there: &corev1.Namespace{ObjectMeta: named("mine-test-1")}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRun(t, provisionerYAML, nil)
			var there []client.Object
			if test.there != nil {
				there = append(there, test.there)
			}
			withCluster(t, r, func(ctx context.Context, c client.WithWatch, object client.Object) error {
				if test.create {
					return errors.Join(lost, c.Create(ctx, object))
				}
				return lost
			}, there...)
			err := r.create(t.Context(), r.namespace())
			if (len(r.created) == 1) != test.adopts || errors.Is(err, lost) == test.adopts {
				t.Errorf("got %v, and made %v", err, r.created)
			}
		})
	}
}

// What is under way when the test is interrupted is finished, so that it is known what to clean up.
func TestCreate_InterruptedMeanwhile_WaitsForTheAnswer(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	r := newRun(t, provisionerYAML, nil)
	withCluster(t, r, func(ctx context.Context, c client.WithWatch, object client.Object) error {
		interrupt()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return c.Create(ctx, object)
	})
	if err := r.create(ctx, r.namespace()); err != nil || len(r.created) != 1 {
		t.Errorf("got %v, and made %v", err, r.created)
	}
	if err := r.create(ctx, r.class()); !errors.Is(err, context.Canceled) || len(r.created) != 1 {
		t.Errorf("after that: got %v, and made %v", err, r.created)
	}
}

func TestRemoval_NamesTheObjectsOfTheTest(t *testing.T) {
	r := newRun(t, provisionerYAML, nil)
	inside, outside := &corev1.Secret{ObjectMeta: named("in")}, &corev1.Secret{ObjectMeta: named("out")}
	inside.Namespace, outside.Namespace = r.name, "other"
	r.created = []client.Object{r.namespace(), inside, outside, r.copyOf(), r.class()}
	want := "kubectl delete namespace/mine-test-1 storageclass/mine-test-1 && kubectl delete pavprovisioner/mine-test-1 && kubectl delete -n other secret/out"
	if diff := cmp.Diff(want, r.removal()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestRegistered_DeadNode_IsNotWaitedFor(t *testing.T) {
	node := func(name string, ready corev1.ConditionStatus, drivers ...string) []client.Object {
		csi := &storagev1.CSINode{ObjectMeta: named(name)}
		for _, driver := range drivers {
			csi.Spec.Drivers = append(csi.Spec.Drivers, storagev1.CSINodeDriver{Name: driver, NodeID: name})
		}
		status := corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}}
		return []client.Object{csi, &corev1.Node{ObjectMeta: named(name), Status: status}}
	}
	r := newRun(t, provisionerYAML, nil)
	withCluster(t, r, nil, append(node("a", corev1.ConditionTrue, pavv1.Driver, r.name), node("dead", corev1.ConditionUnknown, pavv1.Driver)...)...)
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errTimeout)
	defer cancel()
	if nodes, err := r.registered(ctx); nodes != 1 || err != nil {
		t.Errorf("got %d nodes, %v", nodes, err)
	}
}

func TestRestore_WithoutTheVolume_ReportsWhatMayBeLeft(t *testing.T) {
	tests := map[string]struct {
		scenario scenario
		keep     bool
		left     int
	}{
		"nothing was written": {scenario: scenario{stuck: true}},
		"it is stuck":         {scenario: scenario{wrote: true, stuck: true}, left: 1},
		"it is kept":          {scenario: scenario{wrote: true}, keep: true, left: 1},
		"removing it fails":   {scenario: scenario{wrote: true}, left: 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := test.scenario
			s.volume = volume{mode: corev1.PersistentVolumeFilesystem, access: corev1.ReadWriteMany, static: "bucket-1"}
			s.run = newRun(t, provisionerYAML, func(o *options) { o.Keep, o.Timeout = test.keep, time.Minute })
			withCluster(t, s.run, func(context.Context, client.WithWatch, client.Object) error { return errors.New("no pods today") })
			ctx, interrupt := context.WithCancel(t.Context())
			interrupt()
			s.restore(ctx, false)
			if len(s.report.Left) != test.left {
				t.Fatalf("left: %+v", s.report.Left)
			}
			if test.left > 0 && (s.report.Left[0].Name != "bucket-1" || !strings.Contains(s.report.Left[0].Commands[0], "rm -f pav-test-mine-test-1 ")) {
				t.Errorf("left: %+v", s.report.Left)
			}
		})
	}
}
