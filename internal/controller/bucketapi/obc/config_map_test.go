package obc

import (
	"fmt"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/albertofaria/pav/internal/protocol"
)

// A reconciler stalls before one of its requests. Another leads meanwhile, and the endpoint has changed, or the claim is gone.
func TestWriteConfigMap_OfAStalledLeader(t *testing.T) {
	for _, at := range []string{seesConfigMap, createsConfigMap, replacesConfigMap} {
		for _, gone := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/gone=%t", at, gone), func(t *testing.T) {
				c := newCluster(t, claimed().claim, theClass(), theProvisioner())
				c.pass(photos)
				c.serve(claimUID)
				stalled := c.reconciler
				c.stallsAt, c.meanwhile = at, func() {
					c.restart()
					bucket := c.bucket(claimUID)
					bucket.Status.Info["endpoint"] = "http://newer:9000"
					c.must(c.Status().Update(t.Context(), bucket))
					c.pass(photos)
					if gone {
						c.must(c.Delete(t.Context(), c.claim(photos)))
						c.pass(photos)
						c.forget(c.access(claimUID))
						c.pass(photos)
						c.forget(c.bucket(claimUID))
						c.pass(photos)
					}
				}
				if _, err := stalled.Reconcile(t.Context(), ctrl.Request{NamespacedName: photos}); err != nil {
					t.Errorf("got %v", err)
				}
				if c.meanwhile != nil {
					t.Fatal("it never stalled")
				}
				config := c.config(photos)
				if gone && config != nil && len(config.Finalizers) > 0 {
					t.Errorf("nobody removes the finalizer of %+v", config)
				}
				if !gone && (config == nil || config.Data["BUCKET_HOST"] != "newer" || len(config.Finalizers) != 1) {
					t.Errorf("the ConfigMap is %+v", config)
				}
			})
		}
	}
}

// A claim that was bound has a ConfigMap. If PaV may not change that any more, its finalizer is left, which is told.
func TestLife_TheConfigMapHasLostItsLabel(t *testing.T) {
	c := newCluster(t, claimed().claim, theClass(), theProvisioner())
	c.pass(photos)
	c.serve(claimUID)
	c.pass(photos)
	config := c.config(photos)
	config.Labels = nil
	c.must(c.Update(t.Context(), config))
	c.must(c.Delete(t.Context(), c.claim(photos)))
	c.restart()
	c.pass(photos)
	c.forget(c.access(claimUID))
	c.pass(photos)
	if !c.told(protocol.ConfigMapLeft) || !c.bucket(claimUID).Spec.Released {
		t.Error("it is not told, or in the way of the rest")
	}
}
