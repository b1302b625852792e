package render

import (
	"context"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan"
)

// target returns the capacity that the volume is to grow to, in bytes, and whether that is twice what it has.
func (r *rendering) target() (target int64, doubled bool) {
	has, target := storageOf(r.volume, "spec", "capacity"), storageOf(r.claim, "spec", "resources", "requests")
	if target <= has {
		return 2 * has, true
	}
	return target, false
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
