package snapshot

import (
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/record"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// That a snapshot may be left is said once on each object where people may look for it.
func TestTellLeft(t *testing.T) {
	events := record.NewFakeRecorder(10)
	r := &Reconciler{Events: events, Now: func() time.Time { return noon }}
	s := requested().with(intends(pavv1.SnapshotCreating))
	s.content.Spec.VolumeSnapshotRef.UID = "1"
	r.tellLeft(s.observation)
	r.tellLeft(s.observation)
	if len(events.Events) != 4 { // of PavProvisioner, PavSnapshot, VolumeSnapshotContent and VolumeSnapshot
		t.Errorf("got %d events", len(events.Events))
	}
	if text := <-events.Events; !strings.Contains(text, `which handle pod pav-pods/pod chose for PavSnapshot "snapshot-1"`) {
		t.Errorf("got %q", text)
	}
}
