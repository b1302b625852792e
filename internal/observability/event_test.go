package observability

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
)

func TestRecorder_RecordsWarningsApart(t *testing.T) {
	normal, warning := record.NewFakeRecorder(10), record.NewFakeRecorder(10)
	recorder, pod := byType{normal: normal, warning: warning}, &corev1.Pod{}
	for _, eventType := range []string{corev1.EventTypeNormal, corev1.EventTypeWarning} {
		recorder.Event(pod, eventType, "One", "says 50%")
		recorder.Eventf(pod, eventType, "Two", "says %d", 7)
		recorder.AnnotatedEventf(pod, nil, eventType, "Three", "says %d", 7)
	}
	for _, of := range []struct {
		fake *record.FakeRecorder
		want []string
	}{
		{normal, []string{"Normal One says 50%", "Normal Two says 7", "Normal Three says 7"}},
		{warning, []string{"Warning One says 50%", "Warning Two says 7", "Warning Three says 7"}},
	} {
		close(of.fake.Events)
		var got []string
		for event := range of.fake.Events {
			got = append(got, event)
		}
		if !slices.Equal(got, of.want) {
			t.Errorf("recorded %q, want %q", got, of.want)
		}
	}
}
