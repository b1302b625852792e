package integration

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
	"github.com/albertofaria/pav/test/agent"
)

// asBackedUp returns what a backup of objects has of one.
func asBackedUp[T client.Object](object T) T {
	object, _ = object.DeepCopyObject().(T)
	object.SetUID("")
	object.SetResourceVersion("")
	object.SetCreationTimestamp(metav1.Time{})
	object.SetGeneration(0)
	object.SetManagedFields(nil)
	return object
}

// wipe removes an object and what holds it.
func wipe(t *testing.T, c *cluster, object client.Object) {
	t.Helper()
	mustDelete(t, c, object)
	eventually(t, "the object is gone", func(ctx context.Context) (bool, string) {
		err := c.Admin.Get(ctx, client.ObjectKeyFromObject(object), object)
		if err == nil && len(object.GetFinalizers()) > 0 {
			object.SetFinalizers(nil)
			err = c.Admin.Update(ctx, object)
		}
		return err != nil && client.IgnoreNotFound(err) == nil, fmt.Sprint(err)
	})
}

// Records are written back from a backup of objects, which has no status: PersistentVolumes that nobody is bound to
// any more look as if their storage were to be deleted.
func TestRestoredBackup_DeletesNothing(t *testing.T) {
	tests := map[string]struct {
		withPV bool
		goOn   func(*testing.T, *cluster, *agent.Agent, *corev1.PersistentVolumeClaim, *pavv1.PavVolume)
	}{
		"with its PersistentVolume": {withPV: true, goOn: func(t *testing.T, c *cluster, a *agent.Agent, claim *corev1.PersistentVolumeClaim, volume *pavv1.PavVolume) {
			t.Helper()
			wantEvent(t, c, volume, "Warning", "VolumeFailedDelete", "was restored from a backup")
			isKept(t, c, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: volume.Name}})
			if n := podsMade(a); n != 0 {
				t.Errorf("%d pods were made", n)
			}
			mustDelete(t, c, volume) // The administrator says so.
			pod, _ := podOf(t, c, claim, pavv1.WorkflowDeletion)
			if got, want := pod.Annotations["sees"], "me gold "+volume.Name; got != want {
				t.Errorf("the deletion pod sees %q, want %q", got, want)
			}
			end(t, c, pod, workflow.Result{}, 0)
			gone(t, c, volume)
		}},
		"alone": {goOn: func(t *testing.T, c *cluster, a *agent.Agent, _ *corev1.PersistentVolumeClaim, volume *pavv1.PavVolume) {
			t.Helper()
			exists(t, c, volume, "says that it was restored", func(v *pavv1.PavVolume) bool {
				return len(v.Status.Conditions) == 1 && v.Status.Conditions[0].Reason == "Restored" && v.DeletionTimestamp == nil
			})
			mustDelete(t, c, volume)
			gone(t, c, volume)
			if n := podsMade(a); n != 0 {
				t.Errorf("%d pods were made", n)
			}
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := start(t)
			current := agent.Launch(t, c.agent, agent.Options(namespace), &agent.Line{})
			t.Cleanup(func() { current.Stop(t); checkNothingLeft(t, c) })
			driver(t, c, "restored", withDeletionPod, inPool)
			claim := mustCreate(t, c, ownedClaim("restored", "me"))
			pv, volume := bound(t, c, claim)
			exists(t, c, volume, "knows that the claim is bound", func(v *pavv1.PavVolume) bool {
				return copyOf(t, v).Status.Phase == corev1.ClaimBound
			})
			current.Stop(t)
			backup, pvBackup := asBackedUp(volume), asBackedUp(pv)
			for _, object := range []client.Object{claim.DeepCopy(), pv, volume} {
				wipe(t, c, object)
			}
			mustCreate(t, c, backup)
			if test.withPV {
				mustCreate(t, c, pvBackup)
			}
			current = agent.Launch(t, c.agent, agent.Options(namespace), &agent.Line{})
			test.goOn(t, c, current, claim, backup)
		})
	}
}
