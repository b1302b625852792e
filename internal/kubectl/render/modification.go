package render

import (
	"context"

	storagev1 "k8s.io/api/storage/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan"
)

// modify renders the modification of the volume to the VolumeAttributesClass that its claim names later.
func (r *rendering) modify(ctx context.Context, request podplan.VolumeRequest) {
	m := r.provisioner.Spec.VolumeModification
	if !r.wanted(modification, m != nil && r.newAttributesClass != nil) {
		return
	}
	class := &storagev1.VolumeAttributesClass{}
	err := errNoAttributesClass
	if r.newAttributesClass != nil {
		_, err = convert(r.newAttributesClass, class)
	}
	if err == nil {
		err = podplan.CheckAttributes(r.provisioner, class)
	}
	if err != nil {
		r.fail(modification, err)
		return
	}
	request.OldAttributes, request.Attributes = request.Attributes, class.Parameters
	if r.staged != nil {
		request.StagedOn = []string{r.staged.Spec.NodeName}
	}
	pod, err := request.Modify(ctx, m)
	if err != nil {
		r.fail(modification, err)
		return
	}
	phase := Phase{Phase: modification, Notes: []string{"to the attributes of VolumeAttributesClass " + class.Name}}
	if pod == nil {
		r.show(phase, nil)
		return
	}
	r.build(phase, pavv1.WorkflowModification, pod, podplan.WithinReach(r.ledger))
}
