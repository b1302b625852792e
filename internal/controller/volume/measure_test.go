package volume

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/observability/metrics"
)

// counts returns the value of each counter, and the number of observations of each histogram, by labels without the
// provisioner. Unused series are absent.
func counts(t *testing.T, w *metrics.Workflows) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(w); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, family := range families {
		for _, series := range family.GetMetric() {
			var values []string
			for _, pair := range series.GetLabel() {
				if pair.GetName() != "provisioner" {
					values = append(values, pair.GetValue())
				}
			}
			all[fmt.Sprint(values)] = series.GetCounter().GetValue() + float64(series.GetHistogram().GetSampleCount())
		}
	}
	return all
}

// TestMeasure_CountsWhatAWriteHasRecorded makes the writes in the life of a volume one after the other. Each write is
// refused once before it succeeds. A pod is counted when its outcome is recorded, and never again, not even by the next
// agent.
func TestMeasure_CountsWhatAWriteHasRecorded(t *testing.T) {
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	scheme := runtime.NewScheme()
	if err := errors.Join(pavv1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	volume := &pavv1.PavVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-1", UID: "uid"}, Spec: pavv1.PavVolumeSpec{Provisioner: "p"}}
	pod := func(name, kind string, phase corev1.PodPhase, code int32) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "pav-pods", Name: name, CreationTimestamp: now, Labels: map[string]string{pavv1.WorkflowLabel: kind},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: pavv1.GroupVersion.String(), Kind: "PavVolume", Name: volume.Name, UID: volume.UID, Controller: new(true)}},
			},
			Status: corev1.PodStatus{Phase: phase, ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{ExitCode: code, StartedAt: now, FinishedAt: now},
			}}}},
		}
	}
	refuse := false
	kube := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(volume).WithObjects(volume,
		pod("validate-1", "validate", corev1.PodSucceeded, 0), pod("create-2", "create", corev1.PodFailed, 3),
		pod("delete-3", "delete", corev1.PodSucceeded, 0), pod("create-4", "create", corev1.PodSucceeded, 0),
	).Build(), interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
		if refuse {
			return errors.New("refused")
		}
		return c.SubResource(sub).Patch(ctx, o, p, opts...)
	}})
	step := func(step pavv1.VolumeStep, pod string) change {
		return func(s *pavv1.PavVolumeStatus) {
			s.Step, s.Pod = step, &pavv1.PodReference{Namespace: "pav-pods", Name: pod, Due: &now}
		}
	}
	parts := func(kind string) map[string]float64 {
		return map[string]float64{"[queue " + kind + "]": 1, "[start " + kind + "]": 1, "[run " + kind + "]": 1, "[result " + kind + "]": 1}
	}
	for _, write := range []struct {
		what   string
		change change
		want   map[string]float64
	}{
		{"validation begins", step(pavv1.StepValidating, "validate-1"), map[string]float64{}},
		{"validation has succeeded", step(pavv1.StepCreating, "create-2"), parts("validate")},
		{"creation has failed", func(s *pavv1.PavVolumeStatus) {
			s.Step, s.Pod, s.Failure = pavv1.StepReverting, nil, &pavv1.WorkflowFailure{Workflow: "create", PodNamespace: "pav-pods", PodName: "create-2", Time: now}
		}, with(parts("create"), "[exit_code create]")},
		{"its words come late", func(s *pavv1.PavVolumeStatus) { s.Failure.Message = "more" }, map[string]float64{}},
		{"reverting begins", step(pavv1.StepReverting, "delete-3"), map[string]float64{}},
		{"it is reverted", clearDeletion, parts("delete")},
		{"the next attempt is refused", func(s *pavv1.PavVolumeStatus) {
			s.Failure = &pavv1.WorkflowFailure{Workflow: "create", Message: "no", Time: now}
		}, map[string]float64{"[refused create]": 1}},
		{"a condition changes", func(s *pavv1.PavVolumeStatus) { s.Attempt++ }, map[string]float64{}},
		{"creation begins", step(pavv1.StepCreating, "create-4"), map[string]float64{}},
		{"it has succeeded", func(s *pavv1.PavVolumeStatus) { s.Step, s.Pod, s.Phase = "", nil, pavv1.VolumeReady }, parts("create")},
		{"deletion begins", step(pavv1.StepDeleting, "delete-5"), map[string]float64{}},
		{"its pod was removed by force", func(s *pavv1.PavVolumeStatus) {
			s.Pod, s.DeletionFailure = nil, &pavv1.WorkflowFailure{Workflow: "delete", PodNamespace: "pav-pods", PodName: "delete-5", Time: now}
		}, map[string]float64{"[vanished delete]": 1}},
	} {
		// Another agent makes each write.
		r := &Reconciler{Client: kube, Metrics: metrics.NewWorkflows(nil, time.Now)}
		seen := &pavv1.PavVolume{}
		if err := kube.Get(t.Context(), client.ObjectKeyFromObject(volume), seen); err != nil {
			t.Fatal(err)
		}
		refuse = true
		if r.patchStatus(t.Context(), seen.DeepCopy(), write.change) == nil {
			t.Fatalf("%s: the write was not refused", write.what)
		}
		refuse = false
		if err := r.patchStatus(t.Context(), seen, write.change); err != nil {
			t.Fatal(err)
		}
		if err := r.patchStatus(t.Context(), seen, nothing); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(write.want, counts(t, r.Metrics)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", write.what, diff)
		}
	}
}

func with(counts map[string]float64, key string) map[string]float64 {
	counts[key] = 1
	return counts
}
