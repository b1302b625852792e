package render

import (
	"cmp"
	"context"
	"errors"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/template"
)

// existing is a volume of a cluster, with the objects that the agents would render its pods with.
type existing struct {
	// claim is the claim that the volume was created for or, if it is static, is bound to. name is that of the
	// PersistentVolume.
	claim, name string

	// record is the PavVolume; nil if the volume is static, even if it has one, or its record is gone. The other objects of a volume with a
	// record are its StorageClass, the node that was selected for its first consumer, if any, the claim from which it is,
	// or would be, created, and the claim as it is when the volume is deleted.
	record                      *pavv1.PavVolume
	class, node, request, owner map[string]any

	// static means that an administrator wrote the volume.
	static bool

	// stage is the PavStage of the volume, or of one of its nodes; nil if it is staged nowhere. The volume among the
	// objects of staging is nil if no node agent can stage or unstage it.
	stage   *pavv1.PavStage
	staging podplan.StageObjects

	// lookUp is get_pvc.
	lookUp template.GetPVC
}

// renderExisting returns the phases that a definition renders for a volume of a cluster.
func (o *options) renderExisting(
	ctx context.Context, p *pavv1.PavProvisioner, templates *template.Evaluator, v *existing,
) *rendering {
	r := &rendering{
		objects:     &objects{class: v.class, node: v.staging.Node, volume: v.staging.Volume, static: v.static, lookUp: v.lookUp},
		provisioner: p, templates: templates, options: o, staged: v.stage, provisioned: v.staging.Provisioned,
		result: Result{Provisioner: p.Name},
	}
	if v.record != nil {
		r.recorded(ctx, v)
	}
	r.claim = v.staging.Claim
	if r.volume == nil {
		return r
	}
	if v.static {
		r.validateStatic(ctx)
	}
	r.stage(ctx)
	return r
}

// recorded renders what the controller agent does for a volume, of which it has a record.
func (r *rendering) recorded(ctx context.Context, v *existing) {
	r.claim = v.request
	request := podplan.VolumeRequest{
		Provisioner: r.provisioner.UID, Generation: r.provisioner.Generation, Claim: v.request, Class: v.class, Node: v.node, Source: podplan.SourceOf(v.record, v.record.Status.SourceCapacity),
		Templates: r.templates, GetPVC: r.getPVC, Allowed: r.provisioner.Spec.AllowedClaimNamespaces,
	}
	// The pods of both definitions have the same names, even if only one of them has a validation pod.
	next := func() { r.pods = v.record.Status.Pods }
	attributes, err := podplan.AttributesAtCreation(v.record)
	if err != nil {
		r.fail(creation, err)
		return
	}
	request.Attributes = attributes.Parameters
	r.ledger = v.record.DeepCopy()
	r.ledger.Status.Handle = ""
	if r.wanted(validation, true) {
		next()
		r.validate(ctx, request)
	}
	next()
	made := r.create(ctx, request)
	provisioned, err := podplan.RecordedProvisionedClaim(v.record)
	if err != nil {
		r.fail(deletion, err)
		return
	}
	next()
	request.Claim, request.Provisioned = v.owner, provisioned
	r.delete(ctx, request, cmp.Or(v.record.Status.Handle, text(r.volume, "spec", "csi", "volumeHandle"), made.Handle))
}

// outcome returns the rendering of a phase; nil if the definition has nothing for it. A refusal to create a volume, or to
// accept a static one, is an outcome. Any other error is that of the definition.
func (r *rendering) outcome(phase string) (*Phase, error) {
	for _, f := range r.failures {
		if f.phase != phase {
			continue
		}
		if _, refused := errors.AsType[*podplan.Error](f.err); refused && (phase == validation || phase == creation) {
			return &Phase{Phase: phase, Refusal: f.err.Error()}, nil
		}
		return nil, f.err
	}
	found := r.result.of(phase)
	if found != nil && found.Pod == nil && len(found.volume()) == 0 {
		return nil, nil
	}
	return found, nil
}
