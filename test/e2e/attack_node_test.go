package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// These attacks are real requests, not dry runs, with the token of the node agent on the node's disk. Root on the node can
// read it.

// stolenToken returns a client with the token of the node agent that runs on a node.
func stolenToken(t *testing.T, node string) client.Client {
	t.Helper()
	tokens := fmt.Sprintf("cat %s/pods/%s/volumes/kubernetes.io~projected/*/token", kubeletDir, agentOn(t, node).UID)
	token, err := onNode(t.Context(), node, "bash", "-c", tokens)
	must(t, err)
	config := rest.AnonymousClientConfig(restConfig(t))
	config.BearerToken = token
	return newClient(t, config)
}

// planned and unplanned are Secrets of which only the first is in the definition.
const (
	planned   = "attack-planned"
	unplanned = "attack-unplanned"
)

// newSecret makes a Secret in the namespace of workflow pods, with the entry "key".
func newSecret(t *testing.T, name string) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: objectMeta(workflow.DefaultNamespace, name), StringData: map[string]string{"key": canary + "-" + name}}
	must(t, kube.Create(t.Context(), secret))
	t.Cleanup(func() { remove(t, secret) })
}

// printing makes a pod print a Secret.
func printing(secret string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Command, pod.Spec.Containers[0].Args = []string{"cat", "/stolen/key"}, nil
		pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "stolen", MountPath: "/stolen"}}
		pod.Spec.Volumes = []corev1.Volume{{Name: "stolen", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret}}}}
		// The annotation that requests the controller agent's check is left out, as a thief would do.
		delete(pod.Annotations, pavv1.AdmitAnnotation)
	}
}

// inVariable is printing for a Secret in an environment variable.
func inVariable(secret string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		printing(secret)(pod)
		pod.Spec.Volumes, pod.Spec.Containers[0].VolumeMounts = nil, nil
		pod.Spec.Containers[0].Command = []string{"printenv", "STOLEN"}
		pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "STOLEN", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Key: "key",
		}}}}
	}
}

// wantRefused fails the test unless the creation of a pod is refused with the words.
func wantRefused(t *testing.T, thief client.Client, pod *corev1.Pod, words string) {
	t.Helper()
	switch err := thief.Create(t.Context(), pod); {
	case err == nil:
		t.Error("the pod is created")
		remove(t, pod)
	case !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), words):
		t.Errorf("got %v, want that it is forbidden because %q", err, words)
	}
}

// stolenScene is storage whose staging pods have a Secret: a volume of clients on both nodes, and one of a client on node2
// alone.
type stolenScene struct {
	*ledger
	thief         client.Client // with the token of node1's agent
	claim, others *corev1.PersistentVolumeClaim
}

func setStolenScene(t *testing.T) *stolenScene {
	t.Helper()
	newSecret(t, planned)
	newSecret(t, unplanned)
	l := newStorage(t, "attacked", directories, with("stage volumes", "- {name: planned, secret: {secretName: "+planned+"}}"))
	s := &stolenScene{
		ledger: l, thief: stolenToken(t, "node1"),
		claim: l.volume(t, "data", directories, corev1.ReadWriteMany), others: l.volume(t, "others", directories, corev1.ReadWriteMany),
	}
	l.run(t, clientPod("on-node1", "data", "node1"), clientPod("on-node2", "others", "node2"))
	return s
}

// stage returns the stage of a claim's volume, and its staging pod.
func (s *stolenScene) stage(t *testing.T, claim *corev1.PersistentVolumeClaim) (*pavv1.PavStage, *corev1.Pod) {
	t.Helper()
	stages, err := s.stages(t.Context())
	must(t, err)
	at := slices.IndexFunc(stages, func(stage pavv1.PavStage) bool { return stage.Spec.ClaimRef.UID == claim.UID })
	if at < 0 || stages[at].Status.StagingPod == nil {
		t.Fatalf("claim %s has no staged volume among %d", claim.Name, len(stages))
	}
	ref, pod := stages[at].Status.StagingPod, &corev1.Pod{}
	must(t, kube.Get(t.Context(), client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, pod))
	return &stages[at], pod
}

// A stolen node token gives no access to Secrets of volumes that pods of the node do not use, and no influence on other
// nodes.
func TestAttack_WithTheTokenOfANode(t *testing.T) {
	t.Parallel()
	s := setStolenScene(t)
	stage, staging := s.stage(t, s.claim)
	_, othersStaging := s.stage(t, s.others)

	t.Run("a pod of no stage that prints a Secret", func(t *testing.T) {
		pod := &corev1.Pod{ObjectMeta: objectMeta(workflow.DefaultNamespace, "forged"), Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "busybox:1.37.0"}}}}
		printing(unplanned)(pod)
		wantRefused(t, s.thief, pod, ownPods)
	})
	for name, change := range map[string]func(*corev1.Pod){"mounted": printing(unplanned), "in a variable": inVariable(unplanned)} {
		t.Run("a pod of a real stage with a Secret that is not planned, "+name, func(t *testing.T) {
			wantRefused(t, s.thief, newPod(staging, change), "does not plan")
		})
	}
	t.Run("a pod of another node's stage with the Secret that is planned for it", func(t *testing.T) {
		pod := newPod(othersStaging, func(pod *corev1.Pod) {
			printing(planned)(pod)
			pod.Annotations[pavv1.NodeAnnotation] = "node1"
			bound(pod, term("node1"))
		})
		wantRefused(t, s.thief, pod, "is of node")
	})
	t.Run("a pod of a forged stage of a volume that no pod of the node uses", s.forgeStage)
	t.Run("what is planned is allowed, so that all this is refused for the reason that it gives", func(t *testing.T) {
		try(t, s.thief, []attempt{{"a pod of the stage", creating(newPod(staging, func(*corev1.Pod) {})), ""}})
	})
	t.Run("an unstaging pod in advance for another node's stage", s.unstageInAdvance)

	s.end(t, "on-node1")
	s.awaitEffects(t, s.claim, "stage", "unstage")
	eventually(t, "the stage is gone", func(ctx context.Context) error { return gone(ctx, stage) })
}

// forgeStage writes a PavStage on node1, as its agent may, for a volume that only node2's pods use, and creates a pod with
// the Secret that is planned for it.
func (s *stolenScene) forgeStage(t *testing.T) {
	stage, staging := s.stage(t, s.others)
	forged := newStage(stage)
	forged.Name, forged.Spec.NodeName, forged.Annotations, forged.Finalizers = "forged-"+stage.Name, "node1", nil, nil
	must(t, s.thief.Create(t.Context(), forged))
	t.Cleanup(func() { remove(t, forged) })
	pod := newPod(staging, func(pod *corev1.Pod) {
		printing(planned)(pod)
		pod.Labels[pavv1.StageLabel], pod.Annotations[pavv1.NodeAnnotation] = forged.Name, "node1"
		pod.OwnerReferences[0].Name, pod.OwnerReferences[0].UID = forged.Name, forged.UID
		bound(pod, term("node1"))
	})
	wantRefused(t, s.thief, pod, "no running pod on node node1")
}

// unstageInAdvance creates the pod that will unstage node2's volume, with node1's token, before the last client is deleted.
func (s *stolenScene) unstageInAdvance(t *testing.T) {
	stage, staging := s.stage(t, s.others)
	pod := newPod(staging, func(pod *corev1.Pod) {
		pod.Name = workflow.Name(pavv1.WorkflowUnstaging, string(stage.UID), "1")
		pod.Labels[pavv1.WorkflowLabel] = pavv1.WorkflowUnstaging
		pod.Annotations = map[string]string{pavv1.NodeAnnotation: "node1", pavv1.AttemptAnnotation: "1"}
		pod.Finalizers = nil
		pod.Spec.Volumes, pod.Spec.InitContainers = nil, nil
		pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "busybox:1.37.0", Command: []string{"true"}}}
		bound(pod, term("node1"))
	})
	must(t, s.thief.Create(t.Context(), pod))
	t.Cleanup(func() { remove(t, pod) })
	eventually(t, "the forged pod has succeeded", func(ctx context.Context) error { return wantPhase(ctx, pod, corev1.PodSucceeded) })
	s.end(t, "on-node2")
	s.awaitEffects(t, s.others, "stage", "unstage")
	eventually(t, "the stage is gone", func(ctx context.Context) error { return gone(ctx, stage) })
	effects, err := s.effects(true)
	must(t, err)
	if got, want := effects[volumeName(s.others)], []string{"stage on node2", "unstage on node2"}; !slices.Equal(got, want) {
		t.Errorf("what was done is %q, want %q", got, want)
	}
	if mounts, err := onNode(t.Context(), "node2", "cat", "/proc/self/mountinfo"); err != nil || strings.Contains(mounts, "/"+stage.Name+"/") {
		t.Errorf("the volume is still mounted (%v)", err)
	}
}
