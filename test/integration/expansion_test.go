package integration

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// growable gives a provisioner expansion pods, which have an annotation of what they see, and a deletion pod; its class lets
// claims grow.
func growable(p *pavv1.PavProvisioner, s *storagev1.StorageClass) {
	p.Spec.VolumeExpansion = &pavv1.VolumeExpansion{PodTemplate: field(`{
		"metadata": {"annotations": {"sees": "{{ handle == pv.spec.csi.volumeHandle }} {{ capacity }} {{ newCapacity }} {{ maxCapacity is none }} {{ params.pool }} {{ pvc.metadata.name }}"}},
		"spec": {"containers": [{"name": "main", "image": "none"}]}
	}`)}
	withDeletionPod(p, s)
	inPool(p, s)
	s.AllowVolumeExpansion = new(true)
}

func requests(text string) func(*corev1.PersistentVolumeClaim) {
	return func(claim *corev1.PersistentVolumeClaim) {
		claim.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(text)
	}
}

// claimSays is the size in the status of a claim: capacity, what is allocated, the state of the expansion, and its conditions.
func claimSays(claim *corev1.PersistentVolumeClaim) string {
	status := &claim.Status
	words := []string{status.Capacity.Storage().String()}
	if allocated, found := status.AllocatedResources[corev1.ResourceStorage]; found {
		words = append(words, "allocated "+allocated.String())
	}
	if resize := status.AllocatedResourceStatuses[corev1.ResourceStorage]; resize != "" {
		words = append(words, string(resize))
	}
	for _, c := range status.Conditions {
		words = append(words, strings.TrimSpace(string(c.Type)+" "+c.Message))
	}
	return strings.Join(words, ", ")
}

// hasAllocations reports whether the API server keeps what the status of a claim says of an expansion, as by default from 1.32 on, and lets
// claims request less while their volumes grow.
func hasAllocations(c *cluster) bool { return c.Minor >= 32 }

// droppedSizes are what older API servers drop of what claimSays returns.
var droppedSizes = regexp.MustCompile(`^(allocated .*|(Controller|Node)Resize(InProgress|Infeasible|Pending))$`)

// kept returns what the API server keeps of what a claim is to say of its size.
func kept(c *cluster, size string) string {
	if hasAllocations(c) {
		return size
	}
	return strings.Join(slices.DeleteFunc(strings.Split(size, ", "), droppedSizes.MatchString), ", ")
}

// wantSize waits until a claim says something of its size.
func wantSize(t *testing.T, c *cluster, claim *corev1.PersistentVolumeClaim, want string) {
	t.Helper()
	want = kept(c, want)
	exists(t, c, claim, "says "+want, func(claim *corev1.PersistentVolumeClaim) bool { return strings.HasPrefix(claimSays(claim), want) })
}

func TestExpansion_OfAVolume_GivesWhatItsPodReports(t *testing.T) {
	c := start(t)
	run(t, c)
	driver(t, c, "growing", growable)
	claim := mustCreate(t, c, ownedClaim("growing", "me"))
	pv, volume := bound(t, c, claim)
	if diff := cmp.Diff("1Gi", claimSays(claim)); diff != "" {
		t.Errorf("a claim that did not grow (-want +got):\n%s", diff)
	}

	mustPatch(t, c, claim, requests("2Gi"))
	pod, _ := podOf(t, c, claim, pavv1.WorkflowExpansion)
	if got, want := pod.Annotations["sees"], "True 1073741824 2147483648 True gold data"; got != want {
		t.Errorf("the expansion pod sees %q, want %q", got, want)
	}
	wantSize(t, c, claim, "1Gi, allocated 2Gi, ControllerResizeInProgress, Resizing")
	end(t, c, pod, workflow.Result{Capacity: "3Gi"}, 0)

	wantSize(t, c, claim, "3Gi, allocated 2Gi")
	if diff := cmp.Diff(kept(c, "3Gi, allocated 2Gi"), claimSays(claim)); diff != "" {
		t.Errorf("a claim that has grown (-want +got):\n%s", diff)
	}
	exists(t, c, pv, "has grown", func(pv *corev1.PersistentVolume) bool { return pv.Spec.Capacity.Storage().String() == "3Gi" })
	exists(t, c, volume, "has no expansion", func(v *pavv1.PavVolume) bool {
		return v.Status.Capacity.String() == "3Gi" && v.Status.Expansion == nil && v.Status.Pod == nil && v.Status.Step == "" &&
			meta.FindStatusCondition(v.Status.Conditions, pavv1.VolumeExpanded) == nil
	})
	wantEvent(t, c, claim, "Normal", "Resizing", "is expanding the volume to 2Gi")
	wantEvent(t, c, claim, "Normal", "VolumeResizeSuccessful", "from 1Gi to 3Gi")

	mustDelete(t, c, claim)
	deletion, _ := podOf(t, c, claim, pavv1.WorkflowDeletion)
	end(t, c, deletion, workflow.Result{}, 0)
	gone(t, c, pv)
}

// A claim changes its mind while expansions fail.
func TestExpansion_ThatFails_IsTriedAgainOrWithAnotherSize(t *testing.T) {
	c := start(t)
	run(t, c)
	driver(t, c, "failing-to-grow", growable)
	claim := mustCreate(t, c, ownedClaim("failing-to-grow", "me"))
	_, volume := bound(t, c, claim)

	mustPatch(t, c, claim, requests("4Gi"))
	pod, _ := podOf(t, c, claim, pavv1.WorkflowExpansion)
	end(t, c, pod, workflow.Result{Error: "the array is busy"}, 3)
	wantSize(t, c, claim, "1Gi, allocated 4Gi, ControllerResizeInProgress, Resizing, ControllerResizeError pod pav-pods/"+pod.Name)
	wantEvent(t, c, claim, "Warning", "VolumeResizeFailed", "the array is busy")
	exists(t, c, volume, "is tried again", func(v *pavv1.PavVolume) bool {
		return v.Status.Expansion != nil && v.Status.Expansion.Attempt == 2 && v.Status.Pod != nil && v.Status.Pod.UID != ""
	})

	second, _ := podOf(t, c, claim, pavv1.WorkflowExpansion)
	text := "at most 2Gi"
	end(t, c, second, workflow.Result{Infeasible: &text}, 1)
	wantSize(t, c, claim, "1Gi, allocated 4Gi, ControllerResizeInfeasible, Resizing, ControllerResizeError")
	wantEvent(t, c, claim, "Warning", "VolumeResizeFailed", "at most 2Gi; see kubectl logs -n pav-pods "+second.Name)
	wantEvent(t, c, claim, "Warning", "VolumeResizeFailed", "or when the claim or the definition changes")

	other := "2Gi"
	if !hasAllocations(c) {
		other = "5Gi"
	}
	mustPatch(t, c, claim, requests(other))
	third, _ := podOf(t, c, claim, pavv1.WorkflowExpansion)
	if third.UID == second.UID {
		t.Error("no other pod expands the volume to the other size")
	}
	end(t, c, third, workflow.Result{}, 0)
	wantSize(t, c, claim, other+", allocated "+other)
	if diff := cmp.Diff(kept(c, other+", allocated "+other), claimSays(claim)); diff != "" {
		t.Errorf("a claim that has grown (-want +got):\n%s", diff)
	}
	noPodIsLeft(t, c)
	mustDelete(t, c, claim)
	deletion, _ := podOf(t, c, claim, pavv1.WorkflowDeletion)
	end(t, c, deletion, workflow.Result{}, 0)
	gone(t, c, volume)
}

// A pod that has started is seen to its end before the storage is deleted; one that has not is stopped.
func TestExpansion_OfAVolumeThatIsDeleted_EndsFirst(t *testing.T) {
	c := start(t)
	run(t, c)
	driver(t, c, "growing-to-the-end", growable)
	claim := mustCreate(t, c, ownedClaim("growing-to-the-end", "me"))
	pv, volume := bound(t, c, claim)
	mustPatch(t, c, claim, requests("2Gi"))
	pod, _ := podOf(t, c, claim, pavv1.WorkflowExpansion)
	mustPatchStatus(t, c, pod, func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning })
	mustDelete(t, c, claim)
	gone(t, c, claim)
	exists(t, c, pv, "is released", func(pv *corev1.PersistentVolume) bool { return pv.Status.Phase == corev1.VolumeReleased })
	exists(t, c, volume, "still expands", func(v *pavv1.PavVolume) bool {
		return v.Status.Step == pavv1.StepExpanding && v.Status.Pod != nil && v.Status.Phase == pavv1.VolumeReady
	})
	end(t, c, pod, workflow.Result{}, 0)
	deletion, _ := podOf(t, c, claim, pavv1.WorkflowDeletion)
	end(t, c, deletion, workflow.Result{}, 0)
	gone(t, c, pv)
	gone(t, c, volume)
}

// A pod that cannot start is no obstacle to the deletion of the volume.
func TestExpansion_OfAVolumeThatIsDeleted_BeforeItsPodStarts(t *testing.T) {
	c := start(t)
	run(t, c)
	driver(t, c, "never-growing", growable)
	claim := mustCreate(t, c, ownedClaim("never-growing", "me"))
	pv, _ := bound(t, c, claim)
	mustPatch(t, c, claim, requests("2Gi"))
	podOf(t, c, claim, pavv1.WorkflowExpansion)
	mustDelete(t, c, claim)
	deletion, volume := podOf(t, c, claim, pavv1.WorkflowDeletion)
	if volume.Status.Expansion != nil {
		t.Errorf("the expansion is still recorded: %+v", volume.Status.Expansion)
	}
	end(t, c, deletion, workflow.Result{}, 0)
	gone(t, c, pv)
	noPodIsLeft(t, c)
}

// Without a pod, the volume has the size at once. A definition that cannot expand says so until it can.
func TestExpansion_WithoutAPod(t *testing.T) {
	c := start(t)
	run(t, c)
	provisioner := driver(t, c, "growing-at-once", func(_ *pavv1.PavProvisioner, s *storagev1.StorageClass) { s.AllowVolumeExpansion = new(true) })
	claim := mustCreate(t, c, claimOf("growing-at-once", "data"))
	wantEvent(t, c, claim, "Warning", "VolumeExpansionUnsupported", "allowVolumeExpansion")
	_, volume := bound(t, c, claim)
	mustPatch(t, c, claim, requests("2Gi"))
	wantEvent(t, c, claim, "Warning", "VolumeResizeFailed", "has no spec.volumeExpansion")
	exists(t, c, volume, "waits", func(v *pavv1.PavVolume) bool {
		condition := meta.FindStatusCondition(v.Status.Conditions, pavv1.VolumeExpanded)
		return condition != nil && condition.Reason == "Unsupported"
	})
	if says := claimSays(claim); says != "1Gi" {
		t.Errorf("the claim says %s", says)
	}

	mustPatch(t, c, provisioner, func(p *pavv1.PavProvisioner) {
		p.Spec.VolumeExpansion = &pavv1.VolumeExpansion{}
		p.Spec.VolumeValidation = &pavv1.VolumeValidation{MaxCapacity: field(`"1Gi"`)}
	})
	wantEvent(t, c, claim, "Warning", "VolumeResizeFailed", "the claim requests a capacity of 2Gi, but the provisioner's volumes have at most 1Gi")
	mustPatch(t, c, provisioner, func(p *pavv1.PavProvisioner) { p.Spec.VolumeValidation = nil })
	wantSize(t, c, claim, "2Gi, allocated 2Gi")
	exists(t, c, volume, "has grown", func(v *pavv1.PavVolume) bool {
		return v.Status.Capacity.String() == "2Gi" && meta.FindStatusCondition(v.Status.Conditions, pavv1.VolumeExpanded) == nil
	})
}

// The agent is stopped after each of its writes in turn (in the short suite, after every twelfth) while a volume grows, with and
// without a failure in the middle: each pod runs exactly once. Without one, nodes have to make the capacity available.
func TestExpansion_WithAnAgentThatIsStoppedAfterEachWrite(t *testing.T) {
	c := start(t)
	for name, failures := range map[string]int{"all succeed": 0, "the first expansion fails": 1} {
		t.Run(name, func(t *testing.T) {
			stopAfterEachWrite(t, c, 12, func(t *testing.T) {
				t.Helper()
				h := runFakeKubelets(t, c, func(kind string, number int) int32 {
					if kind == pavv1.WorkflowExpansion && number <= failures {
						return 3
					}
					return 0
				})
				growAndDelete(t, c, failures == 0)
				want := map[string]int{"validate": 1, "create": 1, "expand": 1 + failures, "delete": 1}
				if diff := cmp.Diff(want, h.rest()); diff != "" {
					t.Errorf("pods (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// growAndDelete takes a volume of a provisioner with all pods through a life in which it grows.
func growAndDelete(t *testing.T, c *cluster, onNodes bool) {
	t.Helper()
	const name = "crash-growing"
	driver(t, c, name, func(p *pavv1.PavProvisioner, s *storagev1.StorageClass) {
		withAllPods(p)
		p.Spec.VolumeExpansion = &pavv1.VolumeExpansion{PodTemplate: p.Spec.VolumeCreation.PodTemplate}
		if onNodes {
			p.Spec.VolumeExpansion.NodePodTemplate = field(workerTemplate)
		}
		s.AllowVolumeExpansion = new(true)
	})
	exists(t, c, provisionerOf(name), "is there", func(*pavv1.PavProvisioner) bool { return true })
	claim := mustCreate(t, c, claimOf(name, name))
	pv, volume := bound(t, c, claim)
	mustPatch(t, c, claim, requests("3Gi"))
	if onNodes {
		wantSize(t, c, claim, "2Gi, allocated 3Gi, NodeResizePending, FileSystemResizePending")
		grownByKubelet(t, c, claim)
	}
	wantSize(t, c, claim, "3Gi, allocated 3Gi")
	exists(t, c, pv, "has grown", func(pv *corev1.PersistentVolume) bool { return pv.Spec.Capacity.Storage().String() == "3Gi" })
	mustDelete(t, c, claim)
	gone(t, c, pv)
	gone(t, c, volume)
	noPodIsLeft(t, c)
}

// A ResourceQuota counts storage that a volume has grown to, also if its claim requests less by then.
func TestExpansion_IsCountedAlthoughTheRequestIsLowered(t *testing.T) {
	c := start(t)
	run(t, c)
	const name = "growing-within-quota"
	driver(t, c, name, growable, func(p *pavv1.PavProvisioner, _ *storagev1.StorageClass) { p.Spec.VolumeDeletion = nil })
	tenant := newNamespace(t, c, name).Name
	quota := mustCreate(t, c, &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "storage"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourceRequestsStorage: resource.MustParse("4Gi")}},
	})
	claim := ownedClaim(name, "me")
	claim.Namespace = tenant
	mustCreate(t, c, claim)
	pv, _ := bound(t, c, claim)
	mustPatch(t, c, claim, requests("3Gi"))
	pod, _ := podOf(t, c, claim, pavv1.WorkflowExpansion)
	lowered := claim.DeepCopy()
	requests("2Gi")(lowered)
	if err := c.Admin.Patch(t.Context(), lowered, client.MergeFrom(claim)); hasAllocations(c) && err != nil || !hasAllocations(c) && !apierrors.IsInvalid(err) {
		t.Errorf("lowering the request: %v", err)
	}
	end(t, c, pod, workflow.Result{Capacity: "3Gi"}, 0)
	wantSize(t, c, claim, "3Gi, allocated 3Gi")
	exists(t, c, quota, "counts 3Gi", func(q *corev1.ResourceQuota) bool {
		return q.Status.Used.Name(corev1.ResourceRequestsStorage, resource.BinarySI).Cmp(resource.MustParse("3Gi")) == 0
	})
	mustDelete(t, c, claim)
	gone(t, c, pv)
	noPodIsLeft(t, c)
}
