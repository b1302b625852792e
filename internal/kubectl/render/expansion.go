package render

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/podplan/topology"
)

// target returns the capacity that the volume is to grow to, in bytes, and whether that is twice what it has.
func (r *rendering) target() (target int64, doubled bool) {
	has, target := storageOf(r.volume, "spec", "capacity"), storageOf(r.claim, "spec", "resources", "requests")
	if target <= has {
		return 2 * has, true
	}
	return target, false
}

// changeStatic renders what the controller agent does with a static volume that its claim has.
func (r *rendering) changeStatic(ctx context.Context) {
	if !r.provisioner.Supports(pavv1.ProvisioningModeStatic) {
		return
	}
	pv := &corev1.PersistentVolume{}
	if _, err := convert(r.volume, pv); err != nil {
		r.fail(expansion, err)
		return
	}
	r.ledger = &pavv1.PavVolume{
		ObjectMeta: metav1.ObjectMeta{Name: pv.Name, UID: uid("PavVolume", "", pv.Name)},
		Spec:       pavv1.PavVolumeSpec{Provisioner: r.provisioner.Name, Static: true},
		Status:     pavv1.PavVolumeStatus{Handle: text(r.volume, "spec", "csi", "volumeHandle")},
	}
	r.ledger.Status.AccessibleTopology, _ = topology.OfAffinity(pv.Spec.NodeAffinity)
	request := podplan.VolumeRequest{
		Provisioner: r.provisioner.UID, Generation: r.provisioner.Generation, Claim: r.claim, Volume: r.volume,
		Templates: r.templates, GetPVC: r.getPVC, Allowed: r.provisioner.Spec.AllowedClaimNamespaces,
	}
	r.expand(ctx, request)
	r.modify(ctx, request)
}

// expand renders the expansion of the volume to what the claim requests or, if it has that, to twice its capacity.
func (r *rendering) expand(ctx context.Context, request podplan.VolumeRequest) {
	e := r.provisioner.Spec.VolumeExpansion
	if !r.wanted(expansion, e != nil) {
		return
	}
	phase := Phase{Phase: expansion}
	target, doubled := r.target()
	if doubled {
		phase.Notes = append(phase.Notes, "the claim requests no more than the volume has: this is the expansion to twice its capacity")
	}
	if r.staged != nil {
		request.StagedOn = []string{r.staged.Spec.NodeName}
	}
	planned, err := request.ExpandWithin(ctx, &r.provisioner.Spec, target)
	if err != nil {
		r.fail(expansion, err)
		return
	}
	made, err := planned.Outcome(nil)
	if err != nil {
		r.fail(expansion, err)
		return
	}
	phase.Capacity = quantityText(made)
	if planned.Pod == nil {
		r.show(phase, nil)
		return
	}
	if planned.Capacity == 0 {
		phase.Notes = append(phase.Notes, "if the pod writes /pav/capacity, that is the capacity")
	}
	r.build(phase, pavv1.WorkflowExpansion, planned.Pod, podplan.WithinReach(r.ledger))
}
