package snapshot

import (
	"testing"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// A snapshot is ready when the pod that has cut it has succeeded, and not when it has only ended.
func TestIsUnprocessed(t *testing.T) {
	const ready = `{"ready":true}`
	for name, test := range map[string]struct {
		changes []func(*corev1.Pod)
		want    bool
	}{
		"the pod has cut it, and goes on":       {[]func(*corev1.Pod){reports(ready)}, true},
		"the pod has cut it, and succeeded":     {[]func(*corev1.Pod){reports(ready), ended(corev1.PodSucceeded)}, false},
		"the pod has cut it, and failed":        {[]func(*corev1.Pod){reports(ready), ended(corev1.PodFailed)}, true},
		"the pod has cut it, and was stopped":   {[]func(*corev1.Pod){reports(ready), ended(corev1.PodSucceeded), stopped}, true},
		"the pod succeeded without /pav/ready":  {[]func(*corev1.Pod){reports(`{}`), ended(corev1.PodSucceeded)}, false},
		"the pod that has cut it is to restart": {[]func(*corev1.Pod){reports(ready), func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := requested().with(intends(pavv1.SnapshotCreating), thePod(test.changes...))
			if got := s.isUnprocessed(); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

// What nodes had in memory is in the snapshot as they had it when they were asked, not when the pod started.
func TestCutTime(t *testing.T) {
	for name, test := range map[string]struct {
		asked, want int // seconds ago; the pod started 8 seconds ago
	}{
		"no node was asked":                       {want: 8},
		"nodes were asked before the pod started": {asked: 30, want: 30},
		"the clock was set back after that":       {asked: 5, want: 8},
	} {
		t.Run(name, func(t *testing.T) {
			s := requested().with(intends(pavv1.SnapshotCreating), thePod())
			if test.asked > 0 {
				s.with(asked(test.asked, false))
			}
			if got := s.cutTime(); !got.Equal(new(metav1.NewMicroTime(ago(test.want).Time))) {
				t.Errorf("got %s, want %d s ago", got, test.want)
			}
		})
	}
}

// What a pod has made can be found only by its handle.
func TestIsHandleUnknown(t *testing.T) {
	creating, over := intends(pavv1.SnapshotCreating), ended(corev1.PodFailed)
	for name, test := range map[string]struct {
		state *state
		want  bool
	}{
		"no pod was created":                         {requested().with(creating), false},
		"the pod is gone":                            {requested().with(creating, func(s *state) { s.record.Status.Pod.UID = "u" }), true},
		"the pod is gone, and the handle is planned": {requested().with(creating, func(s *state) { s.record.Status.Pod.UID, s.record.Status.PlannedHandle = "u", "h" }), false},
		"the pod chose none":                         {requested().with(creating, thePod(over, reports(`{}`))), false},
		"the pod chose one":                          {requested().with(creating, thePod(over, reports(`{"snapshotHandle":"h"}`))), false},
		"the pod chose an invalid one":               {requested().with(creating, thePod(over, reports(`{"snapshotHandle":"two\nlines"}`))), true},
		"what the pod chose cannot be read":          {requested().with(creating, thePod(over, reports(`{"unreadable":{"snapshotHandle":"too long"}}`))), true},
		"what its node reports cannot be read":       {requested().with(creating, thePod(over, reports(`no JSON`))), true},
		"its node reports nothing":                   {requested().with(creating, thePod(over)), true},
		"the pod never ran":                          {requested().with(creating, thePod(unstarted, neverBound)), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.state.isHandleUnknown(); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

// What was cut and not ready when its record was lost is processed once more.
func TestIsTakenOverCut(t *testing.T) {
	says := func(ready *bool) func(*state) {
		return func(s *state) {
			s.content.Status = &snapshotv1.VolumeSnapshotContentStatus{SnapshotHandle: new("h"), ReadyToUse: ready}
		}
	}
	for name, test := range map[string]struct {
		state *state
		want  bool
	}{
		"it was ready":                        {requested().with(says(new(true))), false},
		"it was cut":                          {requested().with(says(new(false))), true},
		"it is not said whether it was ready": {requested().with(says(nil)), false},
		"an administrator's":                  {requested().with(preProvisioned), false},
		"an administrator's that was refused": {requested().with(preProvisioned, says(new(false))), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.state.isTakenOverCut(); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}
