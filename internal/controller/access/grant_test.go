package access

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/template"
)

// A bucket that may have one access has one, whichever of two that come at once the agent sees first.
func TestCheckCeilings(t *testing.T) {
	for name, test := range map[string]struct {
		other func(*pavv1.PavBucketAccess)
		want  bool // whether the grant is refused
	}{
		"another was requested before":                   {other: func(a *pavv1.PavBucketAccess) { a.CreationTimestamp = metav1.NewTime(noon.Add(-time.Hour)) }, want: true},
		"another of the same second, and a smaller name": {other: func(a *pavv1.PavBucketAccess) { a.Name = "a-1" }, want: true},
		"another of the same second, and a larger name":  {other: func(*pavv1.PavBucketAccess) {}},
		"that one has an account":                        {other: func(a *pavv1.PavBucketAccess) { a.Status.Current = new(account(0)) }, want: true},
		"that one is being given an account":             {other: func(a *pavv1.PavBucketAccess) { a.Status.Granting = new(account(0, neverGranted)) }, want: true},
		"another bucket":                                 {other: func(a *pavv1.PavBucketAccess) { a.Spec.Buckets[0].Bucket, a.Status.Current = "b-2", new(account(0)) }},
	} {
		t.Run(name, func(t *testing.T) {
			s := requested(func(s *state) {
				s.record.CreationTimestamp = metav1.NewTime(noon)
				s.provisioner.Spec.BucketValidation = &pavv1.BucketValidation{MaxAccessesPerBucket: &pavv1.Template{Raw: []byte(`1`)}}
			})
			other := accessTo("a-v", pavv1.AccessReadWrite, nil, nil, "b-u")
			other.CreationTimestamp = metav1.NewTime(noon)
			test.other(&other)
			w := newWorld(t, s, &other)
			definition := podplan.BucketDefinition{Provisioner: "uid", Generation: 1, Spec: &s.provisioner.Spec, Templates: template.NewEvaluator(template.DefaultLimits())}
			err := w.checkCeilings(t.Context(), s.observation, podplan.AccessRequest{BucketDefinition: definition})
			if podplan.IsRefusal(err) != test.want || err != nil && !test.want {
				t.Errorf("got %v", err)
			}
		})
	}
}
