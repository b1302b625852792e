package integration

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// The controller agent replaces the copy of a claim by a JSON patch that tests which copy it replaces. It relies on how the
// API server answers if the test fails.
func TestCopyOfAClaim_IsReplacedOnlyIfItIsTheOneThatIsTested(t *testing.T) {
	c := start(t)
	run(t, c)
	driver(t, c, "tested")
	claim := mustCreate(t, c, claimOf("tested", "data"))
	_, volume := bound(t, c, claim)
	exists(t, c, volume, "has a copy of the bound claim", func(v *pavv1.PavVolume) bool {
		return v.Status.Phase == pavv1.VolumeReady && copyOf(t, v).Status.Phase == corev1.ClaimBound
	})
	version := copiedVersion(t, volume)
	patch := client.RawPatch(types.JSONPatchType, []byte(`[
		{"op": "test", "path": "/spec/claim/metadata/resourceVersion", "value": "1"},
		{"op": "add", "path": "/spec/claim", "value": {"metadata": {"resourceVersion": "2"}}}
	]`))
	if err := c.Admin.Patch(t.Context(), volume.DeepCopy(), patch); !apierrors.IsInvalid(err) {
		t.Errorf("got %v, want that it is invalid", err)
	}
	exists(t, c, volume, "has the copy that it had", func(v *pavv1.PavVolume) bool { return copiedVersion(t, v) == version })

	// The copy follows each change of the claim, with all of its fields.
	mustPatch(t, c, claim, func(p *corev1.PersistentVolumeClaim) { p.Labels = map[string]string{"owner": "me"} })
	exists(t, c, volume, "has the label in its copy", func(v *pavv1.PavVolume) bool { return copyOf(t, v).Labels["owner"] == "me" })
	mustPatch(t, c, claim, func(p *corev1.PersistentVolumeClaim) { p.Labels = nil })
	exists(t, c, volume, "has no label in its copy any more", func(v *pavv1.PavVolume) bool { return len(copyOf(t, v).Labels) == 0 })
	mustDelete(t, c, claim)
	gone(t, c, volume)
}
