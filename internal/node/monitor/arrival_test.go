package monitor

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	staging "github.com/albertofaria/pav/internal/node/stage"
)

func TestClaimsOf(t *testing.T) {
	claim := func(name string) corev1.VolumeSource {
		return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}
	}
	both := []string{"claim", "client-scratch"}
	tests := map[string]struct {
		change func(*corev1.Pod)
		want   []string
	}{
		"just bound to the node": {func(*corev1.Pod) {}, both},
		"kubelet starts it":      {func(p *corev1.Pod) { p.Status.StartTime = new(metav1.Now()) }, nil},
		"it is being deleted":    {func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.Now()) }, nil},
		"of an init container": {func(p *corev1.Pod) {
			p.Spec.InitContainers, p.Spec.Containers = p.Spec.Containers, []corev1.Container{{Name: "main"}}
		}, both},
		"no container has one": {func(p *corev1.Pod) { p.Spec.Containers[0].VolumeMounts = nil }, []string{"client-scratch"}},
		"no container has any": {func(p *corev1.Pod) { p.Spec.Containers = nil }, nil},
		"very many": {func(p *corev1.Pod) {
			p.Spec.Volumes = slices.Repeat(p.Spec.Volumes[:1], 1000)
		}, slices.Repeat(both[:1], aheadAtOnce)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "client", Labels: map[string]string{"a": "b"}},
				Spec: corev1.PodSpec{
					NodeName: "node",
					Containers: []corev1.Container{{
						Name: "main", VolumeMounts: []corev1.VolumeMount{{Name: "data"}, {Name: "settings"}}, VolumeDevices: []corev1.VolumeDevice{{Name: "scratch"}},
					}},
					Volumes: []corev1.Volume{
						{Name: "data", VolumeSource: claim("claim")}, {Name: "unused", VolumeSource: claim("other")},
						{Name: "settings", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
						{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}},
					},
				},
			}
			test.change(pod)
			trimmed, err := trimArrival(pod)
			must(t, err)
			kept, ok := trimmed.(*corev1.Pod)
			if !ok || kept.Name != pod.Name || kept.Labels != nil || kept.Spec.Containers != nil {
				t.Fatalf("the cache keeps %+v", trimmed)
			}
			var got []string
			for _, claim := range claimsOf(kept) {
				if claim.Namespace != pod.Namespace {
					t.Errorf("claim %s is of another namespace", claim)
				}
				got = append(got, claim.Name)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("claims (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMonitor_PodThatComes_HasItsVolumeStaged(t *testing.T) {
	arrived := volumeA
	arrived.Arrived = true
	tests := map[string]struct {
		is     bool
		err    error
		called bool // kubelet's call has ended already
		want   int
	}{
		"PaV's volume":            {true, nil, false, 1},
		"another driver's volume": {false, nil, false, 0},
		"unknown":                 {false, errors.New("the API server is away"), false, 0},
		"kubelet was faster":      {true, nil, true, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			staged := 0
			n.stageAhead = func(_ context.Context, e staging.Expected) error {
				if staged++; e != arrived {
					t.Errorf("staged ahead: %+v, want %+v", e, arrived)
				}
				return nil
			}
			asked := types.NamespacedName{}
			n.volumeOf = func(_ context.Context, claim types.NamespacedName) (staging.Expected, bool, error) {
				asked = claim
				return arrived, test.is, test.err
			}
			if test.called {
				n.callEnded(aheadName())
			}
			n.arrivals.Add(types.NamespacedName{Namespace: "default", Name: "claim"})
			n.arrivals.ShutDown()
			n.workOnArrivals(t.Context())
			must(t, n.check(t.Context(), aheadName()))
			n.wg.Wait()
			if staged != test.want || asked.String() != "default/claim" {
				t.Errorf("staged %d times, want %d; asked for %s", staged, test.want, asked)
			}
			if len(n.expected) > 0 {
				t.Errorf("it is remembered: %v", n.expected)
			}
		})
	}
}
