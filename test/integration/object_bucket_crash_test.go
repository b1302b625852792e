package integration

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	obcv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// The agent is stopped after each of its writes in turn (in the short suite, after every forty-eighth) while a bucket is made, access to it
// granted, and both go again, with and without a failure in the middle, or while the grant pod runs: each pod runs exactly once, and no
// account, Secret or key is left.
func TestObjectBucketClaim_WithAnAgentThatIsStoppedAfterEachWrite(t *testing.T) {
	c := start(t)
	installBucketKinds(t, c)
	enableBuckets(t, c)
	const creation, deletion, grant, revocation = pavv1.WorkflowBucketCreation, pavv1.WorkflowBucketDeletion, pavv1.WorkflowGrant, pavv1.WorkflowRevocation
	failing := func(of string) func(string, int) int32 {
		return func(kind string, number int) int32 {
			if kind == of && number == 1 {
				return 3
			}
			return 0
		}
	}
	tests := map[string]struct {
		code  func(kind string, number int) int32
		bound bool // whether the claim is bound before it is deleted
		want  map[string]int

		// maybe is a workflow of which one pod may run: an agent that did not see how a pod went that had no node takes it for one that ran.
		maybe string
	}{
		"all succeed": {
			code: failing("nothing"), bound: true, want: map[string]int{creation: 1, grant: 1, revocation: 1, deletion: 1},
		},
		"the first creation fails, and is reverted": {
			code: failing(creation), bound: true, want: map[string]int{creation: 2, grant: 1, revocation: 1, deletion: 2},
		},
		"the first grant fails, and its account is revoked": {
			code: failing(grant), bound: true, want: map[string]int{creation: 1, grant: 2, revocation: 2, deletion: 1},
		},
		"the first revocation fails": {
			code: failing(revocation), bound: true, want: map[string]int{creation: 1, grant: 1, revocation: 2, deletion: 1},
		},
		"the claim is deleted while access is granted": {
			code: func(kind string, _ int) int32 {
				if kind == grant {
					return goesOn
				}
				return 0
			},
			want: map[string]int{creation: 1, grant: 1, deletion: 1}, maybe: revocation,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			stopAfterEachWrite(t, c, 48, func(t *testing.T) {
				t.Helper()
				h := runFakeKubelets(t, c, test.code)
				claimAndDelete(t, c, test.bound)
				got := h.rest()
				if left := h.left(); len(left) > 0 {
					t.Errorf("the store has the accounts %q, and no record has them", left)
				}
				if got[test.maybe] == 1 {
					delete(got, test.maybe)
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("pods (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// claimAndDelete takes an ObjectBucketClaim through its life.
func claimAndDelete(t *testing.T, c *cluster, untilBound bool) {
	t.Helper()
	const name = "crash-bucketed"
	driver(t, c, name, ofBuckets)
	b := claimBucket(t, c, name, name)
	if untilBound {
		exists(t, c, b.object, "is bound", func(o *obcv1.ObjectBucketClaim) bool { return o.Status.Phase == obcv1.ClaimBound })
		exists(t, c, b.access, "is granted", func(a *pavv1.PavBucketAccess) bool {
			return a.Status.Current != nil && a.Status.Granting == nil && a.Status.Failure == nil && len(a.Status.Former) == 0 && len(a.Status.Secrets) == 1
		})
		secret := b.secret()
		exists(t, c, secret, "has the credentials", func(s *corev1.Secret) bool { return string(s.Data[obcv1.AWSSecretAccessKey]) == canary })
	} else {
		eventually(t, "the grant pod runs", func(ctx context.Context) (bool, string) {
			pods := &corev1.PodList{}
			err := c.Admin.List(ctx, pods)
			for i := range pods.Items {
				if pods.Items[i].Labels[pavv1.WorkflowLabel] == pavv1.WorkflowGrant {
					return true, ""
				}
			}
			return false, fmt.Sprint(err)
		})
	}
	mustDelete(t, c, b.object)
	b.wantGone(t)
	noPodIsLeft(t, c)
}
