package cosi2

import (
	"strings"
	"testing"
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
