package integration

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/albertofaria/pav/internal/admission"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan"
)

// The volume can be unstaged after its client, claim and definition have changed.
func TestNodePods_OfStagesThatWereAdmitted(t *testing.T) {
	c := start(t)
	w := serveWebhook(t, c)
	w.launch(t, admission.DefaultLifetimes())
	for name, template := range map[string]string{"after a staging pod with a Secret": fmt.Sprintf(secretive, "staging"), "after one without": workerTemplate} {
		t.Run(name, func(t *testing.T) {
			h := hold(t, c, func(p *pavv1.PavProvisioner) { p.Spec.VolumeStaging.PodTemplate = *field(template) })
			stage, o := h.stage(t)
			staging, unstaging := h.pods(t, stage, o)
			mustAdmit(t, h.token, staging)
			if err := c.Admin.Delete(t.Context(), h.user, client.GracePeriodSeconds(0)); err != nil {
				t.Fatal(err)
			}
			mustDelete(t, c, claimNamed(h.volume))
			gone(t, c, claimNamed(h.volume))
			mustPatch(t, c, h.provisioner, func(p *pavv1.PavProvisioner) {
				p.Spec.VolumeUnstaging.PodTemplate = field(`{"spec": {"containers": [{"name": "main", "image": "busybox:1.37.0"}], "volumes": [{"name": "changed", "secret": {"secretName": "changed"}}]}}`)
			})
			mustAdmit(t, h.token, unstaging)
			changed, bad := unstaging.DeepCopy(), unstaging.DeepCopy()
			changed.Name, changed.Spec.Volumes = "changed", append(changed.Spec.Volumes, secretVolume("changed"))
			mustAdmit(t, h.token, changed)
			bad.Name, bad.Spec.Volumes = "bad", append(bad.Spec.Volumes, secretVolume("of-others"))
			wantForbidden(t, h.token, bad, "volumes.secret.secretName=of-others")
		})
	}
}

// If no pod of a stage had references when the volume was staged, the webhook checked nothing. If the definition is changed
// later, the volume can still be unstaged.
func TestNodePods_OfStagesThatNeededNoJudgement(t *testing.T) {
	c := start(t)
	w := serveWebhook(t, c)
	w.launch(t, admission.DefaultLifetimes())
	without := func(p *pavv1.PavProvisioner) {
		p.Spec.VolumeStaging.PodTemplate, p.Spec.VolumeUnstaging.PodTemplate = *field(workerTemplate), field(workerTemplate)
	}
	for name, change := range map[string]func(*corev1.PersistentVolumeClaim){
		"the claim is as it was copied": nil,
		"the claim has changed since":   func(claim *corev1.PersistentVolumeClaim) { claim.Annotations = map[string]string{"note": "<changed>"} },
	} {
		t.Run(name, func(t *testing.T) {
			h := hold(t, c, without)
			stage, o := h.stage(t)
			if change != nil {
				mustPatch(t, c, claimNamed(h.volume), change)
			}
			mustBeStaged(t, h, stage)
			exists(t, c, stage, "has a record", func(s *pavv1.PavStage) bool { return s.Annotations[pavv1.AdmittedAnnotation] != "" })
			unstaging := leave(t, h, stage, o)
			mustAdmit(t, h.token, unstaging)
			unstaging.Name, unstaging.Spec.Volumes = "bad", append(unstaging.Spec.Volumes, secretVolume("of-others"))
			wantForbidden(t, h.token, unstaging, "volumes.secret.secretName=of-others")
		})
	}
	t.Run("an administrator accepts the stage", func(t *testing.T) {
		h := hold(t, c, without)
		stage, o := h.stage(t)
		unstaging := leave(t, h, stage, o)
		mustBeStaged(t, h, stage)
		wantForbidden(t, h.token, unstaging, "the stage has no record that one did; the pod refers to volumes.secret, volumes.secret.secretName=for-unstaging")
		mustPatch(t, c, stage, func(s *pavv1.PavStage) {
			s.Annotations = map[string]string{pavv1.AdmittedAnnotation: `{"copies":true}`}
		})
		mustAdmit(t, h.token, unstaging)
		unstaging.Name, unstaging.Spec.Volumes = "bad", append(unstaging.Spec.Volumes, secretVolume("of-others"))
		wantForbidden(t, h.token, unstaging, "volumes.secret.secretName=of-others")
	})
}

func mustBeStaged(t *testing.T, h *held, stage *pavv1.PavStage) {
	t.Helper()
	stage.Status.Phase = pavv1.StageStaged
	if err := h.token.Status().Update(t.Context(), stage); err != nil {
		t.Fatal(err)
	}
}

// leave deletes a stage's client and claim, adds a Secret to its definition, and returns the unstaging pod.
func leave(t *testing.T, h *held, stage *pavv1.PavStage, o podplan.StageObjects) *corev1.Pod {
	t.Helper()
	if err := h.c.Admin.Delete(t.Context(), h.user, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	mustDelete(t, h.c, claimNamed(h.volume))
	gone(t, h.c, claimNamed(h.volume))
	mustPatch(t, h.c, h.provisioner, func(p *pavv1.PavProvisioner) {
		p.Spec.VolumeUnstaging.PodTemplate = field(fmt.Sprintf(secretive, "unstaging"))
	})
	_, unstaging := h.pods(t, stage, o)
	return unstaging
}

// Only the controller agent writes that a stage's pods were admitted.
func TestNodePods_RecordIsTheControllers(t *testing.T) {
	c := start(t)
	h := hold(t, c)
	stage, _ := h.stage(t)
	record := map[string]string{pavv1.AdmittedAnnotation: `{"references":["volumes.secret","volumes.secret.secretName=of-others"]}`}
	forged := stage.DeepCopy()
	forged.Annotations = maps.Clone(record)
	if err := h.token.Patch(t.Context(), forged, client.MergeFrom(stage)); !apierrors.IsForbidden(err) {
		t.Errorf("changing a stage: got %v", err)
	}
	forged = &pavv1.PavStage{ObjectMeta: metav1.ObjectMeta{Name: "stage-forged", Labels: stage.Labels, Annotations: record}, Spec: stage.Spec}
	if err := h.token.Create(t.Context(), forged); !apierrors.IsForbidden(err) {
		t.Errorf("making a stage: got %v", err)
	}
	mustPatch(t, c, stage, func(s *pavv1.PavStage) { s.Annotations = record })
	bare := stage.DeepCopy()
	bare.Annotations = nil
	if err := h.token.Patch(t.Context(), bare, client.MergeFrom(stage)); !apierrors.IsForbidden(err) {
		t.Errorf("taking the record away: got %v", err)
	}
}

// Stages of a version without these records are unstaged.
func TestNodePods_OfStagesOfFormerVersions(t *testing.T) {
	c := start(t)
	w := serveWebhook(t, c)
	w.launch(t, admission.DefaultLifetimes())
	h := hold(t, c)
	stage, o := h.stage(t)
	_, unstaging := h.pods(t, stage, o)
	if err := c.Admin.Delete(t.Context(), h.user, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	wantForbidden(t, h.token, unstaging, "no running pod on node")

	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "pav-admitted-stages"}}
	exists(t, c, policy, "is there", func(*admissionregistrationv1.ValidatingAdmissionPolicy) bool { return true })
	mustDelete(t, c, policy)
	eventually(t, "a second has passed", func(context.Context) (bool, string) { // times of objects are in seconds
		return time.Now().After(stage.CreationTimestamp.Add(1100 * time.Millisecond)), ""
	})
	policy.ObjectMeta = metav1.ObjectMeta{Name: policy.Name}
	mustCreate(t, c, policy)
	mustAdmit(t, h.token, unstaging)
	bad := unstaging.DeepCopy()
	bad.Name, bad.Spec.Volumes = "bad", append(bad.Spec.Volumes, secretVolume("of-others"))
	wantForbidden(t, h.token, bad, "volumes.secret.secretName=of-others")
}
