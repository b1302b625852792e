package access

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/reconcile/reconciletest"
)

// The pods of two accesses tell one account at the same time, and the cache has seen neither of them. One gets it.
func TestRecordAccount_OfTwoAtOnce(t *testing.T) {
	first, second := requested(granting), requested(granting)
	second.record.Name, second.record.UID, second.record.Spec.Requester.UID = "a-v", "other", "v"
	for _, s := range []state{first, second} {
		s.record.Labels = map[string]string{pavv1.ProvisionerLabel: "p"}
	}
	behind, server := reconciletest.Client(t), reconciletest.Client(t, first.record, second.record)
	var lookers atomic.Int32
	both := make(chan struct{})
	r := &Reconciler{
		Client: interceptor.NewClient(server, interceptor.Funcs{List: behindList(behind)}),
		Live: interceptor.NewClient(server, interceptor.Funcs{
			List: func(ctx context.Context, kube client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				err := kube.List(ctx, list, options...)
				if lookers.Add(1) == 2 {
					close(both)
				}
				select { // If both look before one of them writes, they do so here.
				case <-both:
				case <-time.After(100 * time.Millisecond):
				}
				return err
			},
		}),
		Now: func() time.Time { return noon },
	}
	r.ledger.Client, r.ledger.Expectations, r.ledger.Now = r.Client, &r.expectations, r.Now
	errs := make([]error, 2)
	var group sync.WaitGroup
	for i, s := range []state{first, second} {
		record := &pavv1.PavBucketAccess{}
		if err := server.Get(t.Context(), client.ObjectKeyFromObject(s.record), record); err != nil {
			t.Fatal(err)
		}
		s.record = record
		group.Go(func() {
			errs[i] = r.recordAccount(t.Context(), s.observation, podplan.AccountOutcome{AccountID: "shared"})
		})
	}
	group.Wait()
	if (errs[0] == nil) == (errs[1] == nil) || !podplan.IsRefusal(errs[0]) && !podplan.IsRefusal(errs[1]) {
		t.Errorf("got %v and %v", errs[0], errs[1])
	}
}

// behindList answers lists from a cache that is behind.
func behindList(cache client.WithWatch) func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
	return func(ctx context.Context, _ client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		return cache.List(ctx, list, options...)
	}
}

// What is not known of other accesses must not have the account of one of them revoked.
func TestAbandon_WhileTheAPIServerDoesNotAnswer(t *testing.T) {
	s := requested(granting, thePod(ended(1), result(`{"accountId":"other"}`)))
	kube := reconciletest.Client(t, s.record)
	r := &Reconciler{Now: func() time.Time { return noon }, Client: kube, Live: interceptor.NewClient(kube, interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return context.DeadlineExceeded
		},
	})}
	if _, err := r.abandon(t.Context(), s.observation); err == nil {
		t.Error("the account is to be revoked")
	}
}
