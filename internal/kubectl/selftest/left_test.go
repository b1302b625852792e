package selftest

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// The node of a failed pod tells what the pod wrote when the failure is on record, and the test looks already.
func TestLeft_HasTheMessageOfAPod_EvenIfItsNodeIsSlow(t *testing.T) {
	const name = "mine-test-1"
	labels := map[string]string{pavv1.ProvisionerLabel: name}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "pods", Name: "delete-1", Labels: labels}, Status: corev1.PodStatus{Phase: corev1.PodFailed}}
	failure := &pavv1.WorkflowFailure{Workflow: pavv1.WorkflowDeletion, PodNamespace: "pods", PodName: "delete-1", Message: "pod pods/delete-1 failed"}
	left := &pavv1.PavVolume{ObjectMeta: metav1.ObjectMeta{Name: "v", Labels: labels}, Status: pavv1.PavVolumeStatus{DeletionFailure: failure}}
	r := &run{name: name, report: &Report{}}
	withCluster(t, r, nil, pod, left)
	result, err := json.Marshal(workflow.Result{Error: "the backend says no\n"})
	if err != nil {
		t.Fatal(err)
	}
	cluster, told := r.client, make(chan error, 1)
	r.client = interceptor.NewClient(cluster, interceptor.Funcs{
		Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
			events, err := c.Watch(ctx, list, options...)
			pod.Annotations = map[string]string{pavv1.ResultAnnotation: string(result)}
			told <- errors.Join(err, cluster.Update(ctx, pod))
			return events, err
		},
	})
	r.leftVolumes(t.Context())
	if err := <-told; err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("its deletion fails: pod pods/delete-1 failed; it wrote to /pav/error: the backend says no", r.report.Left[0].Why); diff != "" {
		t.Errorf("what is said of the volume (-want +got):\n%s", diff)
	}
}
