package integration

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// scopeIs waits until a scope is in force, with a condition Accepted of a reason.
func scopeIs(t *testing.T, c *cluster, p *pavv1.PavProvisioner, scope pavv1.StagingScope, reason string) {
	t.Helper()
	exists(t, c, p, "has scope "+string(scope)+" in force, "+reason, func(p *pavv1.PavProvisioner) bool {
		accepted := meta.FindStatusCondition(p.Status.Conditions, pavv1.ProvisionerAccepted)
		return p.Status.StagingScope == scope && accepted != nil && accepted.Status == metav1.ConditionTrue &&
			accepted.Reason == reason && accepted.ObservedGeneration == p.Generation
	})
}

func TestScopeStaysWhileStagesExist(t *testing.T) {
	c := start(t)
	run(t, c)
	p := driver(t, c, "scoped")
	scopeIs(t, c, p, pavv1.StagingScopeNode, "Accepted")

	node := mustCreate(t, c, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "scoped-node"}})
	t.Cleanup(func() { _ = c.Admin.Delete(lasting(t), node) })
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "scoped-pv"}, Spec: corev1.PersistentVolumeSpec{
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "scoped"}},
	}}
	stages := []*pavv1.PavStage{
		createStaged(t, c, stageOf(pv, "stage-scoped-1", node.Name)),
		createStaged(t, c, stageOf(pv, "stage-scoped-2", node.Name)),
	}
	failed := stageOf(pv, "stage-scoped-failed", node.Name)
	failed.Finalizers = nil // the record of a failure, which holds nothing
	mustCreate(t, c, failed)
	t.Cleanup(func() { _ = c.Admin.Delete(lasting(t), failed) })

	setScope := func(scope pavv1.StagingScope) {
		t.Helper()
		mustPatch(t, c, p, func(p *pavv1.PavProvisioner) { p.Spec.VolumeStaging.Scope = scope })
	}
	setScope(pavv1.StagingScopePod)
	scopeIs(t, c, p, pavv1.StagingScopeNode, "ScopePending")
	message := meta.FindStatusCondition(p.Status.Conditions, pavv1.ProvisionerAccepted).Message
	if !strings.Contains(message, "scope Pod comes into force when the last PavStage of the provisioner has gone") {
		t.Errorf("got message %q", message)
	}
	setScope(pavv1.StagingScopeNode)
	scopeIs(t, c, p, pavv1.StagingScopeNode, "Accepted")
	setScope(pavv1.StagingScopePod)
	scopeIs(t, c, p, pavv1.StagingScopeNode, "ScopePending")

	leave := func(stage *pavv1.PavStage) {
		t.Helper()
		mustPatch(t, c, stage, func(s *pavv1.PavStage) { s.Finalizers = nil })
		mustDelete(t, c, stage)
	}
	leave(stages[0])
	// Another edit shows that the controller has run since.
	mustPatch(t, c, p, func(p *pavv1.PavProvisioner) { p.Spec.VolumeStaging.Recovery = pavv1.StagingRecoveryNone })
	scopeIs(t, c, p, pavv1.StagingScopeNode, "ScopePending")
	leave(stages[1])
	scopeIs(t, c, p, pavv1.StagingScopePod, "Accepted")
}

func TestFSGroupPolicyFollowsTheDefinition(t *testing.T) {
	c := start(t)
	run(t, c)
	p := driver(t, c, "grouped")
	csi := csiDriver("grouped")
	for _, policy := range []storagev1.FSGroupPolicy{storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy, storagev1.FileFSGroupPolicy, storagev1.NoneFSGroupPolicy} {
		if policy != storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy { // which is the default
			mustPatch(t, c, p, func(p *pavv1.PavProvisioner) { p.Spec.VolumeStaging.FSGroupPolicy = policy })
		}
		exists(t, c, csi, "has policy "+string(policy), func(d *storagev1.CSIDriver) bool {
			return *d.Spec.FSGroupPolicy == policy && !*d.Spec.SELinuxMount
		})
	}
	uid := csi.UID
	mustPatch(t, c, csi, func(d *storagev1.CSIDriver) { d.Spec.FSGroupPolicy = new(storagev1.FileFSGroupPolicy) })
	exists(t, c, csi, "is put right, in place", func(d *storagev1.CSIDriver) bool {
		return *d.Spec.FSGroupPolicy == storagev1.NoneFSGroupPolicy && d.UID == uid
	})
}

// Definitions from before scope, fsGroupPolicy and recovery existed keep their meaning, also if they are written back after
// being read.
func TestDefinitionsWithoutStagingOptionsStayValid(t *testing.T) {
	c := start(t)
	run(t, c)
	old := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": pavv1.GroupVersion.String(), "kind": "PavProvisioner",
		"metadata": map[string]any{"name": "of-old"},
		"spec": map[string]any{
			"provisioningModes": []any{"Dynamic", "Static"},
			"volumeValidation": map[string]any{
				"volumeModes": []any{"Filesystem", "Block"}, "accessModes": []any{"ReadWriteOnce"},
				"minCapacity": "1Mi", "maxCapacity": "{{ 1024 ** 4 }}",
			},
			"volumeCreation": map[string]any{"handle": "{{ defaultHandle }}", "capacity": "{{ requestedMinCapacity }}"},
			"volumeDeletion": map[string]any{"podTemplate": "{% set yaml = true %}{spec: {containers: [{name: c, image: i}]}}"},
			"volumeStaging": map[string]any{"podTemplate": map[string]any{"spec": map[string]any{"containers": []any{
				map[string]any{"name": "c", "image": "i", "securityContext": map[string]any{"privileged": true}},
			}}}},
			"volumeUnstaging": map[string]any{"podTemplate": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i"}}}}},
		},
	}}
	mustCreate(t, c, old)
	p := &pavv1.PavProvisioner{ObjectMeta: metav1.ObjectMeta{Name: "of-old"}}
	t.Cleanup(func() {
		_ = c.Admin.Delete(lasting(t), p)
		gone(t, c, p)
	})
	scopeIs(t, c, p, pavv1.StagingScopeNode, "Accepted")
	staging := p.Spec.VolumeStaging
	if p.Scope() != pavv1.StagingScopeNode || staging.FSGroupPolicy != storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy || staging.Recovery != pavv1.StagingRecoveryRestage {
		t.Errorf("got scope %s, policy %s and recovery %s", p.Scope(), staging.FSGroupPolicy, staging.Recovery)
	}
	csi := csiDriver("of-old")
	exists(t, c, csi, "has the default policy", func(d *storagev1.CSIDriver) bool {
		return *d.Spec.FSGroupPolicy == storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy
	})
	generation := p.Generation
	mustPatch(t, c, p, func(*pavv1.PavProvisioner) {})
	exists(t, c, p, "is as it was", func(p *pavv1.PavProvisioner) bool { return p.Generation == generation })
}
