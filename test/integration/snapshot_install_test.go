package integration

import (
	"os"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/albertofaria/pav/internal/workflow"
)

// The definitions of snapshots are an add-on, which may be installed later than PaV: without a restart, there are snapshots then.
func TestSnapshot_DefinitionsAreInstalledLater(t *testing.T) {
	c := start(t)
	install := func() {
		if err := c.InstallSnapshots(os.Getenv("KUBEBUILDER_ASSETS")); err != nil {
			t.Error(err)
		}
	}
	for _, kind := range []string{"volumesnapshotcontents", "volumesnapshots", "volumesnapshotclasses"} {
		definition := &unstructured.Unstructured{}
		definition.SetAPIVersion("apiextensions.k8s.io/v1")
		definition.SetKind(kindCRD)
		definition.SetName(kind + ".snapshot.storage.k8s.io")
		mustDelete(t, c, definition)
		gone(t, c, definition)
	}
	t.Cleanup(install) // for the tests that follow, if this one fails
	run(t, c)
	driver(t, c, "snapped-later", snapshottable)
	pv, _ := bound(t, c, mustCreate(t, c, ownedClaim("snapped-later", "me")))
	install()
	snapshotClass(t, c, "snapped-later", "snapped-later")
	s := requestSnapshot(t, c, pv, "snapped-later", "monday")
	end(t, c, s.creation(t, 1, "none"), workflow.Result{}, 0)
	s.wantSays(t, s.record.Name+", 1073741824, ready.")
	s.delete(t)
	end(t, c, s.deletion(t, 2, s.record.Name), workflow.Result{}, 0)
	s.wantGone(t)
}
