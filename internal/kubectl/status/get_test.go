package status

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// reader has one volume, and returns an error for the list of PersistentVolumes. It counts lists.
type reader struct {
	client.Reader
	err   error
	lists int
}

func (r *reader) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	r.lists++
	switch list := list.(type) {
	case *pavv1.PavVolumeList:
		list.Items = []pavv1.PavVolume{{Spec: pavv1.PavVolumeSpec{ClaimRef: pavv1.ClaimReference{Namespace: "apps", Name: "data"}}}}
	case *corev1.PersistentVolumeList:
		return r.err
	}
	return nil
}

func TestRead_ByAUserWhoMayNotListPersistentVolumes(t *testing.T) {
	resource := schema.GroupResource{Resource: "persistentvolumes"}
	r := &reader{err: apierrors.NewForbidden(resource, "", nil)}
	volumes, err := readVolumes(t.Context(), r, "")
	if err != nil || len(volumes) != 1 || volumes[0].Claim != "data" {
		t.Errorf("got %+v, %v", volumes, err)
	}
	if r.lists != 3 {
		t.Errorf("got %d lists, want one per kind", r.lists)
	}
	if volumes, err := readVolumes(t.Context(), &reader{err: apierrors.NewTimeoutError("slow", 1)}, ""); err == nil {
		t.Errorf("of a server that does not answer: got %+v", volumes)
	}
}
