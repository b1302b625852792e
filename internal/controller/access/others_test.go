package access

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/reconcile/reconciletest"
)

// twoReaders are a cache and an API server with the accesses to one bucket.
type twoReaders struct {
	Reconciler
	gets, lists int // of the API server
}

// others are accesses to a bucket, with accounts, in a version.
func others(many int, version string) []client.Object {
	all := make([]client.Object, many)
	for i := range all {
		a := accessTo(fmt.Sprintf("a-%d", i), pavv1.AccessReadWrite, new(account(0, called(fmt.Sprintf("%d-%s", i, version)))), nil, "b-u")
		a.UID, a.ResourceVersion, a.Spec.Provisioner = types.UID(a.Name), version, "p"
		a.Labels = map[string]string{pavv1.ProvisionerLabel: "p"}
		all[i] = &a
	}
	return all
}

func newReaders(t *testing.T, cached, live []client.Object) *twoReaders {
	t.Helper()
	r := &twoReaders{Reconciler: Reconciler{Client: reconciletest.Client(t, cached...)}}
	r.Live = interceptor.NewClient(reconciletest.Client(t, live...), interceptor.Funcs{
		Get: func(ctx context.Context, kube client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			r.gets++
			return kube.Get(ctx, key, object, options...)
		},
		List: func(ctx context.Context, kube client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			r.lists++
			return kube.List(ctx, list, options...)
		},
	})
	return r
}

// ids returns what the accounts are called.
func ids(accesses []pavv1.PavBucketAccess) string {
	var all []string
	for i := range accesses {
		all = append(all, accesses[i].Status.Current.AccountID)
	}
	return strings.Join(all, " ")
}

// However many accesses a bucket has, few requests tell what accounts they have now.
func TestLive(t *testing.T) {
	const few, many = fewReads, 100
	for name, test := range map[string]struct {
		cached, live []client.Object
		gets, lists  int
		has          map[string]bool // some of the accounts
	}{
		"few":                             {cached: others(few, "1"), live: others(few, "1"), gets: few - 1, has: map[string]bool{"0-1": true, "1-1": true}},
		"many":                            {cached: others(many, "1"), live: others(many, "1"), lists: 1, has: map[string]bool{"0-1": true, "1-1": true, "99-1": true}},
		"the cache is behind":             {cached: others(few, "1"), live: others(few, "2"), gets: few - 1, has: map[string]bool{"1-2": true, "1-1": false}},
		"the cache is behind, with many":  {cached: others(many, "1"), live: append(others(many, "1")[:98], others(many, "2")[98:]...), gets: 2, lists: 1, has: map[string]bool{"97-1": true, "98-2": true, "98-1": false}},
		"one is gone":                     {cached: others(few, "1"), live: others(few-1, "1"), gets: few - 1, has: map[string]bool{"18-1": true, "19-1": false}},
		"one is gone, with many":          {cached: others(many, "1"), live: others(many-1, "1"), gets: 1, lists: 1, has: map[string]bool{"98-1": true, "99-1": false}},
		"one has lost its label":          {cached: others(many, "1"), live: withoutLabel(others(many, "1")), gets: 1, lists: 1, has: map[string]bool{"99-1": true}},
		"the one that is asked for alone": {cached: others(1, "1"), live: others(1, "1"), has: map[string]bool{"0-1": true}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReaders(t, test.cached, test.live)
			of, ok := test.live[0].(*pavv1.PavBucketAccess)
			if !ok {
				t.Fatalf("it is a %T", test.live[0])
			}
			got, err := r.live(t.Context(), of, []string{"b-u", "b-u"})
			if err != nil || len(got) != len(test.live) {
				t.Fatalf("got %d accesses, want %d; %v", len(got), len(test.live), err)
			}
			if r.gets != test.gets || r.lists != test.lists {
				t.Errorf("it takes %d reads and %d lists, want %d and %d", r.gets, r.lists, test.gets, test.lists)
			}
			for id, want := range test.has {
				if has := strings.Contains(" "+ids(got)+" ", " "+id+" "); has != want {
					t.Errorf("account %q is there: %t; there are %s", id, has, ids(got))
				}
			}
		})
	}
}

func withoutLabel(all []client.Object) []client.Object {
	all[len(all)-1].SetLabels(nil)
	return all
}

// What is only planned takes no request.
func TestCached(t *testing.T) {
	r := newReaders(t, others(100, "1"), others(100, "2"))
	got, err := r.cached(t.Context(), nil, []string{"b-u"})
	if err != nil || len(got) != 100 || r.gets+r.lists > 0 {
		t.Errorf("got %d accesses by %d reads and %d lists; %v", len(got), r.gets, r.lists, err)
	}
}
