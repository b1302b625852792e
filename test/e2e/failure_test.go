package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

func objectMeta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

// wantEvent returns an error unless an event of the object has the reason, if one is wanted, and all the words.
func wantEvent(ctx context.Context, namespace, object, reason string, words ...string) error {
	_, err := findEvent(ctx, namespace, object, reason, words...)
	return err
}

// findEvent returns an event of the object that has the reason, if one is wanted, and all the words.
func findEvent(ctx context.Context, namespace, object, reason string, words ...string) (*corev1.Event, error) {
	events := &corev1.EventList{}
	if err := kube.List(ctx, events, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	var seen []string
	for i := range events.Items {
		event := &events.Items[i]
		if event.InvolvedObject.Name != object || reason != "" && event.Reason != reason {
			continue
		}
		if hasAll(event.Message, words) {
			return event, nil
		}
		seen = append(seen, event.Message)
	}
	return nil, fmt.Errorf("no event %s of %s has all of %q, but there are %q", reason, object, words, seen)
}

// wantDescribed objects unless what 'kubectl describe pod client' prints has all the words.
func wantDescribed(ctx context.Context, namespace string, words ...string) error {
	out, err := kubectl(ctx, "", "describe", "pod", "-n", namespace, "client")
	if err != nil {
		return err
	}
	for _, word := range words {
		if !strings.Contains(out, word) {
			return fmt.Errorf("there is no %q in:\n%s", word, out)
		}
	}
	return nil
}

func TestProvisionerThatDoesNotExist_PodSaysSo(t *testing.T) {
	namespace := beside(t)
	apply(t, namespace, documents(staticVolume("orphan", "no-such-provisioner", namespace, ""), clientPod("client", "data", "")))
	eventually(t, "the pod says why", func(ctx context.Context) error {
		return wantDescribed(ctx, namespace, "FailedMount", `spec.csi.driver of PersistentVolume "orphan" is "no-such-provisioner"`, "neither a PavProvisioner nor")
	})
}

func TestStagingPodThatFails_PodSaysWhy_AndAllIsReverted(t *testing.T) {
	namespace := beside(t)
	apply(t, namespace, documents(provisioner("fails-to-stage",
		"mkdir /pav/volume; mount -t tmpfs pav-e2e /pav/volume; echo 'the backend is on fire' > /pav/error; exit 3",
		"umount /pav/volume"), storageClass("fails-to-stage")))
	apply(t, namespace, documents(claim("data", "fails-to-stage", "ReadWriteOnce"), clientPod("client", "data", "")))
	eventually(t, "the pod says why", func(ctx context.Context) error {
		return wantDescribed(ctx, namespace, "FailedMount", `provisioner "fails-to-stage"`, "pod pav-pods/stage-", "exit code 3", "the backend is on fire", "kubectl logs -n pav-pods stage-")
	})
	eventually(t, "the claim says why", func(ctx context.Context) error {
		return wantEvent(ctx, namespace, "data", "FailedMount", `provisioner "fails-to-stage"`, "the backend is on fire")
	})
	eventually(t, "an attempt is reverted", func(ctx context.Context) error {
		stages := &pavv1.PavStageList{}
		if err := kube.List(ctx, stages, client.MatchingLabels{pavv1.ProvisionerLabel: "fails-to-stage"}); err != nil {
			return err
		}
		if len(stages.Items) != 1 || stages.Items[0].Status.Phase != pavv1.StageFailed {
			return fmt.Errorf("there are %d PavStages, want one that failed", len(stages.Items))
		}
		return nil
	})
}

// When an error in a definition is corrected, the pod starts without being changed.
func TestTemplateThatDoesNotRender_EventNamesTheField_AndRecovery(t *testing.T) {
	namespace := beside(t)
	broken := provisioner("broken", "mkdir /pav/volume; echo {{ params.no_such_parameter.at_all }}", "")
	apply(t, namespace, documents(broken, storageClass("broken")))
	apply(t, namespace, documents(claim("data", "broken", "ReadWriteOnce"), clientPod("client", "data", "")))
	eventually(t, "the pod says why", func(ctx context.Context) error {
		return wantDescribed(ctx, namespace, "FailedMount", `provisioner "broken"`, "spec.volumeStaging.podTemplate.spec.containers[0].args[0]: line 1, column 34: 'dict object' has no attribute 'no_such_parameter'")
	})
	_, err := kubectl(t.Context(), provisioner("broken", "mkdir /pav/volume", ""), "apply", "-f", "-")
	must(t, err)
	waitRunning(t, namespace, "client")
}

func TestNamespaceThatIsNotOpen_PodSaysHowToOpenIt(t *testing.T) {
	namespace := beside(t)
	elsewhere := strings.Replace(provisioner("elsewhere", "mkdir /pav/volume", ""), "podTemplate:\n      spec:", "podTemplate:\n      metadata: {namespace: "+namespace+"}\n      spec:", 1)
	apply(t, namespace, documents(elsewhere, storageClass("elsewhere")))
	apply(t, namespace, documents(claim("data", "elsewhere", "ReadWriteOnce"), clientPod("client", "data", "")))
	hint := "kubectl label namespace " + namespace + " pav.albertofaria.github.io/allow-pods=true"
	eventually(t, "the pod says how", func(ctx context.Context) error {
		return wantDescribed(ctx, namespace, "FailedMount", hint)
	})
	_, err := kubectl(t.Context(), "", strings.Fields(strings.TrimPrefix(hint, "kubectl "))...)
	must(t, err)
	waitRunning(t, namespace, "client")
	pods, err := stagingPods(t.Context(), "elsewhere")
	must(t, err)
	if len(pods) != 1 || pods[0].Namespace != namespace {
		t.Errorf("got %d staging pods, want one in %s", len(pods), namespace)
	}
}

// A failing unstaging pod is reported, delays only its own volume, and succeeds when the cause is fixed.
func TestUnstagingPodThatFails_IsRetriedUntilItSucceeds(t *testing.T) {
	namespace := beside(t)
	apply(t, namespace, documents(provisioner("stuck", "mkdir /pav/volume", "echo 'word of the log' >&2; echo 'cannot let go' > /pav/error; exit 1"), storageClass("stuck")))
	data := documents(claim("data", "stuck", "ReadWriteOnce"), clientPod("client", "data", ""))
	apply(t, namespace, data)
	waitRunning(t, namespace, "client")
	remove(t, &corev1.Pod{ObjectMeta: objectMeta(namespace, "client")})
	eventually(t, "the claim says why", func(ctx context.Context) error {
		return wantEvent(ctx, namespace, "data", "FailedUnmount", `provisioner "stuck"`, "cannot let go", "kubectl logs -n pav-pods unstage-")
	})
	if event, err := findEvent(t.Context(), namespace, "data", "", "word of the log"); err == nil {
		t.Errorf("an event of the claim has a line of the pod's log: %s", event.Message)
	}
	bound := &corev1.PersistentVolumeClaim{}
	must(t, kube.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "data"}, bound))
	remove(t, bound)
	volume := &pavv1.PavVolume{}
	must(t, kube.Get(t.Context(), client.ObjectKey{Name: bound.Spec.VolumeName}, volume)) // It waits for its stage.
	_, err := kubectl(t.Context(), provisioner("stuck", "mkdir /pav/volume", "true"), "apply", "-f", "-")
	must(t, err)
	eventually(t, "the volume is deleted", func(ctx context.Context) error { return gone(ctx, volume) })
}
