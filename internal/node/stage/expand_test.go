package stage

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// With scope Pod, a volume that cannot be unstaged for one client pod keeps no other one from the new capacity.
func TestExpandable_LeavesOutClientsWithoutUseForTheCapacity(t *testing.T) {
	n := newNode(t)
	v := Volume{Driver: "driver", Handle: "handle"}
	n.withVolumes(v, "pv")
	shared, _ := n.stager.names(v)
	n.ledger(t, v, shared).Spec.Scope = pavv1.StagingScopePod
	for target, phase := range map[string]pavv1.StagePhase{
		"/staged": pavv1.StageStaged, "/staging": pavv1.StageStaging, "/unstaging": pavv1.StageUnstaging,
	} {
		stage := n.ledger(t, v, n.stager.namesOf(Subject{Volume: v, Target: target})[0])
		stage.Spec.Scope, stage.Spec.Client, stage.Status.Phase = pavv1.StagingScopePod, &pavv1.StageClient{Target: target}, phase
	}
	subjects, err := n.stager.expandable(t.Context(), Subject{Volume: v})
	must(t, err)
	var got []string
	for _, of := range subjects {
		got = append(got, of.Target)
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"/staged", "/staging"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
