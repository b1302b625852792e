package cosi0

import (
	"context"
	"errors"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	cosiv0 "github.com/albertofaria/pav/internal/api/cosi/proposal"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

var errKilled = errors.New("the agent is killed")

// The provisioner of a Bucket without a record can be deleted, and after that nothing would remove the finalizer.
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
			c := newCluster(t, asked().object, theClass(), theProvisioner())
			c.reconciler.Client = interceptor.NewClient(c.WithWatch, test.at)
			if _, err := c.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: photos}); !errors.Is(err, errKilled) {
				t.Fatalf("the error is %v", err)
			}
			if got := c.bucket(bucketUID) != nil; got != test.recorded || controllerutil.ContainsFinalizer(c.object(), cosiv0.Finalizer) {
				t.Fatalf("the Bucket has a record: %t; and the finalizers %v", got, c.object().Finalizers)
			}
			c.restart()
			c.pass()
			c.serve(bucketUID)
			c.pass()
			object := c.object()
			if c.bucket(bucketUID) == nil || c.access(bucketUID) == nil || !controllerutil.ContainsFinalizer(object, cosiv0.Finalizer) || object.Labels[cosiv0.ProvisionerLabel] != "store" {
				t.Errorf("the next agent leaves the Bucket with the finalizers %v and the labels %v", object.Finalizers, object.Labels)
			}
			if !controllerutil.ContainsFinalizer(c.bucket(bucketUID), pavv1.BucketFinalizer) {
				t.Error("the record is not held")
			}
		})
	}
}
