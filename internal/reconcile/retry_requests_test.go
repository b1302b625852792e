package reconcile

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

func TestRetryRequests_CountOnce(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	r := &RetryRequests{}
	volume := &pavv1.PavVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-u1"}}
	request := func(at time.Time) {
		volume.Annotations = map[string]string{pavv1.RetryAnnotation: at.Format(pavv1.RetryFormat)}
	}
	if got := r.Asked(volume, noon); !got.IsZero() {
		t.Errorf("without a request, got %s", got)
	}
	// If the clock is ahead, no failure would ever be later than the request.
	request(noon.Add(time.Hour))
	if got := r.Asked(volume, noon); !got.Equal(noon) {
		t.Errorf("a request from the future was at %s, want %s", got, noon)
	}
	r.Grant(volume)
	if got := r.Asked(volume, noon); !got.IsZero() {
		t.Errorf("after an attempt has begun, got %s", got)
	}
	request(noon)
	if got := r.Asked(volume, noon); !got.Equal(noon) {
		t.Errorf("the next request was at %s, want %s", got, noon)
	}
	r.Grant(volume)
	r.Forget(volume.Name)
	if got := r.Asked(volume, noon); got.IsZero() {
		t.Error("a request for another volume of the name is ignored")
	}
}
