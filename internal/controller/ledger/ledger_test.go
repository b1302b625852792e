package ledger

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/reconcile"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// world is an API server with one record, and a writer of its status.
type world struct {
	*Writer[*pavv1.PavSnapshot]
	patches int
	record  *pavv1.PavSnapshot // as read
}

func newWorld(t *testing.T) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := pavv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := &world{record: &pavv1.PavSnapshot{ObjectMeta: metav1.ObjectMeta{Name: "snapshot-1", Generation: 7}}}
	kube := fake.NewClientBuilder().WithScheme(scheme).WithObjects(w.record).WithStatusSubresource(w.record).
		WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, options ...client.SubResourcePatchOption) error {
			w.patches++
			return c.SubResource(sub).Patch(ctx, o, p, options...)
		}}).Build()
	if err := kube.Get(t.Context(), client.ObjectKeyFromObject(w.record), w.record); err != nil {
		t.Fatal(err)
	}
	w.Writer = &Writer[*pavv1.PavSnapshot]{Client: kube, Expectations: &reconcile.Expectations{}, Version: "v1", Now: func() time.Time { return noon }}
	return w
}

func setFalse(s *pavv1.PavSnapshot, kind, reason, message string) {
	meta.SetStatusCondition(s.StatusConditions(), False(s.Generation, kind, reason, message))
}

func wait(s *pavv1.PavSnapshot) { setFalse(s, pavv1.SnapshotCreated, "Waits", "for something") }

func TestPatch_WritesAChange(t *testing.T) {
	w := newWorld(t)
	before := w.record.DeepCopy()
	if written, err := w.Patch(t.Context(), w.record, wait); !written || err != nil {
		t.Fatalf("written: %t, error: %v", written, err)
	}
	live := &pavv1.PavSnapshot{}
	if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(before), live); err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*pavv1.PavSnapshot{"the record": w.record, "what was written": live} {
		c := meta.FindStatusCondition(s.Status.Conditions, pavv1.SnapshotCreated)
		if c == nil || c.Reason != "Waits" || c.ObservedGeneration != 7 || !c.LastTransitionTime.Time.Equal(noon) {
			t.Errorf("%s has the condition %+v", name, c)
		}
		if s.Status.ObservedGeneration != 7 || s.Status.AgentVersion != "v1" {
			t.Errorf("%s is stamped with the generation %d and the version %q", name, s.Status.ObservedGeneration, s.Status.AgentVersion)
		}
		if s.ResourceVersion != live.ResourceVersion {
			t.Errorf("%s has the resource version %s, want %s", name, s.ResourceVersion, live.ResourceVersion)
		}
	}
	if !w.Expectations.IsOld(before.Name, before.ResourceVersion) {
		t.Error("the version that was replaced is not known to be old")
	}
}

func TestPatch_KeepsTheTimeOfAConditionThatStays(t *testing.T) {
	w := newWorld(t)
	if _, err := w.Patch(t.Context(), w.record, wait); err != nil {
		t.Fatal(err)
	}
	w.Now = func() time.Time { return noon.Add(time.Hour) }
	if _, err := w.Patch(t.Context(), w.record, func(s *pavv1.PavSnapshot) { setFalse(s, pavv1.SnapshotCreated, "Waits", "for more") }); err != nil {
		t.Fatal(err)
	}
	c := meta.FindStatusCondition(w.record.Status.Conditions, pavv1.SnapshotCreated)
	if c.Message != "for more" || !c.LastTransitionTime.Time.Equal(noon) {
		t.Errorf("the condition is %+v", c)
	}
}

func TestPatch_WritesNothingWithoutAChange(t *testing.T) {
	w := newWorld(t)
	if written, err := w.Patch(t.Context(), w.record, func(*pavv1.PavSnapshot) {}); written || err != nil || w.patches > 0 {
		t.Errorf("written: %t, in %d patches; error: %v", written, w.patches, err)
	}
}

func TestPatch_DoesNotWriteOverAnotherWrite(t *testing.T) {
	w := newWorld(t)
	seen := w.record.DeepCopy()
	if _, err := w.Patch(t.Context(), w.record, wait); err != nil {
		t.Fatal(err)
	}
	written, err := w.Patch(t.Context(), seen, wait)
	if written || !apierrors.IsConflict(err) || !strings.Contains(err.Error(), `the status of PavSnapshot "snapshot-1"`) {
		t.Errorf("written: %t, error: %v", written, err)
	}
	if len(seen.Status.Conditions) > 0 {
		t.Error("the record has what was not written")
	}
}

func TestPatch_RecordIsGone(t *testing.T) {
	w := newWorld(t)
	if err := w.Client.Delete(t.Context(), w.record.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	if written, err := w.Patch(t.Context(), w.record, wait); written || !errors.Is(err, reconcile.ErrStale) {
		t.Errorf("written: %t, error: %v", written, err)
	}
}

func TestHas(t *testing.T) {
	s := &pavv1.PavSnapshot{}
	setFalse(s, pavv1.SnapshotCreated, "Waits", strings.Repeat("x", 2*observability.MaxCondition))
	d := rule.Waiting(pavv1.SnapshotCreated, "Waits", strings.Repeat("x", 2*observability.MaxCondition), false)
	if !Has(s, d) {
		t.Error("the record does not have a condition that was set")
	}
	for name, other := range map[string]rule.Decision{
		"another condition": rule.Waiting(pavv1.SnapshotDeleted, d.Reason, d.Message, false),
		"another reason":    rule.Waiting(d.Condition, "Other", d.Message, false),
		"another message":   rule.Waiting(d.Condition, d.Reason, "other", false),
	} {
		if Has(s, other) {
			t.Errorf("%s: the record has it", name)
		}
	}
	s.Status.Conditions[0].Status = metav1.ConditionTrue
	if Has(s, d) {
		t.Error("the record has a condition that is true")
	}
}
