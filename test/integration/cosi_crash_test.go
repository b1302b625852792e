package integration

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cosiv1 "github.com/albertofaria/pav/internal/api/cosi/v1alpha1"
	cosiv2 "github.com/albertofaria/pav/internal/api/cosi/v1alpha2"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// The agent is stopped after each of its writes in turn (in the short suite, after every fortieth) while a BucketClaim gets its bucket, two
// BucketAccesses get accounts, one of these is replaced, and all go again: each pod runs exactly once, and no account, Secret or key is left.
func TestCOSI_WithAnAgentThatIsStoppedAfterEachWrite(t *testing.T) {
	c := startCOSI(t)
	want := map[string]int{pavv1.WorkflowBucketCreation: 1, pavv1.WorkflowGrant: 3, pavv1.WorkflowRevocation: 3, pavv1.WorkflowBucketDeletion: 1}
	stopAfterEachWrite(t, c, 40, func(t *testing.T) {
		t.Helper()
		h := runFakeKubelets(t, c, func(string, int) int32 { return 0 })
		liveWithCOSI(t, c)
		if diff := cmp.Diff(want, h.rest()); diff != "" {
			t.Errorf("pods (-want +got):\n%s", diff)
		}
		if left := h.left(); len(left) > 0 {
			t.Errorf("the store has the accounts %q, and no record has them", left)
		}
	})
}

// liveWithCOSI takes a BucketClaim and two BucketAccesses through their lives.
func liveWithCOSI(t *testing.T, c *cluster) {
	t.Helper()
	const name = "crash-cosi"
	driver(t, c, name, ofBuckets, func(p *pavv1.PavProvisioner, _ *storagev1.StorageClass) {
		p.Spec.BucketAccessGrant.Overlap = &metav1.Duration{}
	})
	cosiClasses(t, c, name)
	claim := claimOfCOSI(t, c, name, name)
	accesses := []*cosiAccess{accessOfCOSI(t, c, name, name, name+"-one"), accessOfCOSI(t, c, name, name, name+"-two")}
	claim.wantReady(t)
	for _, access := range accesses {
		access.wantAccount(t, access.account())
	}
	rotate(t, c, accesses[0].record, accesses[0].object)
	accesses[0].wantAccount(t, accesses[0].account()+"-1")
	for _, access := range accesses {
		exists(t, c, access.record, "has one account, and nothing else to do", func(a *pavv1.PavBucketAccess) bool {
			return a.Status.Granting == nil && a.Status.Failure == nil && len(a.Status.Former) == 0 && a.Status.Key == ""
		})
		mustDelete(t, c, access.object)
	}
	mustDelete(t, c, claim.object)
	for _, access := range accesses {
		for _, object := range []client.Object{access.object, access.record, access.secret()} {
			gone(t, c, object)
		}
	}
	for _, object := range []client.Object{claim.object, claim.record, claim.bucket()} {
		gone(t, c, object)
	}
	wantNoKeys(t, c)
	noPodIsLeft(t, c)
}

// wantAccount waits until an access has an account, and its Secret has the credentials.
func (a *cosiAccess) wantAccount(t *testing.T, account string) {
	t.Helper()
	exists(t, a.c, a.object, "has account "+account, func(b *cosiv1.BucketAccess) bool { return b.Status.AccessGranted && b.Status.AccountID == account })
	exists(t, a.c, a.secret(), "has the credentials of "+account, func(s *corev1.Secret) bool {
		return string(s.Data[cosiv2.SecretS3AccessKeyID]) == account && string(s.Data[cosiv2.SecretS3AccessSecretKey]) == canary
	})
}
