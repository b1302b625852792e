package integration

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/kubectl/status"
	"github.com/albertofaria/pav/internal/workflow"
	"github.com/albertofaria/pav/test/agent"
)

// withDeletionPod gives a provisioner deletion pods that have an annotation of what they see.
func withDeletionPod(p *pavv1.PavProvisioner, _ *storagev1.StorageClass) {
	p.Spec.VolumeDeletion = &pavv1.VolumeDeletion{PodTemplate: field(`{
		"metadata": {"annotations": {"sees": "{{ pvc.metadata.labels.owner }} {{ params.pool }} {{ volumeHandle }}"}},
		"spec": {"containers": [{"name": "main", "image": "none"}]}
	}`)}
}

func ownedClaim(class, owner string) *corev1.PersistentVolumeClaim {
	claim := claimOf(class, "data")
	claim.Labels = map[string]string{"owner": owner}
	return claim
}

// inPool gives a StorageClass a parameter.
func inPool(_ *pavv1.PavProvisioner, s *storagev1.StorageClass) {
	s.Parameters = map[string]string{"pool": "gold"}
}

// isKept fails the test if an object is gone or being deleted.
func isKept(t *testing.T, c *cluster, object client.Object) {
	t.Helper()
	if err := c.Admin.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil || object.GetDeletionTimestamp() != nil {
		t.Errorf("%T %s: %v, deleted %v", object, object.GetName(), err, object.GetDeletionTimestamp())
	}
}

func TestPersistentVolume_IsDeletedOnlyAfterItsDeletionPodHasSucceeded(t *testing.T) {
	c := start(t)
	run(t, c)
	driver(t, c, "lasting", withDeletionPod, inPool)
	claim := mustCreate(t, c, ownedClaim("lasting", "me"))
	pv, volume := bound(t, c, claim)
	mustDelete(t, c, classOf("lasting"))
	mustDelete(t, c, claim)
	gone(t, c, claim)

	pod, _ := podOf(t, c, claim, pavv1.WorkflowDeletion)
	if got, want := pod.Annotations["sees"], "me gold "+pv.Name; got != want {
		t.Errorf("without claim and StorageClass, the deletion pod sees %q, want %q", got, want)
	}
	isKept(t, c, pv)
	end(t, c, pod, workflow.Result{Error: "still needed"}, 4)
	for _, object := range []client.Object{pv, volume} {
		wantEvent(t, c, object, "Warning", "VolumeFailedDelete", "still needed; see kubectl logs -n pav-pods "+pod.Name)
	}
	isKept(t, c, pv)

	exists(t, c, volume, "is tried again", func(v *pavv1.PavVolume) bool {
		return v.Status.DeletionAttempt == 2 && v.Status.Pod != nil && v.Status.Pod.UID != ""
	})
	next, _ := podOf(t, c, claim, pavv1.WorkflowDeletion)
	isKept(t, c, pv)
	end(t, c, next, workflow.Result{}, 0)
	gone(t, c, pv)
	gone(t, c, volume)
}

// If a node is slow to report the error text of a failed pod, the text is added after the failure.
func TestPodMessageThatArrivesLate_IsRecordedAndReported(t *testing.T) {
	c := start(t)
	run(t, c)
	driver(t, c, "slow", withPods)
	nodeIn(t, c, fakeNode, "none") // which is slow, and not gone
	claim := mustCreate(t, c, ownedClaim("slow", "me"))
	fail := func(kind string) *corev1.Pod {
		pod, volume := podOf(t, c, claim, kind)
		if kind == pavv1.WorkflowDeletion {
			makeThirtieth(t, c, volume)
		}
		if err := endContainers(t.Context(), c.Admin, pod, 4); err != nil {
			t.Fatal(err)
		}
		return pod
	}
	tell := func(pod *corev1.Pod, words string) {
		if err := tellResult(t.Context(), nodeAgent(t, c, fakeNode), pod, workflow.Result{Error: words}); err != nil {
			t.Fatal(err)
		}
	}
	without := func(f *pavv1.WorkflowFailure) bool {
		return f != nil && strings.Contains(f.Message, "exit code 4; see kubectl logs")
	}
	wants := func(f *pavv1.WorkflowFailure, words string) bool {
		return f != nil && strings.Contains(f.Message, "exit code 4: "+words+"; see kubectl logs")
	}

	creation := fail(pavv1.WorkflowCreation)
	volume := volumeOf(claim)
	exists(t, c, volume, "has failed without a word", func(v *pavv1.PavVolume) bool { return without(v.Status.Failure) })
	failed := volume.Status.Failure.DeepCopy()
	if failed.Reason != pavv1.FailurePodFailed || !failed.NextAttemptTime.After(failed.Time.Time) {
		t.Errorf("creation failed with reason %q at %s, and is repeated at %s", failed.Reason, failed.Time, failed.NextAttemptTime)
	}
	tell(creation, "half of it") // before which nobody knows what is to be reverted
	exists(t, c, volume, "has the words of the creation pod", func(v *pavv1.PavVolume) bool {
		return wants(v.Status.Failure, "half of it") && v.Status.Failure.NextAttemptTime.Equal(failed.NextAttemptTime) && meta.FindStatusCondition(v.Status.Conditions, pavv1.VolumeProvisioned).Message == "creation: "+v.Status.Failure.Message
	})
	deletion := fail(pavv1.WorkflowDeletion)
	exists(t, c, volume, "has failed to revert without a word", func(v *pavv1.PavVolume) bool { return without(v.Status.DeletionFailure) })
	tell(deletion, "cannot undo it")
	exists(t, c, volume, "has the words of the deletion pod", func(v *pavv1.PavVolume) bool {
		return wants(v.Status.DeletionFailure, "cannot undo it") && wants(v.Status.Failure, "half of it")
	})
	wantEvent(t, c, claim, "Warning", "ProvisioningFailed", `PavProvisioner "slow": creation: pod pav-pods/`+creation.Name+` failed: container "main" ended with exit code 4: half of it`)
	wantEvent(t, c, claim, "Warning", "VolumeFailedDelete", `PavProvisioner "slow": deletion: pod pav-pods/`+deletion.Name+` failed: container "main" ended with exit code 4: cannot undo it`)

	if asked := mustRetry(t, c, status.Ref{Kind: status.Claim, Namespace: claim.Namespace, Name: claim.Name}); asked != 1 {
		t.Errorf("%d volumes are retried, want 1", asked)
	}
	next, _ := podOf(t, c, claim, pavv1.WorkflowDeletion)
	mustDelete(t, c, claim)
	end(t, c, next, workflow.Result{}, 0)
	gone(t, c, volume)
}

// A claim of the same name is another claim: its volume is not deleted with the first one's.
func TestClaimReplaced_BetweenProvisioningAndDeletion(t *testing.T) {
	c := start(t)
	run(t, c)
	driver(t, c, "successor", withDeletionPod, inPool)
	first := mustCreate(t, c, ownedClaim("successor", "first"))
	pv, volume := bound(t, c, first)
	nodeIn(t, c, fakeNode, "none") // or else its stages are let go
	stage := createStaged(t, c, stageOf(pv, "stage-successor", fakeNode))
	mustDelete(t, c, first)
	gone(t, c, first)
	second := mustCreate(t, c, ownedClaim("successor", "second"))
	other, _ := bound(t, c, second)
	if other.Name == pv.Name || other.Spec.CSI.VolumeHandle == pv.Spec.CSI.VolumeHandle {
		t.Errorf("the second claim has the first one's volume: %s", other.Name)
	}

	mustPatch(t, c, stage, func(s *pavv1.PavStage) { s.Finalizers = nil })
	mustDelete(t, c, stage)
	pod, _ := podOf(t, c, first, pavv1.WorkflowDeletion)
	if got, want := pod.Annotations["sees"], "first gold "+pv.Name; got != want {
		t.Errorf("the deletion pod sees %q, want %q", got, want)
	}
	end(t, c, pod, workflow.Result{}, 0)
	gone(t, c, pv)
	gone(t, c, volume)
	awaitBound(t, c, second)
	isKept(t, c, other)

	mustDelete(t, c, second)
	pod, _ = podOf(t, c, second, pavv1.WorkflowDeletion)
	end(t, c, pod, workflow.Result{}, 0)
	gone(t, c, other)
}

func TestRetainedRecord_IsDeletedWhenTheAdministratorSaysSo(t *testing.T) {
	c := start(t)
	a := run(t, c)
	driver(t, c, "reclaimed", retain, withDeletionPod, inPool)
	claim := mustCreate(t, c, ownedClaim("reclaimed", "me"))
	pv, volume := bound(t, c, claim)
	mustDelete(t, c, claim)
	retained := func(v *pavv1.PavVolume) bool { return v.Status.Phase == pavv1.VolumeRetained && len(v.Finalizers) == 0 }
	exists(t, c, volume, "is retained", retained)
	mustDelete(t, c, pv)
	gone(t, c, pv)

	mustPatch(t, c, volume, func(v *pavv1.PavVolume) { v.Spec.ReclaimPolicy = corev1.PersistentVolumeReclaimDelete })
	exists(t, c, volume, "has its finalizer again", func(v *pavv1.PavVolume) bool { return len(v.Finalizers) == 1 })
	if n := podsMade(a); n > 0 || volume.Status.Phase != pavv1.VolumeRetained {
		t.Errorf("before it is deleted, its phase is %s, and %d pods were made", volume.Status.Phase, n)
	}
	mustPatch(t, c, volume, func(v *pavv1.PavVolume) { v.Spec.ReclaimPolicy = corev1.PersistentVolumeReclaimRetain })
	exists(t, c, volume, "is retained again", retained)
	mustPatch(t, c, volume, func(v *pavv1.PavVolume) { v.Spec.ReclaimPolicy = corev1.PersistentVolumeReclaimDelete })
	exists(t, c, volume, "has its finalizer again", func(v *pavv1.PavVolume) bool { return len(v.Finalizers) == 1 })

	mustDelete(t, c, volume)
	pod, _ := podOf(t, c, claim, pavv1.WorkflowDeletion)
	if got, want := pod.Annotations["sees"], "me gold "+pv.Spec.CSI.VolumeHandle; got != want {
		t.Errorf("the deletion pod sees %q, want %q", got, want)
	}
	end(t, c, pod, workflow.Result{}, 0)
	gone(t, c, volume)
}

// fullHouse is a connection to an API server that refuses PersistentVolumes until there is room for them.
type fullHouse struct {
	next http.RoundTripper
	room atomic.Bool
}

// RoundTrip implements http.RoundTripper.
func (h *fullHouse) RoundTrip(request *http.Request) (*http.Response, error) {
	if h.room.Load() || request.Method != http.MethodPost || request.URL.Path != "/api/v1/persistentvolumes" {
		return h.next.RoundTrip(request)
	}
	answer, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity, Message: "there is no room",
	})
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: http.StatusUnprocessableEntity, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(answer)), Request: request, ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

func TestPersistentVolumeThatCannotBeWritten(t *testing.T) {
	tests := map[string]func(*testing.T, *cluster, *fullHouse, *corev1.PersistentVolumeClaim){
		"is written when it can be": func(t *testing.T, c *cluster, house *fullHouse, claim *corev1.PersistentVolumeClaim) {
			t.Helper()
			house.room.Store(true)
			if pv, _ := bound(t, c, claim); pv.Spec.CSI.VolumeHandle != "made" {
				t.Errorf("the handle is %q", pv.Spec.CSI.VolumeHandle)
			}
			mustDelete(t, c, claim)
		},
		"is reverted when nobody wants it": func(t *testing.T, c *cluster, _ *fullHouse, claim *corev1.PersistentVolumeClaim) {
			t.Helper()
			mustDelete(t, c, claim)
			gone(t, c, claim)
		},
	}
	for name, goOn := range tests {
		t.Run(name, func(t *testing.T) {
			c := start(t)
			house := &fullHouse{}
			config := rest.CopyConfig(c.agent)
			config.Wrap(func(next http.RoundTripper) http.RoundTripper { house.next = next; return house })
			a := agent.Launch(t, config, agent.Options(namespace), &agent.Line{})
			t.Cleanup(func() { a.Stop(t); checkNothingLeft(t, c) })
			driver(t, c, "unwritten", withPods)
			claim := mustCreate(t, c, claimOf("unwritten", "data"))
			pod, _ := podOf(t, c, claim, pavv1.WorkflowCreation)
			end(t, c, pod, workflow.Result{Handle: "made"}, 0)
			volume := volumeOf(claim)
			wantEvent(t, c, claim, "Warning", "ProvisioningFailed", `writing PersistentVolume "`+volume.Name+`": there is no room`)
			exists(t, c, volume, "remembers what was made", func(v *pavv1.PavVolume) bool { return v.Status.Handle == "made" })
			goOn(t, c, house, claim)
			pod, _ = podOf(t, c, claim, pavv1.WorkflowDeletion)
			if got := pod.Annotations[pavv1.HandleAnnotation]; got != "made" {
				t.Errorf("the deletion pod is for the handle %q", got)
			}
			end(t, c, pod, workflow.Result{}, 0)
			gone(t, c, volume)
		})
	}
}

// Names of PersistentVolumes contain the claim's UID, so two provisioners cannot both create one for it.
func TestPersistentVolumeOfTheName_IsInTheWay(t *testing.T) {
	c := start(t)
	run(t, c)
	driver(t, c, "obstructed", func(_ *pavv1.PavProvisioner, s *storagev1.StorageClass) {
		s.VolumeBindingMode = new(storagev1.VolumeBindingWaitForFirstConsumer)
	})
	nodeIn(t, c, "obstructed-node", "a")
	claim := mustCreate(t, c, claimOf("obstructed", "data"))
	pv := volumeByHand("other", claim)
	pv.Name = volumeOf(claim).Name
	pv.Spec.ClaimRef = nil
	mustCreate(t, c, pv)
	t.Cleanup(func() { _ = c.Admin.Delete(lasting(t), pv) })
	selectNode(t, c, claim, "obstructed-node")
	wantEvent(t, c, claim, "Warning", "ProvisioningFailed", `PersistentVolume "`+pv.Name+`" exists and is not this claim's; delete it`)
	isKept(t, c, pv)
	mustDelete(t, c, pv)
	bound(t, c, claim)
}

// The number of attempts, and so the delay between them, survives a restart of the agent.
func TestAttempts_ContinueAfterARestart(t *testing.T) {
	c := start(t)
	current := agent.Launch(t, c.agent, agent.Options(namespace), &agent.Line{})
	t.Cleanup(func() { current.Stop(t); checkNothingLeft(t, c) })
	driver(t, c, "restarted", func(p *pavv1.PavProvisioner, _ *storagev1.StorageClass) { p.Spec.VolumeCreation = nil })
	claim := mustCreate(t, c, claimOf("restarted", "data"))
	failed := func(attempt int32) time.Time {
		volume := volumeOf(claim)
		exists(t, c, volume, "has failed again", func(v *pavv1.PavVolume) bool { return v.Status.Attempt >= attempt && v.Status.Failure != nil })
		if volume.Status.Attempt != attempt {
			t.Errorf("attempt %d comes too soon", volume.Status.Attempt)
		}
		return volume.Status.Failure.Time.Time
	}
	third := failed(3)
	current.Stop(t)
	current = agent.Launch(t, c.agent, agent.Options(namespace), &agent.Line{})
	if delay := failed(4).Sub(third); delay < 4*time.Second {
		t.Errorf("after a restart, the fourth attempt follows the third after %s", delay)
	}
	wantEvent(t, c, claim, "Warning", "ProvisioningFailed", "; attempt 5 follows in 8s")
}
