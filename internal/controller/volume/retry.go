package volume

import (
	"sync"
	"time"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// retryRequests are the requests for a next attempt now, by volume, that attempts have begun since: each counts
// once, also where the clock that wrote it is ahead of ours. An agent that begins anew may heed one twice.
type retryRequests struct {
	mu      sync.Mutex
	granted map[string]string // the last value of the annotation
}

// asked returns when somebody asked for the next attempt; the zero time where nobody did, or an attempt
// has begun since.
func (w *retryRequests) asked(volume *pavv1.PavVolume, now time.Time) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if value := volume.Annotations[pavv1.RetryAnnotation]; value == "" || w.granted[volume.Name] == value {
		return time.Time{}
	}
	return pavv1.RetryAsked(volume, now)
}

// grant notes that an attempt has begun.
func (w *retryRequests) grant(volume *pavv1.PavVolume) {
	value := volume.Annotations[pavv1.RetryAnnotation]
	if value == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.granted == nil {
		w.granted = map[string]string{}
	}
	w.granted[volume.Name] = value
}

// forget forgets a volume that is gone.
func (w *retryRequests) forget(volume string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.granted, volume)
}

// keepsTurn reports whether a volume whose next pod is in line stays there.
func (s step) keepsTurn() bool { return s == stepRunPod || s == stepRecordLateMessage }

// begins reports whether a step is the beginning of an attempt.
func (s step) begins() bool { return s == stepBegin || s == stepRefuse || s == stepDelete }

// needsWhole reports whether a step is taken with the PavVolume as the API server has it: templates see its
// copies of the claim, or the step cannot be taken back.
func (s step) needsWhole() bool {
	return s == stepBegin || s == stepRefuse || s == stepCreate || s == stepRunPod || s == stepDelete || s == stepWritePV || s == stepRevert
}
