package volume

import (
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/attempt"
	"github.com/albertofaria/pav/internal/controller/queue"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/reconcile/reconciletest"
	"github.com/albertofaria/pav/internal/template"
	"github.com/albertofaria/pav/internal/workflow"
)

// A pass may come before the cache shows that the pass before it has deleted the PavVolume.
func TestForget_SaysOnceThatAVolumeIsDeleted(t *testing.T) {
	for name, deleting := range map[string]bool{"the claim was deleted": false, "the PavVolume was deleted": true} {
		t.Run(name, func(t *testing.T) {
			o := recorded().with(func(o *observation) { o.claim = claimGone }).o
			if deleting {
				o.volume.DeletionTimestamp = &metav1.Time{Time: noon}
			}
			cache := reconciletest.Client(t, o.volume, o.provisioner)
			if err := cache.Get(t.Context(), client.ObjectKeyFromObject(o.volume), o.volume); err != nil {
				t.Fatal(err)
			}
			r := &Reconciler{Client: cache, Live: cache, holders: &reconcile.LiveReads{Reader: cache}, Events: record.NewFakeRecorder(10), Now: func() time.Time { return noon }}
			said := 0
			ctx := ctrl.LoggerInto(t.Context(), funcr.New(func(_, line string) { said += strings.Count(line, "deleted a volume") }, funcr.Options{}))
			d := decide(o)
			if d.Step != stepForget {
				t.Fatalf("the decision is %+v", d)
			}
			for range 3 {
				if err := r.forget(ctx, o, d); err != nil {
					t.Fatal(err)
				}
			}
			if said != 1 {
				t.Errorf("it was said %d times", said)
			}
		})
	}
}

// One write records the first deletion pod of a Ready volume and that the deletion has begun. Of an earlier deletion, which was
// taken back, nothing may be left: its attempts would delay this one, and its condition would say that it began long ago.
func TestDelete_OfAReadyVolume_BeginsANewDeletion(t *testing.T) {
	o := in(pavv1.VolumeReady, corev1.VolumeReleased, deletePolicy).with(withDeletionPod).o
	o.volume.Spec.StorageClass.Raw, o.volume.Spec.Claim.Raw = []byte(`{"metadata": {"name": "fast"}}`), []byte(`{"spec": {"resources": {"requests": {"storage": "1Gi"}}}}`)
	o.provisioner.Spec.VolumeDeletion.PodTemplate = field(`{"spec": {"containers": [{"name": "delete", "image": "busybox:1.37.0"}]}}`)
	o.volume.Status.DeletionAttempt = 3
	o.volume.Status.Conditions = []metav1.Condition{{Type: pavv1.VolumeDeleted, Status: metav1.ConditionFalse, Reason: "Failed",
		LastTransitionTime: metav1.NewTime(noon.Add(-time.Hour))}}
	cache := reconciletest.Client(t, o.volume, o.pv, o.provisioner)
	r := &Reconciler{Client: cache, Live: cache, holders: &reconcile.LiveReads{Reader: cache}, Events: record.NewFakeRecorder(10),
		slots: attempt.NewPool(queue.Limits{}).Of("volume", func(string) {}), Templates: template.NewEvaluator(template.DefaultLimits()), Runner: &workflow.Runner{Client: cache}, Now: func() time.Time { return noon }}
	d := decide(o)
	if d.Step != stepDelete {
		t.Fatalf("the decision is %+v", d)
	}
	if err := r.delete(t.Context(), o, d); err != nil {
		t.Fatal(err)
	}
	got := o.volume.Status
	if got.Phase != pavv1.VolumeDeleting || got.DeletionAttempt != 1 || got.Pod == nil {
		t.Errorf("the deletion is recorded as %+v", got)
	}
	if c := meta.FindStatusCondition(got.Conditions, pavv1.VolumeDeleted); c == nil || !c.LastTransitionTime.Time.Equal(noon) {
		t.Errorf("the condition is %+v, and must have the time of this write", c)
	}
}
