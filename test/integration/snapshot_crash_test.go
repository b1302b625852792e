package integration

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// The agent is stopped after each of its writes in turn (in the short suite, after every twenty-fourth) while a snapshot is made and
// deleted, with and without a failure in the middle, or deleted before it is made: each pod runs exactly once.
func TestSnapshot_WithAnAgentThatIsStoppedAfterEachWrite(t *testing.T) {
	c := start(t)
	const creation, deletion = pavv1.WorkflowSnapshotCreation, pavv1.WorkflowSnapshotDeletion
	tests := map[string]struct {
		code func(kind string, number int) int32
		made bool // whether the snapshot is made before it is deleted
		want map[string]int
	}{
		"all succeed": {
			code: func(string, int) int32 { return 0 }, made: true,
			want: map[string]int{creation: 1, deletion: 1},
		},
		"the first creation fails, and its revert once": {
			code: func(_ string, number int) int32 {
				if number == 1 {
					return 3
				}
				return 0
			},
			made: true, want: map[string]int{creation: 2, deletion: 3},
		},
		"it is deleted in the making": {
			code: func(kind string, _ int) int32 {
				if kind == creation {
					return goesOn
				}
				return 0
			},
			want: map[string]int{creation: 1, deletion: 1},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			stopAfterEachWrite(t, c, 24, func(t *testing.T) {
				t.Helper()
				h := runFakeKubelets(t, c, test.code)
				snapAndDelete(t, c, test.made)
				if diff := cmp.Diff(test.want, h.rest()); diff != "" {
					t.Errorf("pods (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// snapAndDelete takes a snapshot through its life.
func snapAndDelete(t *testing.T, c *cluster, made bool) {
	t.Helper()
	const name = "crash-snapped"
	_, pv, volume := snappedVolume(t, c, name)
	s := requestSnapshot(t, c, pv, name, name)
	if made {
		s.wantSays(t, s.record.Name+", 1073741824, ready.")
		exists(t, c, s.record, "is ready", func(r *pavv1.PavSnapshot) bool {
			return r.Status.Phase == pavv1.SnapshotReady && r.Status.Failure == nil && r.Status.Pod == nil && meta.IsStatusConditionTrue(r.Status.Conditions, pavv1.SnapshotCreated)
		})
		wantReaders(t, c, volume)
	} else {
		eventually(t, "the creation pod runs", func(ctx context.Context) (bool, string) {
			pods := &corev1.PodList{}
			err := c.Admin.List(ctx, pods)
			return err == nil && len(pods.Items) > 0, fmt.Sprint(err)
		})
	}
	s.delete(t)
	s.wantGone(t)
	wantReaders(t, c, volume)
	noPodIsLeft(t, c)
}
