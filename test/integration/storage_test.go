package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// retainedAt makes a volume whose creation pod says that handle, and releases it under Retain.
func retainedAt(t *testing.T, c *cluster, class, handle string) (*corev1.PersistentVolume, *pavv1.PavVolume) {
	t.Helper()
	claim := mustCreate(t, c, claimOf(class, "retained"))
	pod, _ := podOf(t, c, claim, pavv1.WorkflowCreation)
	end(t, c, pod, workflow.Result{Handle: handle}, 0)
	pv, volume := bound(t, c, claim)
	mustDelete(t, c, claim)
	exists(t, c, volume, "is retained", func(v *pavv1.PavVolume) bool { return v.Status.Phase == pavv1.VolumeRetained })
	return pv, volume
}

// begin makes a pod start on fakeNode.
func begin(t *testing.T, c *cluster, pod *corev1.Pod) {
	t.Helper()
	binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: fakeNode}}
	if err := c.Admin.SubResource("binding").Create(t.Context(), pod.DeepCopy(), binding); err != nil {
		t.Fatal(err)
	}
	mustPatchStatus(t, c, pod, func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning })
}

// A tenant's claim makes a creation pod write the handle of a volume that an administrator retained: whatever
// becomes of the pod and the claim, no deletion pod is ever made, which would delete the retained data.
func TestHandleOfARetainedVolume_IsNeverReverted(t *testing.T) {
	attacks := map[string]func(*testing.T, *cluster, *corev1.PersistentVolumeClaim, *corev1.Pod){
		"the creation pod succeeds": func(t *testing.T, c *cluster, _ *corev1.PersistentVolumeClaim, pod *corev1.Pod) {
			t.Helper()
			end(t, c, pod, workflow.Result{Handle: "precious"}, 0)
		},
		"the creation pod fails": func(t *testing.T, c *cluster, _ *corev1.PersistentVolumeClaim, pod *corev1.Pod) {
			t.Helper()
			end(t, c, pod, workflow.Result{Handle: "precious"}, 3)
		},
		"the claim goes while the creation pod runs": func(t *testing.T, c *cluster, claim *corev1.PersistentVolumeClaim, pod *corev1.Pod) {
			t.Helper()
			begin(t, c, pod)
			mustDelete(t, c, claim)
			exists(t, c, pod, "is stopped", func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil })
			mustPatchStatus(t, c, pod, func(p *corev1.Pod) {
				p.Status.Phase = corev1.PodFailed
				p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
					Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, FinishedAt: metav1.Now()},
				}}}
			})
			if err := tellResult(t.Context(), nodeAgent(t, c, fakeNode), pod, workflow.Result{Handle: "precious"}); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, attack := range attacks {
		t.Run(name, func(t *testing.T) {
			c := start(t)
			a := run(t, c)
			provisioner := driver(t, c, "precious", withPods, retain)
			pv, retained := retainedAt(t, c, "precious", "precious")
			claim := mustCreate(t, c, claimOf("precious", "greedy"))
			pod, volume := podOf(t, c, claim, pavv1.WorkflowCreation)
			attack(t, c, claim, pod)

			wantEvent(t, c, claim, "Warning", "ProvisioningFailed", `wrote "precious" to /pav/handle, which is the storage of PersistentVolume "`+pv.Name+`"`)
			if err := c.Admin.Delete(t.Context(), claim); client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
			gone(t, c, volume)
			wantEvent(t, c, provisioner, "Warning", "VolumeFailedDelete", `PavVolume "`+volume.Name+`" is deleted without a deletion pod`)
			if n := podsMade(a); n != 2 {
				t.Errorf("%d pods were made, want two creation pods", n)
			}
			_ = c.Admin.Delete(t.Context(), pod, client.GracePeriodSeconds(0)) // as its kubelet would, if it is still there
			isKept(t, c, pv)
			isKept(t, c, retained)
		})
	}
}

// The attempts stop while another object has the handle, and continue when it is gone.
func TestConflict_EndsWhenTheHolderGoes(t *testing.T) {
	c := start(t)
	a := run(t, c)
	driver(t, c, "yielding", withPods, retain)
	pv, retained := retainedAt(t, c, "yielding", "the only one")
	claim := mustCreate(t, c, claimOf("yielding", "data"))
	pod, volume := podOf(t, c, claim, pavv1.WorkflowCreation)
	end(t, c, pod, workflow.Result{Handle: "the only one"}, 0)
	exists(t, c, volume, "says whose the handle is", func(v *pavv1.PavVolume) bool {
		s := v.Status.Conflict
		return s != nil && s.Handle == "the only one" && s.Kind == "PersistentVolume" && s.Name == pv.Name && v.Status.Handle == "" && v.Status.Step == ""
	})
	mustDelete(t, c, pv)
	gone(t, c, pv)
	exists(t, c, volume, "says who still has it", func(v *pavv1.PavVolume) bool {
		return len(v.Status.Conditions) > 0 && strings.Contains(v.Status.Conditions[0].Message, `PavVolume "`+retained.Name+`" (Retained)`)
	})
	if n := podsMade(a); n != 2 {
		t.Errorf("%d pods were made, want two", n)
	}
	mustDelete(t, c, retained)
	gone(t, c, retained)
	next, _ := podOf(t, c, claim, pavv1.WorkflowCreation)
	if next.Name == pod.Name {
		t.Errorf("there was no other attempt")
	}
	end(t, c, next, workflow.Result{Handle: "the only one"}, 0)
	bound(t, c, claim)
}

// Two creation pods report the same handle at the same time: one volume gets it.
func TestOneHandleAtTheSameTime_IsOneVolumes(t *testing.T) {
	c := start(t)
	a := run(t, c)
	driver(t, c, "at-once", withPods)
	claims := []*corev1.PersistentVolumeClaim{mustCreate(t, c, claimOf("at-once", "a")), mustCreate(t, c, claimOf("at-once", "b"))}
	var pods []*corev1.Pod
	for _, claim := range claims {
		pod, _ := podOf(t, c, claim, pavv1.WorkflowCreation)
		if err := endContainers(t.Context(), c.Admin, pod, 0); err != nil {
			t.Fatal(err)
		}
		pods = append(pods, pod)
	}
	for _, pod := range pods {
		if err := tellResult(t.Context(), nodeAgent(t, c, fakeNode), pod, workflow.Result{Handle: "one"}); err != nil {
			t.Fatal(err)
		}
	}
	var winner, loser *corev1.PersistentVolumeClaim
	eventually(t, "one has it, and the other says so", func(ctx context.Context) (bool, string) {
		winner, loser = nil, nil
		state := ""
		for _, claim := range claims {
			v := volumeOf(claim)
			if err := c.Admin.Get(ctx, client.ObjectKeyFromObject(v), v); err != nil {
				return false, err.Error()
			}
			state += fmt.Sprintf("%+v\n", v.Status)
			switch {
			case v.Status.Phase == pavv1.VolumeReady:
				winner = claim
			case v.Status.Conflict != nil:
				loser = claim
			}
		}
		return winner != nil && loser != nil, state
	})
	if n := podsMade(a); n != 2 {
		t.Errorf("%d pods were made, want two", n)
	}
	mustDelete(t, c, loser)
	gone(t, c, volumeOf(loser))
	mustDelete(t, c, winner)
	pod, volume := podOf(t, c, winner, pavv1.WorkflowDeletion)
	end(t, c, pod, workflow.Result{}, 0)
	gone(t, c, volume)
}

// samePV returns a PersistentVolume of the storage of another one, as an administrator would write it.
func samePV(name string, pv *corev1.PersistentVolume) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: pv.Spec.AccessModes, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: pv.Spec.CSI.Driver, VolumeHandle: pv.Spec.CSI.VolumeHandle}},
		},
	}
}

// Storage is deleted when no other object uses it, under any name.
func TestStorageUnderAnotherName_IsNotDeleted(t *testing.T) {
	tests := map[string]func(*testing.T, *cluster, *corev1.PersistentVolume){
		"put to use by a static PersistentVolume": func(*testing.T, *cluster, *corev1.PersistentVolume) {},
		"forced away and made again": func(t *testing.T, c *cluster, pv *corev1.PersistentVolume) {
			t.Helper()
			mustDelete(t, c, pv)
			eventually(t, "the PersistentVolume is forced away", func(ctx context.Context) (bool, string) {
				err := c.Admin.Get(ctx, client.ObjectKeyFromObject(pv), pv)
				if err == nil {
					pv.Finalizers = nil
					err = c.Admin.Update(ctx, pv)
				}
				return err != nil && client.IgnoreNotFound(err) == nil, fmt.Sprint(err)
			})
		},
	}
	for name, happens := range tests {
		t.Run(name, func(t *testing.T) {
			c := start(t)
			a := run(t, c)
			driver(t, c, "renamed", withDeletionPod, inPool)
			claim := mustCreate(t, c, ownedClaim("renamed", "me"))
			pv, volume := bound(t, c, claim)
			again := mustCreate(t, c, samePV("renamed-again", pv))
			nodeIn(t, c, fakeNode, "none")
			stage := mustCreate(t, c, stageOf(again, "stage-renamed", fakeNode))
			happens(t, c, pv.DeepCopy())
			mustDelete(t, c, claim)
			wantEvent(t, c, volume, "Warning", "VolumeFailedDelete", `PersistentVolume "renamed-again" uses the same storage, with the handle "`+pv.Spec.CSI.VolumeHandle+`"`)
			mustDelete(t, c, again)
			gone(t, c, again)
			wantEvent(t, c, volume, "Normal", "VolumeDeletionWaiting", "unstaged on node "+fakeNode)
			if n := podsMade(a); n != 0 {
				t.Errorf("%d pods were made", n)
			}
			mustPatch(t, c, stage, func(s *pavv1.PavStage) { s.Finalizers = nil })
			mustDelete(t, c, stage)
			pod, _ := podOf(t, c, claim, pavv1.WorkflowDeletion)
			end(t, c, pod, workflow.Result{}, 0)
			gone(t, c, volume)
		})
	}
}

// A creation pod is removed by force before its result was read: it may have named any storage, so no deletion pod is
// created; the next creation pod finds what it left.
func TestCreationPodRemovedByForce_IsNotReverted(t *testing.T) {
	c := start(t)
	a := run(t, c)
	provisioner := driver(t, c, "untold", withPods)
	claim := mustCreate(t, c, claimOf("untold", "data"))
	pod, volume := podOf(t, c, claim, pavv1.WorkflowCreation)
	begin(t, c, pod)
	removeByForce(t, c, pod)
	wantEvent(t, c, provisioner, "Warning", "VolumeFailedDelete", "it is not known which handle the creation pod pav-pods/"+pod.Name+" chose")
	exists(t, c, volume, "is tried again", func(v *pavv1.PavVolume) bool {
		return v.Status.Attempt == 2 && v.Status.Failure != nil && v.Status.Failure.Reason == pavv1.FailureHandleUnknown
	})
	next, _ := podOf(t, c, claim, pavv1.WorkflowCreation)
	begin(t, c, next)
	mustDelete(t, c, claim)
	exists(t, c, next, "is stopped", func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil })
	removeByForce(t, c, next)
	gone(t, c, volume)
	if n := podsMade(a); n != 2 {
		t.Errorf("%d pods were made, want two creation pods", n)
	}
}

// removeByForce removes a pod immediately, with its finalizers, as nobody should.
func removeByForce(t *testing.T, c *cluster, pod *corev1.Pod) {
	t.Helper()
	mustPatch(t, c, pod, func(p *corev1.Pod) { p.Finalizers = nil })
	if err := c.Admin.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	gone(t, c, pod)
}
