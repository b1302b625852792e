package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// Anyone who drains a node evicts its pods: a staging pod outlives its clients.
func TestEvictionOfAStagingPod_IsRefusedWhereverItRuns(t *testing.T) {
	namespace := beside(t)
	_, err := kubectl(t.Context(), "", "label", "namespace", namespace, pavv1.AllowPodsLabel+"=true")
	must(t, err)
	const serve = "mkdir /pav/volume && touch /pav/ready && exec sleep infinity"
	theirs := strings.Replace(provisioner("evicted-there", serve, ""), "podTemplate:\n      spec:", "podTemplate:\n      metadata: {namespace: "+namespace+"}\n      spec:", 1)
	apply(t, namespace, documents(theirs, storageClass("evicted-there"), provisioner("evicted-here", serve, ""), storageClass("evicted-here")))
	apply(t, namespace, documents(claim("there", "evicted-there", "ReadWriteOnce"), clientPod("there", "there", ""), claim("here", "evicted-here", "ReadWriteOnce"), clientPod("here", "here", "")))
	waitRunning(t, namespace, "there", "here")
	for driver, in := range map[string]string{"evicted-there": namespace, "evicted-here": "pav-pods"} {
		pods := &corev1.PodList{}
		must(t, kube.List(t.Context(), pods, client.InNamespace(in), client.MatchingLabels{
			pavv1.WorkflowLabel: pavv1.WorkflowStaging, pavv1.ProvisionerLabel: driver,
		}))
		if len(pods.Items) != 1 {
			t.Fatalf("there are %d staging pods in namespace %s, want one", len(pods.Items), in)
		}
		eventually(t, "the eviction is refused because of the budget", func(ctx context.Context) error {
			err := client.NewDryRunClient(kube).SubResource("eviction").Create(ctx, &pods.Items[0], &policyv1.Eviction{})
			var status apierrors.APIStatus
			if !apierrors.IsTooManyRequests(err) || !errors.As(err, &status) || !strings.Contains(fmt.Sprint(status.Status().Details), "pav-staging") {
				return errors.Join(errors.New("it is not refused because of the budget"), err)
			}
			return nil
		})
	}
}
