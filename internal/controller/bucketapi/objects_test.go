package bucketapi

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/albertofaria/pav/internal/reconcile"
)

func TestDeleteHeld(t *testing.T) {
	const ours, theirs = "example.com/ours", "example.com/theirs"
	for name, test := range map[string]struct {
		finalizers []string
		left       []string // the finalizers that hold it then; none where it is gone
	}{
		"nobody holds it":         {},
		"PaV holds it":            {finalizers: []string{ours}},
		"others hold it as well":  {finalizers: []string{ours, theirs}, left: []string{theirs}},
		"others hold it, not PaV": {finalizers: []string{theirs}, left: []string{theirs}},
	} {
		t.Run(name, func(t *testing.T) {
			object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "m", UID: "u", Finalizers: test.finalizers}}
			c := fake.NewClientBuilder().WithObjects(object).WithInterceptorFuncs(interceptor.Funcs{
				Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
					given := (&client.DeleteOptions{}).ApplyOptions(options)
					if given.Preconditions == nil || given.Preconditions.UID == nil || *given.Preconditions.UID != "u" {
						t.Errorf("an object that replaced it is deleted: %+v", given)
					}
					return c.Delete(ctx, object, options...)
				},
			}).Build()
			key := client.ObjectKeyFromObject(object)
			if err := c.Get(t.Context(), key, object); err != nil {
				t.Fatal(err)
			}
			if err := DeleteHeld(t.Context(), c, object, ours); err != nil {
				t.Fatal(err)
			}
			got := &corev1.ConfigMap{}
			err := c.Get(t.Context(), key, got)
			if gone := apierrors.IsNotFound(err); gone != (len(test.left) == 0) || !gone && err != nil {
				t.Fatalf("it is gone: %t, %v", gone, err)
			}
			if !slices.Equal(got.Finalizers, test.left) || len(test.left) > 0 && got.DeletionTimestamp == nil {
				t.Errorf("it has the finalizers %v, and is deleted at %v", got.Finalizers, got.DeletionTimestamp)
			}
		})
	}
}

func TestDeleteHeld_OfWhatIsGone(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "m", UID: "u", ResourceVersion: "1"}}
	if err := DeleteHeld(t.Context(), c, object, "example.com/ours"); err != nil {
		t.Errorf("nobody held it: %v", err)
	}
	object.Finalizers = []string{"example.com/ours"}
	if err := DeleteHeld(t.Context(), c, object, "example.com/ours"); !errors.Is(err, reconcile.ErrStale) {
		t.Errorf("PaV held it: got the error %v", err)
	}
}
