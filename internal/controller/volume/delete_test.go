package volume

import (
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/albertofaria/pav/internal/reconcile"
)

// A pass may come before the cache shows that the pass before it has deleted the PavVolume.
func TestForget_SaysOnceThatAVolumeIsDeleted(t *testing.T) {
	for name, deleting := range map[string]bool{"the claim was deleted": false, "the PavVolume was deleted": true} {
		t.Run(name, func(t *testing.T) {
			o := recorded().with(func(o *snapshot) { o.claim = claimGone }).o
			if deleting {
				o.volume.DeletionTimestamp = &metav1.Time{Time: noon}
			}
			cache := newCache(t, o.volume, o.provisioner)
			if err := cache.Get(t.Context(), client.ObjectKeyFromObject(o.volume), o.volume); err != nil {
				t.Fatal(err)
			}
			r := &Reconciler{Client: cache, Live: cache, holders: &reconcile.LiveReads{Reader: cache}, Events: record.NewFakeRecorder(10), Now: func() time.Time { return noon }}
			said := 0
			ctx := ctrl.LoggerInto(t.Context(), funcr.New(func(_, line string) { said += strings.Count(line, "deleted a volume") }, funcr.Options{}))
			d := decide(o)
			if d.step != stepForget {
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
