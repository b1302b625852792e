package reconcile_test

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/reconcile/reconciletest"
)

func TestCheckComplete(t *testing.T) {
	live := reconciletest.Client(t, &pavv1.PavBucketAccess{ObjectMeta: metav1.ObjectMeta{Name: "a-1", UID: "1"}}, &pavv1.PavBucket{ObjectMeta: metav1.ObjectMeta{Name: "b-2", UID: "2"}})
	for name, test := range map[string]struct {
		cached types.UID
		want   error
	}{
		"the cache has it":           {cached: "1"},
		"the cache has a former":     {cached: "0", want: reconcile.ErrStale},
		"the cache has another kind": {cached: "2", want: reconcile.ErrStale},
	} {
		t.Run(name, func(t *testing.T) {
			err := reconcile.CheckComplete(t.Context(), live, "PavBucketAccess", map[types.UID]bool{test.cached: true})
			if !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
}
