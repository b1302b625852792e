package workflow

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// newRunner returns a runner whose API server has this pod, or no pod if it is nil.
func newRunner(t *testing.T, existing *corev1.Pod) *Runner {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		code, answer := http.StatusOK, any(existing)
		if r.Method == http.MethodPost {
			created := &corev1.Pod{}
			if err := json.NewDecoder(r.Body).Decode(created); err != nil {
				t.Error(err)
			}
			created.UID = "created"
			code, answer = http.StatusCreated, created
			if existing != nil {
				status := apierrors.NewAlreadyExists(corev1.Resource("pods"), created.Name).Status()
				code, answer = int(status.Code), status
			}
		}
		if r.Method == http.MethodDelete {
			existing.Annotations = map[string]string{"deleted": "again"}
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)

	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	config := &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	c, err := client.New(config, client.Options{Scheme: clientgoscheme.Scheme, Mapper: mapper})
	if err != nil {
		t.Fatal(err)
	}
	return &Runner{Client: c}
}

func TestCreate_ReturnsTheUIDOfThePod(t *testing.T) {
	pod := mustBuild(t, least, placed())
	if err := newRunner(t, nil).Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if pod.UID != "created" {
		t.Errorf("the UID is %q", pod.UID)
	}
}

func TestCreate_WhereThereIsAPod_AdoptsItOnlyIfItIsTheSame(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(*corev1.Pod)
		foreign bool
	}{
		"the same pod":         {change: func(*corev1.Pod) {}},
		"no owner":             {change: func(p *corev1.Pod) { p.OwnerReferences = nil }, foreign: true},
		"another owner":        {change: func(p *corev1.Pod) { p.OwnerReferences[0].UID = "other" }, foreign: true},
		"an owner that is not": {change: func(p *corev1.Pod) { p.OwnerReferences[0].Controller = nil }, foreign: true},
		"another workflow":     {change: func(p *corev1.Pod) { p.Labels[pavv1.WorkflowLabel] = "delete" }, foreign: true},
		"another node":         {change: func(p *corev1.Pod) { p.Annotations[pavv1.NodeAnnotation] = "other" }, foreign: true},
		"another stage":        {change: func(p *corev1.Pod) { p.Labels[pavv1.StageLabel] = "other" }, foreign: true},
		"another attempt":      {change: func(p *corev1.Pod) { p.Annotations[pavv1.AttemptAnnotation] = "2" }, foreign: true},
	} {
		t.Run(name, func(t *testing.T) {
			existing := mustBuild(t, least, placed())
			existing.UID, existing.Status.Phase = "existing", corev1.PodRunning
			test.change(existing)
			pod := mustBuild(t, least, placed())
			before := pod.DeepCopy()

			err := newRunner(t, existing).Create(t.Context(), pod)
			if test.foreign {
				if !errors.Is(err, ErrForeign) {
					t.Errorf("got %v, want %v", err, ErrForeign)
				}
				if diff := cmp.Diff(before, pod); diff != "" {
					t.Errorf("the pod (-before +after):\n%s", diff)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			pod.TypeMeta, existing.TypeMeta = metav1.TypeMeta{}, metav1.TypeMeta{}
			if diff := cmp.Diff(existing, pod); diff != "" {
				t.Errorf("the pod (-existing +got):\n%s", diff)
			}
		})
	}
}

// The API server marks a pod and then removes it. If the connection breaks in between, nothing else removes the pod where
// there is no kubelet or garbage collector that does.
func TestStop_DeletesAgain_OnlyWhatTheAPIServerHasMarkedAndNotRemoved(t *testing.T) {
	now := new(metav1.Now())
	tests := map[string]struct {
		meta metav1.ObjectMeta
		want bool
	}{
		"not deleted":                  {want: true},
		"in its grace period":          {meta: metav1.ObjectMeta{DeletionTimestamp: now, DeletionGracePeriodSeconds: new(int64(30))}},
		"held by a finalizer":          {meta: metav1.ObjectMeta{DeletionTimestamp: now, DeletionGracePeriodSeconds: new(int64(0)), Finalizers: []string{pavv1.PodFinalizer}}},
		"marked, and nothing holds it": {meta: metav1.ObjectMeta{DeletionTimestamp: now, DeletionGracePeriodSeconds: new(int64(0))}, want: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			existing := &corev1.Pod{ObjectMeta: test.meta}
			existing.Namespace, existing.Name, existing.UID = DefaultNamespace, "pod", "1"
			if err := newRunner(t, existing).Stop(t.Context(), existing.DeepCopy()); err != nil {
				t.Fatal(err)
			}
			if got := existing.Annotations["deleted"] != ""; got != test.want {
				t.Errorf("the API server was asked: %t, want %t", got, test.want)
			}
		})
	}
}
