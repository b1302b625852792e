package integration

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	storagev1 "k8s.io/api/storage/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// The agent is stopped after each of its writes in turn (in the short suite, after every twenty-fourth) while a volume is restored from a
// snapshot, or cloned, with and without a failure in the middle: each pod runs exactly once, and nothing is left among the readers.
func TestSource_WithAnAgentThatIsStoppedAfterEachWrite(t *testing.T) {
	c := start(t)
	const creation, deletion = pavv1.WorkflowCreation, pavv1.WorkflowDeletion
	tests := map[string]struct {
		restores bool // or else clones
		fails    bool // whether the second creation pod, which copies, fails
		want     map[string]int
	}{
		"a clone": {want: map[string]int{creation: 2, deletion: 2}},
		"a restore, whose first attempt fails": {restores: true, fails: true, want: map[string]int{
			creation: 3, deletion: 3, pavv1.WorkflowSnapshotCreation: 1, pavv1.WorkflowSnapshotDeletion: 1,
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			stopAfterEachWrite(t, c, 24, func(t *testing.T) {
				t.Helper()
				h := runFakeKubelets(t, c, func(kind string, number int) int32 {
					if test.fails && kind == creation && number == 2 {
						return 3
					}
					return 0
				})
				copyAndDelete(t, c, test.restores)
				if diff := cmp.Diff(test.want, h.rest()); diff != "" {
					t.Errorf("pods (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// copyAndDelete takes a volume and its copy through their lives. The source is deleted as soon as the copy is requested and recorded.
func copyAndDelete(t *testing.T, c *cluster, restores bool) {
	t.Helper()
	const name = "crash-copied"
	driver(t, c, name, snapshottable, inPool, copying, func(p *pavv1.PavProvisioner, _ *storagev1.StorageClass) {
		p.Spec.VolumeCreation.Handle = field(`"{{ defaultHandle }}"`)
	})
	snapshotClass(t, c, name, name)
	source := mustCreate(t, c, ownedClaim(name, "me"))
	pv, volume := bound(t, c, source)
	copied := fromClaim(name, "copy", source.Name)
	var s *snapshot
	if restores {
		s = requestSnapshot(t, c, pv, name, name)
		s.wantSays(t, s.record.Name+", 1073741824, ready.")
		s.bind(t, true)
		copied = fromSnapshot(name, "copy", name)
	}
	mustCreate(t, c, copied)
	exists(t, c, volumeOf(copied), "is recorded", func(*pavv1.PavVolume) bool { return true })
	if restores {
		s.delete(t)
	}
	mustDelete(t, c, source)
	copiedPV, copiedVolume := bound(t, c, copied)
	if restores {
		s.wantGone(t)
	}
	gone(t, c, volume)
	gone(t, c, pv)
	wantReaders(t, c, copiedVolume)
	mustDelete(t, c, copied)
	gone(t, c, copiedPV)
	gone(t, c, copiedVolume)
	noPodIsLeft(t, c)
}
