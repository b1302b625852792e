package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// inlinePod returns a pod for node1 with that many volumes of PaV's own driver.
func inlinePod(namespace, name string, volumes int) *corev1.Pod {
	pod := ordinaryPod(namespace, name)
	for i := range volumes {
		name := fmt.Sprintf("v%d", i)
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: pavv1.Driver}}})
		// Kubelet does not publish volumes that no container uses.
		mounts := &pod.Spec.Containers[0].VolumeMounts
		*mounts = append(*mounts, corev1.VolumeMount{Name: name, MountPath: "/" + name})
	}
	return pod
}

// A pod can have a thousand volumes of PaV's own driver. They are refused when pods are created. If a pod is older than
// PaV, or the policy was missing, the node agent refuses them without a request to the API server for each. The test uses
// fewer there: with thousands, kubelet itself would delay other tests.
func TestAttack_FloodOfInlineVolumes(t *testing.T) {
	t.Parallel()
	l := newStorage(t, "flooded", directories)
	tenant := tenantOf(t, l.namespace)
	l.volume(t, "data", directories, corev1.ReadWriteMany)
	undisturbed := l.timeClient(t, 10*time.Minute)
	before := beforeAttack(t)
	t.Run("refused", func(t *testing.T) {
		l.floodNode(t, 10, 1000, undisturbed, func(pod *corev1.Pod) error {
			if err := tenant.Create(t.Context(), pod); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "for the pods that PaV makes") {
				return fmt.Errorf("got %w, want that it is forbidden", err)
			}
			return nil
		})
	})
	t.Run("created", func(t *testing.T) {
		spareNamespace(t, l.namespace, tenant)
		l.floodNode(t, 1, 300, undisturbed, func(pod *corev1.Pod) error {
			if err := tenant.Create(t.Context(), pod); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(t.Context(), stepTimeout)
			defer cancel()
			return poll(ctx, func(ctx context.Context) error {
				return wantEvent(ctx, l.namespace, pod.Name, "FailedMount", "only for pods that PaV makes")
			})
		})
	})
	before.check(t)
}

// floodNode creates pods with that many inline volumes each, and runs a client of the claim data at the same time. Kubelet
// tries to publish each volume several times. Undisturbed is how long the client takes without the flood.
func (l *ledger) floodNode(t *testing.T, pods, volumes int, undisturbed time.Duration, create func(pod *corev1.Pod) error) {
	t.Helper()
	agent := &corev1.Pod{}
	must(t, kube.Get(t.Context(), client.ObjectKey{Namespace: "pav", Name: agentOn(t, "node1").Name}, agent))
	made := requestsOf(t, agent)
	t.Cleanup(func() { l.endFlood(t, pods) })
	var created sync.WaitGroup
	failed := make([]error, pods)
	for i := range pods {
		created.Go(func() { failed[i] = create(inlinePod(l.namespace, fmt.Sprintf("flood-%d", i), volumes)) })
	}
	created.Wait()
	must(t, errors.Join(failed...))

	took := l.timeClient(t, max(stagedWithin, 10*undisturbed))
	n := requestsOf(t, agent).since(made)["GET"]
	t.Logf("the client ran after %.1f s, and the node agent has read %.0f times", took.Seconds(), n)
	if n >= float64(3*pods*volumes) {
		t.Errorf("the node agent has read %.0f times", n)
	}
}

// timeClient returns how long a client of the claim data takes to run, which must be less than a limit.
func (l *ledger) timeClient(t *testing.T, limit time.Duration) time.Duration {
	t.Helper()
	began := time.Now()
	_, err := kubectl(t.Context(), clientPod("client", "data", "node1"), "create", "-n", l.namespace, "-f", "-")
	must(t, err)
	within(t, limit, "the client runs", func(ctx context.Context) error { return l.runs(ctx, "client") })
	took := time.Since(began)
	l.end(t, "client")
	l.awaitNoStage(t)
	return took
}

// stagedWithin is the time within which a client runs on an ordinary machine. Kubelet's next try comes after two minutes.
const stagedWithin = 90 * time.Second

// endFlood deletes pods that have no containers, all at once.
func (l *ledger) endFlood(t *testing.T, pods int) {
	t.Helper()
	var ended sync.WaitGroup
	for i := range pods {
		ended.Go(func() {
			remove(t, &corev1.Pod{ObjectMeta: objectMeta(l.namespace, fmt.Sprintf("flood-%d", i))})
		})
	}
	ended.Wait()
}

// spareNamespace exempts a namespace from the policy of inline volumes until the test ends, and waits until pods with such
// volumes can be created.
func spareNamespace(t *testing.T, namespace string, tenant client.Client) {
	t.Helper()
	const binding = "validatingadmissionpolicybinding/pav-inline-volumes"
	spare := fmt.Sprintf(`{"spec": {"matchResources": {"namespaceSelector": {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": [%q]}]}}}}`, namespace)
	t.Cleanup(func() {
		ctx, cancel := cleanupContext(t)
		defer cancel()
		if _, err := kubectl(ctx, "", "patch", binding, "--type=merge", "-p", `{"spec": {"matchResources": null}}`); err != nil {
			t.Error(err)
		}
	})
	_, err := kubectl(t.Context(), "", "patch", binding, "--type=merge", "-p", spare)
	must(t, err)
	eventually(t, "the policy spares the namespace", func(ctx context.Context) error {
		return client.NewDryRunClient(tenant).Create(ctx, inlinePod(namespace, "spared", 1))
	})
}
