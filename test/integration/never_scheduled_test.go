package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
	"github.com/albertofaria/pav/test/agent"
)

// withPods gives a provisioner the least creation and deletion pods, which nobody schedules.
func withPods(p *pavv1.PavProvisioner, _ *storagev1.StorageClass) {
	const least = `{"spec": {"containers": [{"name": "main", "image": "none"}]}}`
	p.Spec.VolumeCreation.PodTemplate = field(least)
	p.Spec.VolumeDeletion = &pavv1.VolumeDeletion{PodTemplate: field(least)}
}

// volumeOf returns a PavVolume with only the name of a claim's.
func volumeOf(claim *corev1.PersistentVolumeClaim) *pavv1.PavVolume {
	return &pavv1.PavVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-" + string(claim.UID)}}
}

// podOf waits until the pod of a workflow is the present one of a claim's volume, and returns both.
func podOf(t *testing.T, c *cluster, claim *corev1.PersistentVolumeClaim, kind string) (*corev1.Pod, *pavv1.PavVolume) {
	t.Helper()
	volume := volumeOf(claim)
	return podOfVolume(t, c, volume, kind), volume
}

// podOfVolume waits for a pod of a volume, and returns it.
func podOfVolume(t *testing.T, c *cluster, volume *pavv1.PavVolume, kind string) *corev1.Pod {
	t.Helper()
	exists(t, c, volume, "has a "+kind+" pod", func(v *pavv1.PavVolume) bool {
		return v.Status.Pod != nil && v.Status.Pod.UID != "" && strings.HasPrefix(v.Status.Pod.Name, kind+"-")
	})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: volume.Status.Pod.Namespace, Name: volume.Status.Pod.Name}}
	exists(t, c, pod, "is that pod", func(p *corev1.Pod) bool {
		return p.UID == volume.Status.Pod.UID && p.Labels[pavv1.WorkflowLabel] == kind
	})
	return pod
}

// unscheduled is what the scheduler says of a pod for which it has no node.
var unscheduled = []corev1.PodCondition{{
	Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/0 nodes are available",
}}

// podsMade returns how many pods an agent has created.
func podsMade(a *agent.Agent) (n int) {
	for _, write := range a.Line.Writes() {
		if strings.HasPrefix(write, "POST ") && strings.HasSuffix(write, "/pods") {
			n++
		}
	}
	return n
}

func TestCreationPodIsNotScheduled_AndNotWantedAnyMore(t *testing.T) {
	tests := map[string]func(*testing.T, *cluster, *pavv1.PavProvisioner, *corev1.PersistentVolumeClaim){
		"claim deleted": func(t *testing.T, c *cluster, _ *pavv1.PavProvisioner, claim *corev1.PersistentVolumeClaim) {
			t.Helper()
			mustDelete(t, c, claim)
			gone(t, c, claim)
		},
		"provisioner deleted": func(t *testing.T, c *cluster, provisioner *pavv1.PavProvisioner, claim *corev1.PersistentVolumeClaim) {
			t.Helper()
			mustDelete(t, c, provisioner)
			gone(t, c, provisioner)
			wantEvent(t, c, claim, "Warning", "ProvisioningFailed", "is being deleted and provisions no more volumes")
		},
		"bound elsewhere": func(t *testing.T, c *cluster, provisioner *pavv1.PavProvisioner, claim *corev1.PersistentVolumeClaim) {
			t.Helper()
			pv := mustCreate(t, c, volumeByHand(provisioner.Name, claim))
			t.Cleanup(func() {
				_, _ = c.Admin.Delete(lasting(t), claim), c.Admin.Delete(lasting(t), pv)
				gone(t, c, pv)
			})
			exists(t, c, claim, "is bound to it", func(claim *corev1.PersistentVolumeClaim) bool { return claim.Spec.VolumeName == pv.Name })
		},
	}
	for name, disturb := range tests {
		t.Run(name, func(t *testing.T) {
			c := start(t)
			a := run(t, c)
			provisioner := driver(t, c, "unscheduled", withPods)
			claim := mustCreate(t, c, claimOf("unscheduled", "data"))
			pod, volume := podOf(t, c, claim, pavv1.WorkflowCreation)
			disturb(t, c, provisioner, claim)
			gone(t, c, volume)
			gone(t, c, pod)
			if n := podsMade(a); n != 1 {
				t.Errorf("%d pods were created, though nothing ever ran that could be reverted", n)
			}
		})
	}
}

// volumeByHand returns a PersistentVolume as an administrator would write it for a claim.
func volumeByHand(class string, claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "by-hand"},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName: class, AccessModes: claim.Spec.AccessModes,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			ClaimRef:                      &corev1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
			PersistentVolumeSource:        corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/none"}},
		},
	}
}

func TestClaimReplaced_WhileItsCreationPodIsNotScheduled(t *testing.T) {
	c := start(t)
	a := run(t, c)
	driver(t, c, "replaced-early", withPods)
	first := mustCreate(t, c, claimOf("replaced-early", "data"))
	pod, volume := podOf(t, c, first, pavv1.WorkflowCreation)
	mustDelete(t, c, first)
	gone(t, c, first)
	second := mustCreate(t, c, claimOf("replaced-early", "data"))
	gone(t, c, volume)
	gone(t, c, pod)
	other, _ := podOf(t, c, second, pavv1.WorkflowCreation)
	if other.Name == pod.Name || other.Annotations[pavv1.VolumeAnnotation] != volumeOf(second).Name {
		t.Errorf("the second claim's creation pod is %s of %q", other.Name, other.Annotations[pavv1.VolumeAnnotation])
	}
	mustDelete(t, c, second)
	gone(t, c, volumeOf(second))
	if n := podsMade(a); n != 2 {
		t.Errorf("%d pods were created", n)
	}
}

// inDefault gives a provisioner creation pods in the namespace default, which administrators have not opened yet.
func inDefault(p *pavv1.PavProvisioner, _ *storagev1.StorageClass) {
	p.Spec.VolumeCreation.PodTemplate = field(`{"metadata": {"namespace": "default"}, "spec": {"containers": [{"name": "main", "image": "none"}]}}`)
}

// openDefault opens that namespace to workflow pods until the test ends.
func openDefault(t *testing.T, c *cluster) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	mustPatch(t, c, namespace, func(n *corev1.Namespace) { metav1.SetMetaDataLabel(&n.ObjectMeta, pavv1.AllowPodsLabel, "true") })
	t.Cleanup(func() {
		closed := []byte(`{"metadata": {"labels": {"` + pavv1.AllowPodsLabel + `": null}}}`)
		if err := c.Admin.Patch(lasting(t), namespace, client.RawPatch(types.MergePatchType, closed)); err != nil {
			t.Error(err)
		}
	})
}

func TestNamespaceThatIsNotOpen_IsRefusedUntilItIs(t *testing.T) {
	c := start(t)
	a := run(t, c)
	driver(t, c, "elsewhere", inDefault)
	claim := mustCreate(t, c, claimOf("elsewhere", "data"))
	wantEvent(t, c, claim, "Warning", "ProvisioningFailed",
		`its namespace "default" is not open to workflow pods; to open it, run: kubectl label namespace default `+pavv1.AllowPodsLabel+"=true")
	if n := podsMade(a); n != 0 {
		t.Errorf("%d pods were created", n)
	}
	exists(t, c, volumeOf(claim), "has failed for that reason", func(v *pavv1.PavVolume) bool {
		return v.Status.Failure != nil && v.Status.Failure.Reason == pavv1.FailureNamespaceNotOpen && v.Status.Failure.PodNamespace == "default"
	})
	openDefault(t, c)
	if pod, _ := podOf(t, c, claim, pavv1.WorkflowCreation); pod.Namespace != "default" {
		t.Errorf("the pod is in namespace %q", pod.Namespace)
	}
}

// Anyone who may create pods in an open namespace can give them any owner and guess any name, but not set PaV's labels.
func TestForgedPods_AreNeitherBelievedNorTouched(t *testing.T) {
	c := start(t)
	run(t, c)
	provisioner := driver(t, c, "forged", inDefault)
	claim := mustCreate(t, c, claimOf("forged", "data"))
	volume := volumeOf(claim)
	exists(t, c, volume, "has failed", func(v *pavv1.PavVolume) bool { return v.Status.Failure != nil })

	var pods []*corev1.Pod
	for number := volume.Status.Pods + 1; number <= volume.Status.Pods+2; number++ {
		pod := forgedPod(volume, workflow.Name(pavv1.WorkflowCreation, string(volume.UID), fmt.Sprint(number)))
		pods = append(pods, mustCreate(t, c, pod))
		t.Cleanup(func() { _ = c.Admin.Delete(lasting(t), pod) })
		mustPatchStatus(t, c, pod, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
	}
	labelled, annotated := forgedPod(volume, "labelled"), forgedPod(volume, "annotated")
	labelled.Labels = map[string]string{pavv1.WorkflowLabel: pavv1.WorkflowCreation}
	annotated.Annotations = map[string]string{pavv1.ResultAnnotation: `{"handle": "forged"}`}
	for _, pod := range []*corev1.Pod{labelled, annotated} {
		if err := c.Admin.Create(t.Context(), pod); err == nil || !strings.Contains(err.Error(), "are PaV's") {
			t.Errorf("a pod that is %s like PaV's: got error %v", pod.Name, err)
		}
	}

	openDefault(t, c)
	mustPatch(t, c, provisioner, func(p *pavv1.PavProvisioner) { withPods(p, nil); inDefault(p, nil) }) // so that the next attempt begins at once
	wantEvent(t, c, claim, "Warning", "ProvisioningFailed", "a pod of that name exists that PaV did not make")
	own, _ := podOf(t, c, claim, pavv1.WorkflowCreation) // In an attempt whose name nobody has guessed.
	exists(t, c, volume, "is still in the making", func(v *pavv1.PavVolume) bool { return v.Status.Handle == "" })
	mustDelete(t, c, claim)
	gone(t, c, volume)
	gone(t, c, own)
	for _, pod := range pods {
		version := pod.ResourceVersion
		exists(t, c, pod, "is untouched", func(p *corev1.Pod) bool { return p.ResourceVersion == version && p.DeletionTimestamp == nil })
	}
}

// forgedPod returns a pod of a tenant's that says that it belongs to a PavVolume.
func forgedPod(volume *pavv1.PavVolume, name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, OwnerReferences: []metav1.OwnerReference{{
			APIVersion: pavv1.GroupVersion.String(), Kind: "PavVolume", Name: volume.Name, UID: volume.UID, Controller: new(true),
		}}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "none"}}},
	}
}

// limited starts an agent that runs so many pods at once.
func limited(t *testing.T, c *cluster, overall, perProvisioner int) {
	t.Helper()
	o := agent.Options(namespace)
	o.Pods.Overall, o.Pods.PerProvisioner = overall, perProvisioner
	a := agent.Launch(t, c.agent, o, &agent.Line{})
	t.Cleanup(func() { a.Stop(t); checkNothingLeft(t, c) })
}

// creationPods returns the volumes of a provisioner that have a creation pod.
func creationPods(ctx context.Context, t *testing.T, c *cluster, provisioner string) (volumes []string) {
	t.Helper()
	list := &corev1.PodList{}
	if err := c.Admin.List(ctx, list, client.MatchingLabels{pavv1.ProvisionerLabel: provisioner, pavv1.WorkflowLabel: pavv1.WorkflowCreation}); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if pod := &list.Items[i]; pod.DeletionTimestamp == nil {
			volumes = append(volumes, pod.Annotations[pavv1.VolumeAnnotation])
		}
	}
	return volumes
}

func TestPods_AreAtMostSoManyOfOneProvisioner(t *testing.T) {
	const limit, many = 2, 5
	c := start(t)
	limited(t, c, 100, limit)
	driver(t, c, "crowded", withPods)
	waiting := map[string]*corev1.PersistentVolumeClaim{}
	for i := range many {
		claim := mustCreate(t, c, claimOf("crowded", fmt.Sprintf("data-%d", i)))
		waiting[volumeOf(claim).Name] = claim
	}
	for _, claim := range waiting {
		exists(t, c, volumeOf(claim), "is in line", func(v *pavv1.PavVolume) bool { return v.Status.Pod != nil })
	}
	for left := many; left > 0; left-- {
		var running []string
		eventually(t, "as many pods exist as may", func(ctx context.Context) (bool, string) {
			running = creationPods(ctx, t, c, "crowded")
			if len(running) > limit {
				t.Fatalf("%d pods exist", len(running))
			}
			return len(running) == min(limit, left), fmt.Sprintf("%d pods exist", len(running))
		})
		next := waiting[running[0]]
		if next == nil {
			t.Fatalf("a pod of %s exists, whose claim is deleted", running[0])
		}
		delete(waiting, running[0])
		mustDelete(t, c, next)
		gone(t, c, volumeOf(next))
	}
}

// A volume whose next pod waits for a slot keeps its turn when the error text of an earlier pod arrives.
func TestPodMessageThatArrivesLate_CostsNoTurn(t *testing.T) {
	c := start(t)
	limited(t, c, 100, 1)
	driver(t, c, "in-line", withPods, func(p *pavv1.PavProvisioner, _ *storagev1.StorageClass) {
		p.Spec.VolumeCreation.Handle = field(`"{{ defaultHandle }}"`) // or else the revert waits for what the pod left
	})
	first := mustCreate(t, c, claimOf("in-line", "first"))
	failing, volume := podOf(t, c, first, pavv1.WorkflowCreation)
	inLine := func(name string) *corev1.PersistentVolumeClaim {
		claim := mustCreate(t, c, claimOf("in-line", name))
		exists(t, c, volumeOf(claim), "is in line", func(v *pavv1.PavVolume) bool { return v.Status.Pod != nil })
		return claim
	}
	second := inLine("second")
	if err := endContainers(t.Context(), c.Admin, failing, 4); err != nil {
		t.Fatal(err)
	}
	podOf(t, c, second, pavv1.WorkflowCreation)
	exists(t, c, volume, "is in line to be reverted", func(v *pavv1.PavVolume) bool {
		return v.Status.Step == pavv1.StepReverting && v.Status.Pod != nil
	})
	third := inLine("third")
	if err := tellResult(t.Context(), nodeAgent(t, c, fakeNode), failing, workflow.Result{Error: "half of it"}); err != nil {
		t.Fatal(err)
	}
	exists(t, c, volume, "has the words", func(v *pavv1.PavVolume) bool { return strings.Contains(v.Status.Failure.Message, "half of it") })
	mustDelete(t, c, second)

	reverting, _ := podOf(t, c, first, pavv1.WorkflowDeletion)
	mustDelete(t, c, first)
	end(t, c, reverting, workflow.Result{}, 0)
	gone(t, c, volume)
	mustDelete(t, c, third)
	gone(t, c, volumeOf(third))
}

// A deletion pod that waits for a slot has deleted nothing: until then, the reclaim policy can be changed.
func TestDeletionPodInLine_IsNotRunForAVolumeThatIsToBeRetained(t *testing.T) {
	c := start(t)
	limited(t, c, 100, 1)
	driver(t, c, "spared", withDeletionPod, inPool)
	var deleted, spared *corev1.PersistentVolumeClaim
	claims := []*corev1.PersistentVolumeClaim{claimOf("spared", "first"), claimOf("spared", "second")}
	for _, claim := range claims {
		claim.Labels = map[string]string{"owner": claim.Name}
		bound(t, c, mustCreate(t, c, claim))
	}
	for _, claim := range claims {
		mustDelete(t, c, claim)
	}
	eventually(t, "one has a deletion pod, and the other is in line", func(ctx context.Context) (bool, string) {
		deleted, spared = nil, nil
		for _, claim := range claims {
			volume := volumeOf(claim)
			if err := c.Admin.Get(ctx, client.ObjectKeyFromObject(volume), volume); err != nil || volume.Status.Pod == nil {
				return false, fmt.Sprintf("%v %+v", err, volume.Status)
			}
			if volume.Status.Pod.UID != "" {
				deleted = claim
			} else {
				spared = claim
			}
		}
		return deleted != nil && spared != nil, "none or both"
	})
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: volumeOf(spared).Name}}
	mustPatch(t, c, pv, func(pv *corev1.PersistentVolume) {
		pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	})
	exists(t, c, volumeOf(spared), "is retained", func(v *pavv1.PavVolume) bool {
		return v.Status.Phase == pavv1.VolumeRetained && v.Status.Pod == nil && len(v.Finalizers) == 0
	})
	pod, volume := podOf(t, c, deleted, pavv1.WorkflowDeletion)
	end(t, c, pod, workflow.Result{}, 0)
	gone(t, c, volume)
	isKept(t, c, pv)
}

// A pod without a suitable node does not keep other pods from running.
func TestPodsThatAreNotSchedulable_AreNotCountedOverall(t *testing.T) {
	c := start(t)
	limited(t, c, 1, 2)
	driver(t, c, "stuck", withPods)
	driver(t, c, "lively", withPods)
	stuck := mustCreate(t, c, claimOf("stuck", "stuck"))
	pod, _ := podOf(t, c, stuck, pavv1.WorkflowCreation)
	lively := mustCreate(t, c, claimOf("lively", "lively"))
	exists(t, c, volumeOf(lively), "is in line", func(v *pavv1.PavVolume) bool { return v.Status.Pod != nil })
	if running := creationPods(t.Context(), t, c, "lively"); len(running) > 0 {
		t.Errorf("%d pods above the limit", len(running))
	}
	mustPatchStatus(t, c, pod, func(p *corev1.Pod) { p.Status.Conditions = unscheduled })
	podOf(t, c, lively, pavv1.WorkflowCreation)
	wantEvent(t, c, stuck, "Warning", "Provisioning", "is not scheduled: 0/0 nodes are available")
	if running := creationPods(t.Context(), t, c, "stuck"); !slices.Equal(running, []string{volumeOf(stuck).Name}) {
		t.Errorf("the pod that waits for a node is not waited for: %q", running)
	}
}

// mustPatchStatus changes the status of an object, as it is now.
func mustPatchStatus[T client.Object](t *testing.T, c *cluster, object T, change func(T)) {
	t.Helper()
	if err := c.Admin.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		t.Fatal(err)
	}
	before, _ := object.DeepCopyObject().(client.Object)
	change(object)
	if err := c.Admin.Status().Patch(t.Context(), object, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}
