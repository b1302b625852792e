package volume

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/reading"
)

// What a volume waits for is passed on, and what others only report, or who reads beside it, is not. A volume that has left goes on.
func TestSourceChanges(t *testing.T) {
	self, other := pavv1.Reader{Kind: reading.KindVolume, Name: "self"}, pavv1.Reader{Kind: "PavSnapshot", Name: "other"}
	full := make([]pavv1.Reader, reading.MostReaders)
	for name, test := range map[string]struct {
		before, after pavv1.PavVolumeStatus
		passes        bool
		woken         []string
	}{
		"a step":                {before: pavv1.PavVolumeStatus{}, after: pavv1.PavVolumeStatus{Step: pavv1.StepExpanding}, passes: true},
		"a report":              {after: pavv1.PavVolumeStatus{Conditions: []metav1.Condition{{Type: pavv1.VolumeExpanded, Reason: "Other"}}}},
		"a change that waits":   {after: pavv1.PavVolumeStatus{Conditions: []metav1.Condition{{Type: pavv1.VolumeExpanded, Reason: pavv1.ReasonBeingRead}}}, passes: true},
		"a new reader":          {after: pavv1.PavVolumeStatus{Readers: []pavv1.Reader{self}}},
		"it has left":           {before: pavv1.PavVolumeStatus{Readers: []pavv1.Reader{other, self}}, after: pavv1.PavVolumeStatus{Readers: []pavv1.Reader{other}}, woken: []string{"self"}},
		"a snapshot has left":   {before: pavv1.PavVolumeStatus{Readers: []pavv1.Reader{other, self}}, after: pavv1.PavVolumeStatus{Readers: []pavv1.Reader{self}}},
		"there is room again":   {before: pavv1.PavVolumeStatus{Readers: full}, after: pavv1.PavVolumeStatus{Readers: full[1:]}, passes: true},
		"there is no room more": {before: pavv1.PavVolumeStatus{Readers: full[1:]}, after: pavv1.PavVolumeStatus{Readers: full}},
	} {
		t.Run(name, func(t *testing.T) {
			update := event.UpdateEvent{ObjectOld: &pavv1.PavVolume{Status: test.before}, ObjectNew: &pavv1.PavVolume{Status: test.after}}
			if got := sourceChanges.Update(update); got != test.passes {
				t.Errorf("it is passed on: %t", got)
			}
			queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
			defer queue.ShutDown()
			formerReaders.Update(t.Context(), update, queue)
			var woken []string
			for range queue.Len() {
				request, _ := queue.Get()
				woken = append(woken, request.Name)
			}
			if !slices.Equal(woken, test.woken) {
				t.Errorf("woken: %q", woken)
			}
		})
	}
}
