package volume

import (
	"testing"
	"time"

	"k8s.io/client-go/tools/record"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// While the cache is stale, the step after the report is retried, and each retry reports again (seed 303 of the
// simulation).
func TestReportConflictLeft_Repeated_IsReportedOncePerPeriod(t *testing.T) {
	events := record.NewFakeRecorder(1000)
	now := noon
	r := &Reconciler{Events: events, Now: func() time.Time { return now }}
	o := fresh().o
	o.volume.Status.Conflict = &pavv1.StorageConflict{Handle: "h", Kind: "PersistentVolume", Name: "other"}
	for range 40 { // ten minutes
		r.reportConflictLeft(t.Context(), o)
		now = now.Add(15 * time.Second)
	}
	everybody := 2 // claim and PavVolume
	if o.provisioner != nil {
		everybody = 3
	}
	if got, want := len(events.Events), 2*everybody; got != want {
		t.Errorf("%d events were given, want %d", got, want)
	}
}
