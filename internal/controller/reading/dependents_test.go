package reading

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/reconcile/reconciletest"
	"github.com/albertofaria/pav/internal/workflow"
)

// Storage is needed by what is being created from it, and by what depends on it, and by nothing else.
func TestDependents(t *testing.T) {
	key := pavv1.SourceVolume("h")
	volume := func(name, provisioner, handle string, kind pavv1.DataSourceKind, status pavv1.PavVolumeStatus) client.Object {
		source := &pavv1.DataSource{Kind: kind, Handle: handle}
		return &pavv1.PavVolume{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{pavv1.ProvisionerLabel: provisioner, pavv1.SourceLabel: workflow.Hash(source.Key())}},
			Spec:       pavv1.PavVolumeSpec{Provisioner: provisioner, Source: source}, Status: status,
		}
	}
	const claim = pavv1.DataSourceClaim
	c := reconciletest.Client(t,
		volume("new", "p", "h", claim, pavv1.PavVolumeStatus{}),
		volume("pending", "p", "h", claim, pavv1.PavVolumeStatus{Phase: pavv1.VolumePending}),
		volume("ready", "p", "h", claim, pavv1.PavVolumeStatus{Phase: pavv1.VolumeReady}),
		volume("linked", "p", "h", claim, pavv1.PavVolumeStatus{Phase: pavv1.VolumeReady, DependsOnSource: true}),
		volume("linked-and-deleted", "p", "h", claim, pavv1.PavVolumeStatus{Phase: pavv1.VolumeDeleting, Step: pavv1.StepDeleted, DependsOnSource: true}),
		volume("of-another-volume", "p", "i", claim, pavv1.PavVolumeStatus{}),
		volume("of-a-snapshot", "p", "h", pavv1.DataSourceSnapshot, pavv1.PavVolumeStatus{}),
		volume("of-another-provisioner", "q", "h", claim, pavv1.PavVolumeStatus{}),
		&pavv1.PavVolume{ObjectMeta: metav1.ObjectMeta{Name: "empty", Labels: map[string]string{pavv1.ProvisionerLabel: "p"}}, Spec: pavv1.PavVolumeSpec{Provisioner: "p"}},
	)
	s := Readers{Client: c, Live: c}
	want := []string{"linked", "new", "pending"}
	if got, err := s.Dependents(t.Context(), "p", key); err != nil || !slices.Equal(slices.Sorted(slices.Values(got)), want) {
		t.Errorf("according to the cache: %q, %v", got, err)
	}
	if got, err := s.LiveDependents(t.Context(), "p", key); err != nil || !slices.Equal(slices.Sorted(slices.Values(got)), want) {
		t.Errorf("according to the API server: %q, %v", got, err)
	}
}
