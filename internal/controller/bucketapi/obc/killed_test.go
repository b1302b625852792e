package obc

import (
	"context"
	"errors"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	objectbucketv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

var errKilled = errors.New("the agent is killed")

// The provisioner of a claim without a record can be deleted, and after that nothing would remove the finalizer.
func TestLife_AnAgentIsKilledWhileItRecords(t *testing.T) {
	for name, test := range map[string]struct {
		at       interceptor.Funcs
		recorded bool
	}{
		"before the record": {at: interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return errKilled }}},
		"after the record": {recorded: true, at: interceptor.Funcs{Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return errKilled
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, claimed().claim, theClass(), theProvisioner())
			c.reconciler.Client = interceptor.NewClient(c.WithWatch, test.at)
			if _, err := c.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: photos}); !errors.Is(err, errKilled) {
				t.Fatalf("the error is %v", err)
			}
			if got := c.bucket(claimUID) != nil; got != test.recorded || controllerutil.ContainsFinalizer(c.claim(photos), objectbucketv1.Finalizer) {
				t.Fatalf("the claim has a record: %t; and the finalizers %v", got, c.claim(photos).Finalizers)
			}
			c.restart()
			c.pass(photos)
			c.serve(claimUID)
			c.pass(photos)
			claim := c.claim(photos)
			if c.bucket(claimUID) == nil || c.access(claimUID) == nil || !controllerutil.ContainsFinalizer(claim, objectbucketv1.Finalizer) || claim.Labels[objectbucketv1.ProvisionerLabel] != "store" {
				t.Errorf("the next agent leaves the claim with the finalizers %v and the labels %v", claim.Finalizers, claim.Labels)
			}
			if !controllerutil.ContainsFinalizer(c.bucket(claimUID), pavv1.BucketFinalizer) {
				t.Error("the record is not held")
			}
		})
	}
}
