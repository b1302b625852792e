package integration

import (
	"context"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// has checks what a Secret has, and whose it is.
func has(t *testing.T, c *cluster, secret *corev1.Secret, key, value string) {
	t.Helper()
	now := &corev1.Secret{}
	if err := c.Admin.Get(t.Context(), client.ObjectKeyFromObject(secret), now); err != nil {
		t.Fatal(err)
	}
	if string(now.Data[key]) != value {
		t.Errorf("Secret %s has %q in %s, want %q", now.Name, now.Data[key], key, value)
	}
}

// The way of credentials to a Secret: it is created or, if there is one of that name, replaced. The controller agent learns that the
// name is taken from the answer, and never what the Secret has.
func TestControllerToken_DeliversCredentials(t *testing.T) {
	c := start(t)
	enableBuckets(t, c)
	thief := stolenController(t, c)
	ctx, uid := t.Context(), uuid.NewUUID()
	const key = "AWS_SECRET_ACCESS_KEY"
	with := func(value string) *corev1.Secret {
		return secretOf("default", "delivered", uid, func(s *corev1.Secret) { s.Data[key] = []byte(value) })
	}
	update := func(value string) error { return updating(with(value))(ctx, thief) }
	ours := with("1")
	if err := update("0"); !apierrors.IsNotFound(err) {
		t.Errorf("a Secret that does not exist is replaced: %v", err)
	}
	if err := thief.Create(ctx, ours); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeHeld(t, c, with(""), `{"metadata": {"finalizers": null}}`) })
	if err := thief.Create(ctx, with("2")); !apierrors.IsAlreadyExists(err) {
		t.Errorf("a Secret that exists is created: %v", err)
	}
	has(t, c, ours, key, "1")
	if err := update("3"); err != nil {
		t.Errorf("a Secret of this access is not replaced: %v", err)
	}
	has(t, c, ours, key, "3")

	label := func(value string) {
		t.Helper()
		if err := patching(ours, `{"metadata": {"labels": {"`+pavv1.AccessLabel+`": `+value+`}}}`)(ctx, c.Admin); err != nil {
			t.Fatal(err)
		}
	}
	label("null")
	wantRefusedAs(t, nameTaken, update("4"))
	wantRefusedAs(t, nameTaken, deleting(ours)(ctx, thief))
	has(t, c, ours, key, "3")
	label(`"` + string(uid) + `"`)
	if err := update("5"); err != nil {
		t.Errorf("a Secret whose label is back is not replaced: %v", err)
	}

	// The tenant deletes it, and makes one of their own of that name.
	removeHeld(t, c, ours, `{"metadata": {"finalizers": null}}`)
	theirs := mustCreate(t, c, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "delivered"}, Data: map[string][]byte{key: []byte("theirs")}})
	wantRefusedAs(t, nameTaken, update("6"))
	wantRefusedAs(t, nameTaken, deleting(theirs)(ctx, thief))
	has(t, c, theirs, key, "theirs")
	mustDelete(t, c, theirs)

	// One with the label is another one than was recorded.
	mustCreate(t, c, with("theirs"))
	recorded := with("7")
	recorded.UID = ours.UID
	if err := thief.Update(ctx, recorded); !apierrors.IsConflict(err) {
		t.Errorf("another Secret than the one that was recorded is replaced: %v", err)
	}
	has(t, c, ours, key, "theirs")

	// The API server refuses another type before it asks any policy.
	removeHeld(t, c, ours, `{"metadata": {"finalizers": null}}`)
	token := mustCreate(t, c, secretOf("default", "delivered", uid, func(s *corev1.Secret) {
		s.Type, s.Annotations = corev1.SecretTypeServiceAccountToken, map[string]string{corev1.ServiceAccountNameKey: "default"}
	}))
	if err := update("8"); !apierrors.IsInvalid(err) || strings.Contains(err.Error(), canary) {
		t.Errorf("a token of a service account is replaced: %v", err)
	}
	has(t, c, token, key, canary)
}

// wantRefusedAs checks that a policy has refused a request with some words.
func wantRefusedAs(t *testing.T, words string, err error) {
	t.Helper()
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), words) {
		t.Errorf("got %v, want a refusal with %q", err, words)
	}
}

// A tenant who makes a Secret of the same name again and again never finds another one's content in it.
func TestControllerToken_NeverReplacesASecretThatComesBetween(t *testing.T) {
	c := start(t)
	enableBuckets(t, c)
	thief, uid := stolenController(t, c), uuid.NewUUID()
	ours := secretOf("default", "raced", uid, func(s *corev1.Secret) { s.Finalizers = nil })
	theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "raced"}, StringData: map[string]string{"whose": "theirs"}}
	t.Cleanup(func() { mustDeleteLasting(t, c, copied(theirs)) })
	ctx, cancel := context.WithCancel(t.Context())
	var delivery sync.WaitGroup
	created, replaced, refused := 0, 0, 0
	delivery.Go(func() {
		for ctx.Err() == nil {
			err := thief.Create(ctx, copied(ours))
			if err == nil {
				created++
				continue
			}
			switch err = updating(ours)(ctx, thief); {
			case err == nil:
				replaced++
			case apierrors.IsForbidden(err):
				refused++
			case ctx.Err() == nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err):
				t.Error(err)
			}
		}
	})
	made := 0
	for range 300 {
		err := c.Admin.Create(t.Context(), copied(theirs))
		if err == nil {
			made++
			has(t, c, theirs, "whose", "theirs")
		}
		if err := c.Admin.Delete(t.Context(), copied(theirs)); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
	cancel()
	delivery.Wait()
	t.Logf("the tenant made %d; of the others, %d were created, %d replaced, and %d refused", made, created, replaced, refused)
	if made == 0 || created == 0 || replaced == 0 || refused == 0 {
		t.Error("some of these never happened")
	}
}
