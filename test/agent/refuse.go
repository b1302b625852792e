package agent

import (
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fails reports whether a request is to fail, before or after it takes effect. Watches do not fail: they would only be
// resumed. Discovery requests do not fail either: without their answers the agent ends, and its Deployment has to start
// it again.
func (l *Line) fails(request *http.Request) (before, after bool) {
	if l.Failing == 0 || isWatch(request) || isDiscovery(request.URL.Path) {
		return false, false
	}
	// The choice is random: if exactly one of n requests failed, a pass of n requests would never succeed.
	chance := rand.IntN(2 * l.Failing) //nolint:gosec // no secret depends on it
	if chance <= 1 {
		l.strike(func(s *Strikes) { s.Failed++ })
	}
	return chance == 0, chance == 1
}

// isDiscovery reports whether a path is /api/v1, /apis/<group>/<version>, or a parent of those.
func isDiscovery(path string) bool {
	segments := strings.Split(strings.Trim(path, "/"), "/")
	return segments[0] == "api" && len(segments) <= 2 || segments[0] == "apis" && len(segments) <= 3
}

// refuses returns the answer with which a request is refused, or nil. Only a request that changes an object can get a
// conflict.
func (l *Line) refuses(request *http.Request) *http.Response {
	if isWatch(request) && l.isExpired(request) {
		return answer(request, metav1.Status{Code: http.StatusGone, Reason: metav1.StatusReasonExpired, Message: "too old resource version"})
	}
	if l.Refusing == 0 || isDiscovery(request.URL.Path) || rand.IntN(l.Refusing) > 0 { //nolint:gosec // no secret depends on it
		return nil
	}
	refusals := []metav1.Status{
		{Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests, Message: "too many requests, please try again later"},
		{Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError, Message: "etcdserver: request timed out"},
	}
	if request.Method == http.MethodPut || request.Method == http.MethodPatch {
		refusals = append(refusals, metav1.Status{Code: http.StatusConflict, Reason: metav1.StatusReasonConflict, Message: "the object has been modified"})
	}
	l.strike(func(s *Strikes) { s.Refused++ })
	return answer(request, refusals[rand.IntN(len(refusals))]) //nolint:gosec // no secret depends on it
}

// answer returns an answer of the API server that refuses a request.
func answer(request *http.Request, status metav1.Status) *http.Response {
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	status.Status = metav1.StatusFailure
	text, err := json.Marshal(status)
	if err != nil {
		panic(err) // a Status can always be encoded
	}
	if request.Body != nil {
		_ = request.Body.Close()
	}
	return &http.Response{
		StatusCode: int(status.Code), Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(text)), Request: request, ProtoMajor: 1, ProtoMinor: 1,
	}
}

// expire prevents a watch from being resumed, as it has lost events.
func (l *Line) expire(watch *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.expired == nil {
		l.expired = map[string]bool{}
	}
	l.expired[watched(watch)] = true
}

// isExpired reports whether a watch cannot be resumed. It does so only once.
func (l *Line) isExpired(watch *http.Request) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	is := l.expired[watched(watch)]
	delete(l.expired, watched(watch))
	return is
}

// watched returns the resource and the selectors of a watch.
func watched(watch *http.Request) string {
	query := watch.URL.Query()
	return watch.URL.Path + " " + query.Get("labelSelector") + " " + query.Get("fieldSelector")
}
