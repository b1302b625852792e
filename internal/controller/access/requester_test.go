package access

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan"
)

func requesterGone(s *state) { s.requesterGone = true }

// sharing has the credentials that all accesses share delivered.
func sharing(s *state) {
	granting(s)
	delivering(s)
	s.record.Status.Pod, s.record.Status.Key, s.record.Status.Granting.Shared = nil, "", true
	s.record.Spec.AuthenticationType = pavv1.AuthenticationKey
	s.record.Spec.Access, s.record.Spec.Class = &apiextensionsv1.JSON{Raw: []byte(`{}`)}, &apiextensionsv1.JSON{Raw: []byte(`{}`)}
	s.provisioner.Spec.BucketAccessGrant = &pavv1.BucketAccessGrant{FromSecret: &pavv1.Template{Raw: []byte(`"all"`)}}
}

// The object that asked for access may be gone before its credentials are delivered, and another one may have its name, in a namespace that
// belongs to another tenant by now.
func TestDeliver_ToWhoIsGone(t *testing.T) {
	all := func() client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: pavv1.CredentialsNamespace, Name: "all"}, Data: map[string][]byte{"accessKeyId": []byte("id-of-all"), "accessSecretKey": []byte("secret-of-all")}}
	}
	for name, test := range map[string]struct {
		state  state
		others []client.Object
		want   bool // whether they are delivered
	}{
		"it is there":                 {state: requested(sharing), want: true},
		"it is gone":                  {state: requested(sharing, requesterGone)},
		"another object has the name": {state: requested(sharing, requesterGone), others: []client.Object{requesterOf("v")}},
	} {
		t.Run(name, func(t *testing.T) {
			w := &secretWorld{world: newWorld(t, test.state, append(test.others, all())...)}
			w.pass(t)
			secret, status := w.secret(t), w.record(t).Status
			if delivered := secret != nil && string(secret.Data["AWS_SECRET_ACCESS_KEY"]) == "secret-of-all"; delivered != test.want || (secret != nil) != test.want {
				t.Errorf("the Secret is %+v", secret)
			}
			if test.want {
				return
			}
			if status.Granting != nil || len(status.Former) != 1 || status.Failure == nil || !strings.Contains(status.Failure.Message, "does not exist any more") {
				t.Errorf("the status is %+v", status)
			}
		})
	}
}

// A claim, and with it its namespace, is deleted and made again while an agent stalls before one of its requests.
func TestWriteSecret_WhileTheRequesterIsReplaced(t *testing.T) {
	for name, test := range map[string]struct {
		others []client.Object
		stalls []string
	}{
		"there is none": {stalls: []string{seesSecret, checksRecord, checksRequester, createsSecret, replacesSecret}},
		"there is one":  {others: []client.Object{written(t)}, stalls: []string{seesSecret, checksRecord, checksRequester, replacesSecret}},
	} {
		for _, at := range test.stalls {
			t.Run(name+"/"+at, func(t *testing.T) {
				w := newSecretWorld(t, test.others...)
				w.stallsAt, w.meanwhile = at, func() {
					if s := w.secret(t); s != nil {
						s.Finalizers = nil
						if err := w.kube.Update(t.Context(), s); err != nil {
							t.Error(err)
						}
						if err := w.kube.Delete(t.Context(), s); err != nil {
							t.Error(err)
						}
					}
					if err := w.kube.Delete(t.Context(), requesterOf("u")); err != nil {
						t.Error(err)
					}
					if err := w.kube.Create(t.Context(), requesterOf("v")); err != nil {
						t.Error(err)
					}
				}
				if _, err := w.writeSecret(t.Context(), w.record(t), "photos", credentialsOf("another tenant's")); err == nil {
					t.Error("it is written")
				}
				if w.meanwhile != nil {
					t.Fatal("it never stalled")
				}
				if s := w.secret(t); s != nil && len(s.Data) > 0 {
					t.Errorf("another tenant's credentials are in %+v", s)
				}
			})
		}
	}
}

// A record of which nobody says that it is not wanted any more gets no further accounts.
func TestGrant_ForWhoIsGone(t *testing.T) {
	w := newWorld(t, granted(rotates(30*time.Minute), requesterGone))
	w.pass(t)
	status := w.record(t).Status
	if status.Granting != nil || status.Pod != nil || status.Current == nil || status.Failure == nil || !w.told("does not exist any more") {
		t.Errorf("the status is %+v", status)
	}
}

func TestCheckRequester(t *testing.T) {
	claims := schema.GroupResource{Group: "objectbucket.io", Resource: "objectbucketclaims"}
	for name, test := range map[string]struct {
		answer  error
		refused bool
	}{
		"it is there":                    {},
		"it is gone":                     {answer: apierrors.NewNotFound(claims, "photos"), refused: true},
		"there is no such kind":          {answer: &meta.NoKindMatchError{}, refused: true},
		"the agent has no right to that": {answer: apierrors.NewForbidden(claims, "photos", nil), refused: true},
		"the API server does not answer": {answer: apierrors.NewInternalError(context.DeadlineExceeded)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, requested())
			kube, ok := w.kube.(client.WithWatch)
			if !ok {
				t.Fatalf("a client is a %T", w.kube)
			}
			w.Live = interceptor.NewClient(kube, interceptor.Funcs{
				Get: func(ctx context.Context, kube client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
					if test.answer != nil {
						return test.answer
					}
					return kube.Get(ctx, key, object, options...)
				},
			})
			err := w.checkRequester(t.Context(), w.record(t))
			if (err != nil) != (test.answer != nil) || podplan.IsRefusal(err) != test.refused {
				t.Errorf("got %v", err)
			}
		})
	}
}

// The access of a volume is wanted as long as the record of the volume is there: another claim may have the volume than the one that it was
// created for.
func TestCheckRequester_OfAVolume(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(*pavv1.PavVolume) // nil if there is no PavVolume
		claim   bool
		refused bool
	}{
		"the volume is there":            {change: func(*pavv1.PavVolume) {}},
		"the volume is gone":             {claim: true, refused: true},
		"the volume is no bucket":        {change: func(v *pavv1.PavVolume) { v.Spec.BucketRef = nil }, refused: true},
		"the volume is another's":        {change: func(v *pavv1.PavVolume) { v.Spec.ClaimRef.UID = "v" }, refused: true},
		"it is of another provisioner":   {change: func(v *pavv1.PavVolume) { v.Spec.Provisioner = "other" }, refused: true},
		"the volume and its claim exist": {change: func(*pavv1.PavVolume) {}, claim: true},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			if test.change != nil {
				volume := &pavv1.PavVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-u"}}
				volume.Spec.Provisioner, volume.Spec.ClaimRef = "p", pavv1.ClaimReference{Namespace: "tenant", Name: "photos", UID: "u"}
				volume.Spec.BucketRef = &pavv1.VolumeBucketReference{Name: "b-u"}
				test.change(volume)
				objects = append(objects, volume)
			}
			if test.claim {
				objects = append(objects, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "photos", UID: "u"}})
			}
			w := newWorld(t, requested(ofAVolume, requesterGone), objects...)
			if err := w.checkRequester(t.Context(), w.record(t)); (err != nil) != test.refused || podplan.IsRefusal(err) != test.refused {
				t.Errorf("got %v", err)
			}
		})
	}
}

// ofAVolume lets a volume ask for the access.
func ofAVolume(s *state) {
	s.record.Spec.API = pavv1.BucketAPIVolume
	s.record.Spec.Requester = pavv1.AccessRequester{Kind: "PersistentVolumeClaim", Namespace: "tenant", Name: "photos", UID: "u"}
}
