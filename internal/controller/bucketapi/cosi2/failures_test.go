package cosi2

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A claim and an access that are not served any more say why, although they have records.
func TestLife_ARecordIsGivenUp(t *testing.T) {
	c := withAccessTo(t)
	c.grant("id")
	c.pass()
	bucket, access := c.bucketRecord(claimUID), c.accessRecord()
	bucket.Spec.Released, access.Spec.Released = true, true
	c.must(c.Update(t.Context(), bucket))
	c.must(c.Update(t.Context(), access))
	c.pass()
	if shown := c.claim().Status.Error; shown == nil || !strings.Contains(shown.Message, "given up by an administrator") {
		t.Errorf("the claim says %+v", shown)
	}
	if shown := c.access().Status.Error; shown == nil || !strings.Contains(shown.Message, "given up by an administrator") {
		t.Errorf("the access says %+v", shown)
	}
}

// A claim and an access that cannot go say why, and nothing else of their status changes.
func TestLife_DeletionFails(t *testing.T) {
	c := withAccessTo(t)
	c.grant("id")
	c.pass()
	wantAccess, wantClaim := c.access().Status, c.claim().Status
	c.must(c.Delete(t.Context(), c.access()))
	c.must(c.Delete(t.Context(), c.claim()))
	c.pass()
	access := c.accessRecord()
	access.Status.RevocationFailure = failed("the account is busy")
	c.must(c.Status().Update(t.Context(), access))
	c.pass()
	wantAccess.Error = errorOf(failed("the account is busy"))
	if diff := cmp.Diff(wantAccess, c.access().Status); diff != "" {
		t.Errorf("the status of the access (-want +got):\n%s", diff)
	}
	c.forget(c.accessRecord())
	c.pass()
	bucket := c.bucketRecord(claimUID)
	bucket.Status.DeletionFailure = failed("the bucket is not empty")
	c.must(c.Status().Update(t.Context(), bucket))
	c.pass()
	wantClaim.Error = errorOf(failed("the bucket is not empty"))
	if diff := cmp.Diff(wantClaim, c.claim().Status); diff != "" {
		t.Errorf("the status of the claim (-want +got):\n%s", diff)
	}
	c.forget(c.bucketRecord(claimUID))
	c.pass()
	if c.access() != nil || c.claim() != nil {
		t.Error("the access or the claim is left")
	}
}
