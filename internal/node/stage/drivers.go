package stage

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/node/pavdir"
	"github.com/albertofaria/pav/internal/workflow"
)

// RecordedDrivers returns the drivers of the stages that are recorded on the node, sorted.
func (s *Stager) RecordedDrivers(ctx context.Context) ([]string, error) {
	names, err := s.dirs.Stages(ctx)
	if err != nil {
		return nil, err
	}
	var drivers []string
	for _, name := range names {
		record, err := s.dirs.Recorded(ctx, name)
		if errors.Is(err, pavdir.ErrTorn) {
			continue // Its PavStage has the driver, when the API server can be reached.
		}
		if err != nil {
			return nil, err
		}
		if record != nil {
			drivers = append(drivers, record.Driver)
		}
	}
	slices.Sort(drivers)
	return slices.Compact(drivers), nil
}

// HasStages reports whether the node has a stage of a provisioner, by its own records or by the API server.
func (s *Stager) HasStages(ctx context.Context, provisioner string) (bool, error) {
	drivers, err := s.RecordedDrivers(ctx)
	if err != nil || slices.Contains(drivers, provisioner) {
		return err == nil, err
	}
	stages, err := s.stagesOf(ctx, provisioner)
	return len(stages) > 0, err
}

// ReportNoProvisioner records on the node's stages of a provisioner, and on their claims, that it is gone.
func (s *Stager) ReportNoProvisioner(ctx context.Context, provisioner string) error {
	stages, err := s.stagesOf(ctx, provisioner)
	for i := range stages {
		s.reportOnStage(ctx, &stages[i], corev1.EventTypeWarning, "ProvisionerMissing", fmt.Sprintf(
			"PavProvisioner %q was removed by force while volume %s is staged on node %s: pods go on using the volume, but it cannot be unstaged; create the PavProvisioner again",
			provisioner, stages[i].Spec.VolumeName, s.node))
	}
	return err
}

// stagesOf returns the PavStages of a provisioner on the node that are more than the record of a failure.
func (s *Stager) stagesOf(ctx context.Context, provisioner string) ([]pavv1.PavStage, error) {
	list := &pavv1.PavStageList{}
	if err := s.client.List(ctx, list, client.MatchingLabels{
		pavv1.NodeLabel: workflow.Hash(s.node), pavv1.ProvisionerLabel: provisioner,
	}); err != nil {
		return nil, fmt.Errorf("listing the PavStages of provisioner %q: %w", provisioner, err)
	}
	return slices.DeleteFunc(list.Items, func(stage pavv1.PavStage) bool {
		return stage.Spec.NodeName != s.node || holdsNothing(&stage)
	}), nil
}
