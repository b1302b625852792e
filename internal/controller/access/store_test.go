package access

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/template"
)

// Records keep the store with which they were written. If the administrator changes what a store is, a later claim of the same bucket must
// not get a policy of its own.
func TestCheckStores(t *testing.T) {
	type edit = func(*pavv1.PavBucket)
	in := func(store string) edit { return func(b *pavv1.PavBucket) { b.Spec.Store = store } }
	at := func(endpoint string) edit {
		return func(b *pavv1.PavBucket) { b.Spec.Parameters = map[string]string{"endpoint": endpoint} }
	}
	record := func(name, namespace string, edits ...edit) *pavv1.PavBucket {
		b := &pavv1.PavBucket{ObjectMeta: metav1.ObjectMeta{Name: name}}
		b.Spec.Provisioner, b.Spec.ExistingBucketID, b.Spec.ClaimRef = "p", "archive", pavv1.ClaimReference{Namespace: namespace, Name: "photos"}
		b.Status.Phase, b.Status.BucketID = pavv1.BucketReady, "archive"
		for _, edit := range edits {
			edit(b)
		}
		return b
	}
	const byEndpoint, everywhere = `"{{ params.endpoint }}"`, `"one"`
	earlierAccess := func(a *pavv1.PavBucketAccess) { a.CreationTimestamp = metav1.NewTime(noon.Add(-time.Hour)) }
	laterAccess := func(a *pavv1.PavBucketAccess) { a.CreationTimestamp = metav1.NewTime(noon.Add(time.Hour)) }
	withAccount := func(a *pavv1.PavBucketAccess) { a.Status.Current = new(account(0)) }
	for name, test := range map[string]struct {
		store  string // of the present definition
		own    *pavv1.PavBucket
		other  *pavv1.PavBucket
		access []func(*pavv1.PavBucketAccess) // of the other; nil for none
		has    bool                           // clients have access already
		want   bool                           // whether the grant is refused
	}{
		"the same store": {store: byEndpoint, own: record("b-u", "tenant", in("x"), at("x")), other: record("b-2", "other", in("x"), at("x")),
			access: []func(*pavv1.PavBucketAccess){earlierAccess}},
		"two stores, now as then": {store: byEndpoint, own: record("b-u", "tenant", in("x"), at("x")), other: record("b-2", "other", in("y"), at("y")),
			access: []func(*pavv1.PavBucketAccess){earlierAccess}},
		"there were no stores before": {store: byEndpoint, own: record("b-u", "tenant", in("x"), at("x")), other: record("b-2", "other", at("x")),
			access: []func(*pavv1.PavBucketAccess){earlierAccess}, want: true},
		"there were no stores before, and now they differ": {store: byEndpoint, own: record("b-u", "tenant", in("x"), at("x")), other: record("b-2", "other", at("y")),
			access: []func(*pavv1.PavBucketAccess){earlierAccess}},
		"there is one store now": {store: everywhere, own: record("b-u", "tenant", in("one"), at("x")), other: record("b-2", "other", in("y"), at("y")),
			access: []func(*pavv1.PavBucketAccess){earlierAccess}, want: true},
		"the other has no access": {store: byEndpoint, own: record("b-u", "tenant", in("x"), at("x")), other: record("b-2", "other", at("x"))},
		"the other asks for access later": {store: byEndpoint, own: record("b-u", "tenant", in("x"), at("x")), other: record("b-2", "other", at("x")),
			access: []func(*pavv1.PavBucketAccess){laterAccess}},
		"the other asks later, and has an account": {store: byEndpoint, own: record("b-u", "tenant", in("x"), at("x")), other: record("b-2", "other", at("x")),
			access: []func(*pavv1.PavBucketAccess){laterAccess, withAccount}, want: true},
		"clients have access": {store: byEndpoint, own: record("b-u", "tenant", in("x"), at("x")), other: record("b-2", "other", at("x")),
			access: []func(*pavv1.PavBucketAccess){earlierAccess}, has: true},
		"another bucket": {store: byEndpoint, own: record("b-u", "tenant", in("x"), at("x")),
			other: record("b-2", "other", at("x"), func(b *pavv1.PavBucket) { b.Status.BucketID, b.Spec.ExistingBucketID = "videos", "videos" }), access: []func(*pavv1.PavBucketAccess){earlierAccess}},
	} {
		t.Run(name, func(t *testing.T) {
			s := requested(func(s *state) {
				s.record.CreationTimestamp = metav1.NewTime(noon)
				s.buckets = []*pavv1.PavBucket{test.own}
				s.provisioner.Spec.BucketValidation = &pavv1.BucketValidation{Store: &pavv1.Template{Raw: []byte(test.store)}}
				if test.has {
					s.record.Status.Current = new(account(0))
				}
			})
			others := []client.Object{test.other}
			if test.access != nil {
				access := accessTo("a-2", pavv1.AccessReadWrite, nil, nil, test.other.Name)
				access.Spec.Provisioner = "p"
				for _, edit := range test.access {
					edit(&access)
				}
				others = append(others, &access)
			}
			w := newWorld(t, s, others...)
			definition := podplan.BucketDefinition{Provisioner: "uid", Generation: 1, Spec: &s.provisioner.Spec, Templates: template.NewEvaluator(template.DefaultLimits())}
			err := w.checkStores(t.Context(), s.observation, definition)
			if podplan.IsRefusal(err) != test.want || err != nil && !test.want {
				t.Fatalf("got %v", err)
			}
			if err == nil {
				return
			}
			for _, part := range []string{`PavBucket "b-2" of claim other/photos`, `in the store "` + test.own.Spec.Store + `"`, `in "` + test.other.Spec.Store + `"`} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q is not in %v", part, err)
				}
			}
		})
	}
}
