package access

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	objectbucketv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/reconcile"
)

// answersDryRuns makes a client answer dry runs of replacements, and give UIDs, as an API server does.
func answersDryRuns(kube client.WithWatch) client.WithWatch {
	return interceptor.NewClient(kube, interceptor.Funcs{
		Create: func(ctx context.Context, kube client.WithWatch, object client.Object, options ...client.CreateOption) error {
			object.SetUID("made")
			return kube.Create(ctx, object, options...)
		},
		Update: func(ctx context.Context, kube client.WithWatch, object client.Object, options ...client.UpdateOption) error {
			if !isDryRun(options) {
				return kube.Update(ctx, object, options...)
			}
			found := &corev1.Secret{}
			err := kube.Get(ctx, client.ObjectKeyFromObject(object), found)
			object.SetUID(found.UID)
			object.SetResourceVersion(found.ResourceVersion)
			return err
		},
	})
}

func isDryRun(options []client.UpdateOption) bool {
	all := &client.UpdateOptions{}
	return len(all.ApplyOptions(options).DryRun) > 0
}

// The requests that an agent makes to write a Secret, in their order.
const (
	seesSecret      = "it sees the Secret"
	checksRecord    = "it checks the record"
	checksRequester = "it checks who asked"
	createsSecret   = "it creates the Secret"
	replacesSecret  = "it replaces the Secret"
)

// secretWorld is a world whose agent stalls once.
type secretWorld struct {
	*world
	stallsAt  string
	meanwhile func()
	requests  []string
}

func newSecretWorld(t *testing.T, others ...client.Object) *secretWorld {
	t.Helper()
	w := &secretWorld{world: newWorld(t, requested(granting, delivering), others...)}
	server, ok := w.Secrets.(client.WithWatch)
	if !ok {
		t.Fatalf("a client is a %T", w.Secrets)
	}
	w.Secrets = interceptor.NewClient(server, interceptor.Funcs{
		Create: func(ctx context.Context, kube client.WithWatch, object client.Object, options ...client.CreateOption) error {
			w.asks(createsSecret)
			if secret, ok := object.(*corev1.Secret); !ok || len(secret.Data) > 0 {
				t.Errorf("it is created with %+v", object)
			}
			return kube.Create(ctx, object, options...)
		},
		Update: func(ctx context.Context, kube client.WithWatch, object client.Object, options ...client.UpdateOption) error {
			if isDryRun(options) {
				w.asks(seesSecret)
			} else {
				w.asks(replacesSecret)
			}
			return kube.Update(ctx, object, options...)
		},
	})
	w.Live = interceptor.NewClient(server, interceptor.Funcs{
		Get: func(ctx context.Context, kube client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if _, ok := object.(*metav1.PartialObjectMetadata); ok && object.GetObjectKind().GroupVersionKind().Kind == kind {
				w.asks(checksRecord)
			} else if ok {
				w.asks(checksRequester)
			}
			return kube.Get(ctx, key, object, options...)
		},
	})
	return w
}

// asks is called before each request.
func (w *secretWorld) asks(what string) {
	w.requests = append(w.requests, what)
	if what == w.stallsAt && w.meanwhile != nil {
		meanwhile := w.meanwhile
		w.meanwhile = nil
		meanwhile()
	}
}

// nextLeader has the record changed and newer credentials written, as an agent does that leads after this one.
func (w *secretWorld) nextLeader(t *testing.T) func() {
	t.Helper()
	next := &Reconciler{Client: w.kube, Live: w.kube, Secrets: w.Secrets}
	return func() {
		w.changeRecord(t)
		if _, err := next.writeSecret(t.Context(), w.record(t), "photos", credentialsOf("newer")); err != nil {
			t.Error(err)
		}
	}
}

func (w *secretWorld) changeRecord(t *testing.T) {
	t.Helper()
	record := w.record(t)
	record.Status.Granting.Number++
	if err := w.kube.Status().Update(t.Context(), record); err != nil {
		t.Fatal(err)
	}
}

// secret returns the Secret of the access; nil if there is none.
func (w *secretWorld) secret(t *testing.T) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{}
	err := w.kube.Get(t.Context(), client.ObjectKey{Namespace: "tenant", Name: "photos"}, secret)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

func credentialsOf(text string) map[string][]byte { return map[string][]byte{"key": []byte(text)} }

// written is the Secret of the access with older credentials.
func written(t *testing.T) *corev1.Secret {
	t.Helper()
	secret, err := secretOf(requested().record, "photos")
	if err != nil {
		t.Fatal(err)
	}
	secret.UID, secret.Data, secret.Finalizers = "was", credentialsOf("oldest"), []string{objectbucketv1.Finalizer}
	return secret
}

func TestWriteSecret(t *testing.T) {
	for name, test := range map[string]struct {
		others []client.Object
		uid    string
		want   []string
	}{
		"there is none": {uid: "made", want: []string{seesSecret, checksRecord, checksRequester, createsSecret, checksRecord, checksRequester, replacesSecret}},
		"there is one":  {others: []client.Object{written(t)}, uid: "was", want: []string{seesSecret, checksRecord, checksRequester, replacesSecret}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSecretWorld(t, test.others...)
			uid, err := w.writeSecret(t.Context(), w.record(t), "photos", credentialsOf("new"))
			if err != nil || string(uid) != test.uid {
				t.Fatalf("got %q, %v", uid, err)
			}
			if !slices.Equal(w.requests, test.want) {
				t.Errorf("got the requests %q, want %q", w.requests, test.want)
			}
			if s := w.secret(t); string(s.Data["key"]) != "new" || !slices.Equal(s.Finalizers, []string{objectbucketv1.Finalizer}) {
				t.Errorf("got %q with %q", s.Data, s.Finalizers)
			}
		})
	}
}

// An agent stalls before one of its requests. Another leads meanwhile, and gives clients the credentials of a later account.
func TestWriteSecret_OfAStalledLeader(t *testing.T) {
	for name, test := range map[string]struct {
		others []client.Object
		stalls []string
	}{
		"there is none": {stalls: []string{seesSecret, checksRecord, createsSecret, replacesSecret}},
		"there is one":  {others: []client.Object{written(t)}, stalls: []string{seesSecret, checksRecord, replacesSecret}},
	} {
		for _, at := range test.stalls {
			t.Run(name+"/"+at, func(t *testing.T) {
				w := newSecretWorld(t, test.others...)
				w.stallsAt, w.meanwhile = at, w.nextLeader(t)
				_, err := w.writeSecret(t.Context(), w.record(t), "photos", credentialsOf("older"))
				if !errors.Is(err, reconcile.ErrStale) {
					t.Errorf("got %v", err)
				}
				if w.meanwhile != nil {
					t.Fatal("it never stalled")
				}
				if s := w.secret(t); string(s.Data["key"]) != "newer" || len(s.Finalizers) != 1 {
					t.Errorf("got %q with %q", s.Data, s.Finalizers)
				}
			})
		}
	}
}

// A Secret that an agent creates when its access is gone has nothing that keeps Kubernetes from deleting it, and no credentials.
func TestWriteSecret_AfterTheAccessIsGone(t *testing.T) {
	w := newSecretWorld(t)
	w.stallsAt, w.meanwhile = createsSecret, func() {
		record := w.record(t)
		record.Finalizers = nil
		if err := errors.Join(w.kube.Update(t.Context(), record), client.IgnoreNotFound(w.kube.Delete(t.Context(), record))); err != nil {
			t.Error(err)
		}
	}
	if _, err := w.writeSecret(t.Context(), w.record(t), "photos", credentialsOf("older")); !errors.Is(err, reconcile.ErrStale) {
		t.Errorf("got %v", err)
	}
	if s := w.secret(t); s == nil || len(s.Finalizers) > 0 || len(s.Data) > 0 || metav1.GetControllerOf(s) == nil {
		t.Errorf("got %+v", s)
	}
}

// The same for the end of an access: an administrator may give one up while the object that asked for it stays, and gets another account.
func TestRemoveSecret_OfAStalledLeader(t *testing.T) {
	for _, at := range []string{seesSecret, checksRecord, replacesSecret} {
		t.Run(at, func(t *testing.T) {
			w := newSecretWorld(t, written(t))
			w.stallsAt, w.meanwhile = at, w.nextLeader(t)
			if _, err := w.removeSecret(t.Context(), w.record(t), "photos"); !errors.Is(err, reconcile.ErrStale) {
				t.Errorf("got %v", err)
			}
			if s := w.secret(t); s == nil || string(s.Data["key"]) != "newer" {
				t.Errorf("got %+v", s)
			}
		})
	}
	w := newSecretWorld(t, written(t))
	if left, err := w.removeSecret(t.Context(), w.record(t), "photos"); left || err != nil || w.secret(t) != nil {
		t.Errorf("got %t, %v and %v", left, err, w.secret(t))
	}
}

// Without a version, a replacement would be of any.
func TestReplaceSecret_WithoutAVersion(t *testing.T) {
	w := newSecretWorld(t, written(t))
	if err := w.replaceSecret(t.Context(), w.record(t), written(t), &corev1.Secret{}); !errors.Is(err, errNoVersion) {
		t.Errorf("got %v", err)
	}
	if s := w.secret(t); string(s.Data["key"]) != "oldest" {
		t.Errorf("got %q", s.Data)
	}
}

// The API server does not let the agent change a Secret: it is another's, unless it was delivered. Then its credentials are left, which
// is told. The same for a key.
func TestRemoveSecret_WithoutTheRight(t *testing.T) {
	secrets := schema.GroupResource{Resource: "secrets"}
	denials := map[string]error{
		"the agent has no right":  apierrors.NewForbidden(secrets, "photos", nil),
		"it is immutable":         apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "photos", nil),
		"a webhook answers so":    apierrors.NewMethodNotSupported(secrets, "update"),
		"a client wraps a denial": fmt.Errorf("after 3 attempts: %w", apierrors.NewForbidden(secrets, "photos", nil)),
	}
	for name, denial := range denials {
		for _, delivered := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/delivered=%t", name, delivered), func(t *testing.T) {
				w := newWorld(t, requested(released, func(s *state) {
					s.record.Status.Phase, s.record.Status.RecordUID, s.record.Status.Key = pavv1.AccessRevoking, recordUID, "seal-record-1"
					if delivered {
						s.record.Status.Secrets = []pavv1.DeliveredSecret{{Name: "photos"}}
					}
				}), written(t))
				server, ok := w.Secrets.(client.WithWatch)
				if !ok {
					t.Fatalf("a client is a %T", w.Secrets)
				}
				w.Secrets = interceptor.NewClient(server, interceptor.Funcs{
					Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error { return denial },
					Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
						return apierrors.NewForbidden(secrets, "seal-record-1", nil)
					},
				})
				w.pass(t) // the key
				if w.record(t).Status.Key != "" || !w.told("SecretLeft") {
					t.Error("the key is in the way of the rest, or not told")
				}
				w.pass(t)
				if told := w.told("still has the credentials"); told != delivered {
					t.Errorf("that it is left is told: %t", told)
				}
				if err := w.kube.Get(t.Context(), client.ObjectKey{Name: w.name}, &pavv1.PavBucketAccess{}); !apierrors.IsNotFound(err) {
					t.Errorf("the record is there: %v", err)
				}
			})
		}
	}
}

// What the API server says of a Secret may quote it.
func TestAboutSecret_QuotesNothing(t *testing.T) {
	quoting := apierrors.NewInternalError(errors.New("canary"))
	for name, err := range map[string]error{"as it is": quoting, "wrapped": fmt.Errorf("retrying: %w", quoting), "no answer of the API server": errors.New("canary")} {
		if got := aboutSecret(written(t), "replacing", err); got == nil || strings.Contains(got.Error(), "canary") || errors.Is(got, err) {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
