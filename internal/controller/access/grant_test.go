package access

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/template"
)

// A request asks for one account, even if its attempt begins in the same second: that is all that the record has of it.
func TestGrant_ServesARequestOnce(t *testing.T) {
	for _, since := range []time.Duration{0, time.Millisecond, 700 * time.Millisecond, 2 * time.Second} {
		now := noon.Add(750 * time.Millisecond)
		s := granted(func(s *state) {
			s.record.Annotations = map[string]string{pavv1.RotateAnnotation: now.Add(-since).Format(pavv1.RetryFormat)}
			s.record.Spec.AuthenticationType = pavv1.AuthenticationKey
			s.record.Spec.Access, s.record.Spec.Class = &apiextensionsv1.JSON{Raw: []byte(`{}`)}, &apiextensionsv1.JSON{Raw: []byte(`{}`)}
			s.provisioner.Spec.BucketAccessGrant = &pavv1.BucketAccessGrant{FromSecret: &pavv1.Template{Raw: []byte(`"all"`)}}
		})
		w := newWorld(t, s, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: pavv1.CredentialsNamespace, Name: "all"},
			Data:       map[string][]byte{"accessKeyId": []byte("id"), "accessSecretKey": []byte("secret")},
		})
		w.Now = func() time.Time { return now }
		w.pass(t) // the attempt
		w.pass(t) // the delivery
		record := w.record(t)
		if record.Status.Current == nil || record.Status.Current.Number != 1 {
			t.Fatalf("a request of %s before: the status is %+v", since, record.Status)
		}
		if next := podplan.NextRotation(record, s.provisioner.Spec.BucketAccessGrant); !next.IsZero() {
			t.Errorf("a request of %s before: another account is due at %s", since, next)
		}
	}
}

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

// The older of two accesses gets its account, even if the younger one is tried again and again: that begins no attempt which would leave no
// place for one that was requested before it. All states that five accesses may be in are tried.
func TestEarlier_LeavesAPlaceToWhoWasFirst(t *testing.T) {
	const number, states = 5, 3 // of no account, being given one, having one
	for mask := range 243 {
		accesses := make([]pavv1.PavBucketAccess, number)
		for i := range accesses {
			accesses[i] = accessTo(string(rune('a'+i)), pavv1.AccessReadWrite, nil, nil, "b")
			accesses[i].CreationTimestamp = metav1.NewTime(noon.Add(time.Duration(i) * time.Second))
			switch state := mask % states; state {
			case 1:
				accesses[i].Status.Granting = new(account(0, neverGranted))
			case 2:
				accesses[i].Status.Current = new(account(0))
			}
			mask /= states
		}
		for y := range accesses {
			if accesses[y].Status.Granting != nil || accesses[y].Status.Current != nil {
				continue
			}
			before := earlier(accesses, &accesses[y])
			accesses[y].Status.Granting = new(account(0, neverGranted))
			for o := range y {
				if first := earlier(accesses, &accesses[o]); first > before && accesses[o].Status.Current == nil {
					t.Fatalf("%d may begin beside %d others, and %d, which was first, is beside %d then", y, before, o, first)
				}
			}
			accesses[y].Status.Granting = nil
		}
	}
}
