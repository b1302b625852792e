package integration

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	cosiv2 "github.com/albertofaria/pav/internal/api/cosi/v1alpha2"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// The agent is stopped after each of its writes in turn (in the short suite, after every twentieth) while a Bucket of COSI's first proposal
// gets its bucket and an account, and all go again: each pod runs exactly once, and no account, Secret, key or BucketContent is left.
func TestCOSIProposal_WithAnAgentThatIsStoppedAfterEachWrite(t *testing.T) {
	c := withProposal(t)
	want := map[string]int{pavv1.WorkflowBucketCreation: 1, pavv1.WorkflowGrant: 1, pavv1.WorkflowRevocation: 1, pavv1.WorkflowBucketDeletion: 1}
	stopAfterEachWrite(t, c, 20, func(t *testing.T) {
		t.Helper()
		h := runFakeKubelets(t, c, func(string, int) int32 { return 0 })
		liveWithProposal(t, c)
		if diff := cmp.Diff(want, h.rest()); diff != "" {
			t.Errorf("pods (-want +got):\n%s", diff)
		}
		if left := h.left(); len(left) > 0 {
			t.Errorf("the store has the accounts %q, and no record has them", left)
		}
	})
}

// liveWithProposal takes a Bucket through its life.
func liveWithProposal(t *testing.T, c *cluster) {
	t.Helper()
	const name = "crash-proposal"
	driver(t, c, name, ofBuckets)
	proposalClass(t, c, name)
	b := bucketOfProposal(t, c, name, name)
	b.wantBound(t)
	exists(t, c, b.access, "has one account, and nothing else to do", func(a *pavv1.PavBucketAccess) bool {
		return a.Status.Current != nil && a.Status.Granting == nil && a.Status.Failure == nil && len(a.Status.Former) == 0 && a.Status.Key == ""
	})
	exists(t, c, b.secret(), "has the credentials", func(s *corev1.Secret) bool { return string(s.Data[cosiv2.SecretS3AccessSecretKey]) == canary })
	mustDelete(t, c, b.object)
	b.wantGone(t, b.bucket)
	noPodIsLeft(t, c)
}
