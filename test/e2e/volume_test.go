package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

func TestExample_HelloWorld(t *testing.T) {
	t.Parallel()
	e := newExample(t, "1-hello-world", exampleNamespace(t, "hello-world"))
	prints(t, e.follow(t, "Try it"), "Hello, world, from hello-world!")
	wantClaimEvent(t, e.claim(t, "hello-world"), "ProvisioningSucceeded")
	prints(t, e.follow(t, "What PaV did on the way"), "ProvisioningSucceeded")
	e.follow(t, "Clean up")
}

func TestDynamicVolume_TwoPodsOnEachOfTwoNodes_OneStagingPodEach(t *testing.T) {
	namespace := beside(t)
	apply(t, namespace, documents(provisioner("shared", "mkdir /pav/volume; echo {{ node.metadata.name | tobash }} > /pav/volume/node", ""), storageClass("shared")))
	apply(t, namespace, documents(claim("data", "shared", "ReadWriteMany"),
		clientPod("a1", "data", "node1"), clientPod("a2", "data", "node1"), clientPod("b1", "data", "node2"), clientPod("b2", "data", "node2")))
	waitRunning(t, namespace, "a1", "a2", "b1", "b2")

	for pod, want := range map[string]string{"a1": "node1", "a2": "node1", "b1": "node2", "b2": "node2"} {
		got, err := inPod(t.Context(), namespace, pod, "cat /data/node")
		must(t, err)
		if strings.TrimSpace(got) != want {
			t.Errorf("pod %s reads %q, want %q", pod, got, want)
		}
	}
	pods, err := stagingPods(t.Context(), "shared")
	must(t, err)
	if len(pods) != 2 {
		t.Errorf("%d staging pods have run, want one a node", len(pods))
	}

	// A pod reads what another pod of the node wrote, also after that one is gone.
	_, err = inPod(t.Context(), namespace, "a1", "echo hello > /data/file")
	must(t, err)
	remove(t, &corev1.Pod{ObjectMeta: objectMeta(namespace, "a1")})
	got, err := inPod(t.Context(), namespace, "a2", "cat /data/file")
	must(t, err)
	if strings.TrimSpace(got) != "hello" {
		t.Errorf("pod a2 reads %q", got)
	}
}

func TestStaticVolume(t *testing.T) {
	namespace := beside(t)
	apply(t, namespace, provisioner("by-hand", "mkdir /pav/volume; echo {{ (handle ~ ' ' ~ params.colour) | tobash }} > /pav/volume/file", "test -e /pav/volume/file"))
	apply(t, namespace, staticVolume("by-hand-volume", "by-hand", namespace, "colour: green"))
	apply(t, namespace, clientPod("reader", "data", ""))
	waitRunning(t, namespace, "reader")
	got, err := inPod(t.Context(), namespace, "reader", "cat /data/file")
	must(t, err)
	if want := "by-hand-volume-handle green"; strings.TrimSpace(got) != want {
		t.Errorf("the pod reads %q, want %q", got, want)
	}
	volumes := &pavv1.PavVolumeList{}
	must(t, kube.List(t.Context(), volumes, client.MatchingLabels{pavv1.ProvisionerLabel: "by-hand"}))
	if len(volumes.Items) != 0 {
		t.Errorf("a static volume has %d PavVolumes", len(volumes.Items))
	}
}

// staticVolume returns a PersistentVolume and the claim data that is bound to it.
func staticVolume(name, driver, namespace, attributes string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: PersistentVolume
metadata:
  name: %[1]s
spec:
  capacity: {storage: 1Mi}
  accessModes: [ReadWriteMany]
  claimRef: {namespace: %[3]s, name: data}
  csi:
    driver: %[2]s
    volumeHandle: %[1]s-handle
    volumeAttributes: {%[4]s}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: data
spec:
  storageClassName: ""
  volumeName: %[1]s
  accessModes: [ReadWriteMany]
  resources: {requests: {storage: 1Mi}}
`, name, driver, namespace, attributes)
}

// The mount of a privileged staging pod outlives the pod, for later clients and for the unstaging pod.
func TestStagingPodThatMountsAndCompletes_MountStaysWhenPodIsGone(t *testing.T) {
	namespace := beside(t)
	apply(t, namespace, documents(provisioner("mounting",
		"mkdir /pav/volume; mount -t tmpfs -o size=1m pav-e2e /pav/volume; echo mounted > /pav/volume/file",
		// Succeeds only if it sees the mount, and what the client wrote to it.
		"grep ' /pav/volume tmpfs' /proc/mounts; grep written /pav/volume/file; umount /pav/volume"), storageClass("mounting")))
	apply(t, namespace, documents(claim("data", "mounting", "ReadWriteMany"), clientPod("first", "data", "node1")))
	waitRunning(t, namespace, "first")

	pods, err := stagingPods(t.Context(), "mounting")
	must(t, err)
	if len(pods) != 1 {
		t.Fatalf("%d staging pods", len(pods))
	}
	remove(t, &pods[0])

	apply(t, namespace, clientPod("second", "data", "node1"))
	waitRunning(t, namespace, "second")
	for _, pod := range []string{"first", "second"} {
		got, err := inPod(t.Context(), namespace, pod, "grep -c ' /data tmpfs' /proc/mounts; cat /data/file")
		must(t, err)
		if got != "1\nmounted\n" {
			t.Errorf("pod %s sees %q", pod, got)
		}
	}
	_, err = inPod(t.Context(), namespace, "second", "echo written > /data/file")
	must(t, err)

	remove(t, &corev1.Pod{ObjectMeta: objectMeta(namespace, "first")})
	if _, err := inPod(t.Context(), namespace, "second", "grep written /data/file"); err != nil {
		t.Errorf("the first pod took the mount away with it: %v", err)
	}
	remove(t, &corev1.Pod{ObjectMeta: objectMeta(namespace, "second")})
	eventually(t, "the unstaging pod succeeds", func(ctx context.Context) error {
		stages := &pavv1.PavStageList{}
		if err := kube.List(ctx, stages, client.MatchingLabels{pavv1.ProvisionerLabel: "mounting"}); err != nil {
			return err
		}
		if len(stages.Items) > 0 {
			return fmt.Errorf("the PavStage is %s: %+v", stages.Items[0].Status.Phase, stages.Items[0].Status.UnstagingFailure)
		}
		return nil
	})
}

// A FUSE-like staging pod reports that it is ready and continues to run.
func TestStagingPodThatIsReadyAndKeepsRunning(t *testing.T) {
	namespace := beside(t)
	apply(t, namespace, documents(provisioner("running",
		"mkdir /pav/volume; mount -t tmpfs pav-e2e /pav/volume; touch /pav/ready; trap 'umount /pav/volume; exit 0' TERM; sleep infinity & wait",
		"! grep ' /pav/volume ' /proc/mounts"), storageClass("running")))
	apply(t, namespace, documents(claim("data", "running", "ReadWriteOnce"), clientPod("client", "data", "")))
	waitRunning(t, namespace, "client")
	if _, err := inPod(t.Context(), namespace, "client", "grep ' /data tmpfs' /proc/mounts"); err != nil {
		t.Error(err)
	}
	runningStagingPod(t, "running")
	_, err := onlyStagingPod(t.Context(), "running")
	must(t, err)
}

func TestReadOnlyClient_CannotWrite(t *testing.T) {
	namespace := beside(t)
	apply(t, namespace, documents(provisioner("read-only", "mkdir /pav/volume; mount -t tmpfs pav-e2e /pav/volume", "umount /pav/volume"), storageClass("read-only")))
	readOnly := strings.Replace(clientPod("reader", "data", "node1"), "{claimName: data}", "{claimName: data, readOnly: true}", 1)
	apply(t, namespace, documents(claim("data", "read-only", "ReadWriteMany"), readOnly, clientPod("writer", "data", "node1")))
	waitRunning(t, namespace, "reader", "writer")
	if _, err := inPod(t.Context(), namespace, "writer", "touch /data/file"); err != nil {
		t.Error(err)
	}
	if _, err := inPod(t.Context(), namespace, "reader", "test -e /data/file"); err != nil {
		t.Error(err)
	}
	if _, err := inPod(t.Context(), namespace, "reader", "touch /data/other"); err == nil {
		t.Error("a pod that asked for a read-only volume could write to it")
	}
}

// The volume may be on one node at a time: the second node waits until the first has unstaged it.
func TestExclusiveVolume_SecondNodeWaitsForTheFirst(t *testing.T) {
	namespace := beside(t)
	apply(t, namespace, documents(provisioner("exclusive", "mkdir /pav/volume", "true"), storageClass("exclusive")))
	apply(t, namespace, documents(claim("data", "exclusive", "ReadWriteOnce"), clientPod("first", "data", "node1")))
	waitRunning(t, namespace, "first")
	apply(t, namespace, clientPod("second", "data", "node2"))
	eventually(t, "an event names the holder", func(ctx context.Context) error {
		return wantEvent(ctx, namespace, "second", "FailedMount", "still on node", "node1")
	})
	stages := &pavv1.PavStageList{}
	must(t, kube.List(t.Context(), stages, client.MatchingLabels{pavv1.ProvisionerLabel: "exclusive"}))
	if len(stages.Items) != 1 || stages.Items[0].Spec.NodeName != "node1" {
		t.Errorf("got %d PavStages, want one, on node1", len(stages.Items))
	}
	remove(t, &corev1.Pod{ObjectMeta: objectMeta(namespace, "first")})
	eventually(t, "the second pod runs", func(ctx context.Context) error {
		pod := &corev1.Pod{}
		if err := kube.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "second"}, pod); err != nil {
			return err
		}
		if pod.Status.Phase != corev1.PodRunning {
			return fmt.Errorf("it is %s", pod.Status.Phase)
		}
		return nil
	})
}
