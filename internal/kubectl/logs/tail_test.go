package logs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/albertofaria/pav/internal/kubectl/cli"
)

// server answers for the API server: requests for the log of pod p in turn, and how it is.
type server struct {
	logs   []func(w http.ResponseWriter, r *http.Request)
	states []corev1.ContainerState
	asked  []string // since when
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/pods/p/log") && len(s.logs) > 0 {
		next := s.logs[0]
		s.logs = s.logs[1:]
		s.asked = append(s.asked, r.URL.Query().Get("sinceTime"))
		next(w, r)
		return
	}
	if !strings.HasSuffix(r.URL.Path, "/pods") || len(s.states) == 0 {
		http.NotFound(w, r)
		return
	}
	pod := podIn(s.states[0])
	s.states = s.states[1:]
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, Items: []corev1.Pod{*pod}})
}

func podIn(state corev1.ContainerState) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p", UID: "u"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}},
		Status:     corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "main", State: state, ContainerID: "c1"}}},
	}
}

// says writes lines with a time each: the second, and what is said then.
func says(lines ...string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		for _, line := range lines {
			_, _ = fmt.Fprintf(w, "2026-03-01T12:00:%s\n", line)
		}
	}
}

// breaks is a stream that breaks after some lines.
func breaks(lines ...string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		says(lines...)(w, r)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

func sessionWith(t *testing.T, s *server) (all *session, out, errOut *bytes.Buffer) {
	t.Helper()
	listener := httptest.NewServer(s)
	t.Cleanup(listener.Close)
	kube, err := kubernetes.NewForConfig(&rest.Config{Host: listener.URL})
	if err != nil {
		t.Fatal(err)
	}
	out, errOut = &bytes.Buffer{}, &bytes.Buffer{}
	return &session{cluster: &cli.Cluster{Kube: kube}, options: &options{tail: -1}, print: &printer{out: out}, seen: map[string]bool{},
		errOut: errOut, pause: time.Millisecond, cancel: func() {}}, out, errOut
}

var (
	running = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	over    = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ContainerID: "c1"}}
)

func TestTail_ContinuesAfterAStreamThatEndedBeforeTheContainer(t *testing.T) {
	s := &server{
		logs: []func(http.ResponseWriter, *http.Request){
			says("01Z one", "02.5Z two"), breaks("02.5Z two", "02.6Z three"), says("02.5Z two", "02.6Z three", "03Z four"),
		},
		states: []corev1.ContainerState{running, running, over},
	}
	all, out, errOut := sessionWith(t, s)
	c := containersOf(podIn(running))[0]
	if err := (&tail{session: all, container: &c}).follow(t.Context()); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff("one\ntwo\nthree\nfour\n", out.String()) + cmp.Diff([]string{"", "2026-03-01T12:00:02Z", "2026-03-01T12:00:02Z"}, s.asked); diff != "" {
		t.Error(diff)
	}
	if text := errOut.String(); strings.Count(text, "trying again") != 1 {
		t.Errorf("got %q, want the break, once", text)
	}
}

func TestTail_EndsWhereTheUserIsNotKnownAnyMore(t *testing.T) {
	s := &server{logs: []func(http.ResponseWriter, *http.Request){
		says("01Z one"), func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
	}, states: []corev1.ContainerState{running}}
	all, _, _ := sessionWith(t, s)
	c := containersOf(podIn(running))[0]
	if err := (&tail{session: all, container: &c}).follow(t.Context()); !apierrors.IsUnauthorized(err) {
		t.Errorf("got %v", err)
	}
}

func TestRead_HoldsNoMoreThanAPartOfALine(t *testing.T) {
	long := strings.Repeat("x", 3*maxLine+5)
	s := &server{logs: []func(http.ResponseWriter, *http.Request){says("01Z "+long, "02Z short")}}
	all, out, _ := sessionWith(t, s)
	c := containersOf(podIn(over))[0]
	if err := (&tail{session: all, container: &c}).follow(t.Context()); err != nil {
		t.Error(err)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != 5 || strings.Join(lines[:4], "") != long || lines[4] != "short" {
		t.Errorf("got %d lines", len(lines))
	}
}

func TestRunOf_DistinguishesARestartedContainerFromItsLastRun(t *testing.T) {
	last := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ContainerID: "c1"}}
	status := func(restarts int32, id string, state, last corev1.ContainerState) string {
		return runOf(&corev1.ContainerStatus{RestartCount: restarts, ContainerID: id, State: state, LastTerminationState: last})
	}
	waits := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}
	got := []string{
		status(0, "c1", running, corev1.ContainerState{}), status(0, "c1", over, corev1.ContainerState{}), status(0, "c1", waits, last), status(1, "c2", running, last),
		status(3, "", running, corev1.ContainerState{}),
	}
	if diff := cmp.Diff([]string{"c1", "c1", "c1", "c2", "3"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestReport_IsBounded(t *testing.T) {
	errOut := &bytes.Buffer{}
	s := &session{errOut: errOut}
	for i := range 100 {
		s.tell(io.ErrUnexpectedEOF)
		s.tell(io.ErrUnexpectedEOF)
		s.tell(fmt.Errorf("%d: %w", i, errors.ErrUnsupported))
	}
	if n := strings.Count(errOut.String(), "\n"); n != maxReported {
		t.Errorf("reported %d errors, want %d", n, maxReported)
	}
}
