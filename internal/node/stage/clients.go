package stage

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/node/pavdir"
	"github.com/albertofaria/pav/internal/workflow"
)

// observeClients gathers the stages of client pods, which have to be unstaged before the stage that reserves the
// volume for the node.
func (t *task) observeClients(ctx context.Context, o *observation) error {
	t.clients = nil
	unstaging := t.ending
	if t.stage != nil {
		t.shared = t.stage.Spec.Scope != pavv1.StagingScopePod
		unstaging = unstaging || t.stage.Status.Phase == pavv1.StageUnstaging
	}
	if t.ofClient() || t.shared || !unstaging {
		return nil
	}
	targets, err := t.clientTargets(ctx, t.Volume)
	if err != nil {
		return err
	}
	for _, target := range targets {
		t.clients = append(t.clients, Subject{Volume: t.Volume, Target: target})
	}
	o.clients = len(t.clients) > 0
	return nil
}

// clientTargets returns the targets of the volume that have stages of their own, from the node's records and from the
// API server: either may have lost them.
func (s *Stager) clientTargets(ctx context.Context, v Volume) ([]string, error) {
	targets, _, err := s.clientRecords(ctx, v)
	if err != nil {
		return nil, err
	}
	stages := &pavv1.PavStageList{}
	if err := s.client.List(ctx, stages, client.MatchingLabels{
		pavv1.NodeLabel: workflow.Hash(s.node), pavv1.ProvisionerLabel: v.Driver,
	}); err != nil {
		return nil, fmt.Errorf("listing the PavStages of client pods: %w", err)
	}
	for i := range stages.Items {
		stage := &stages.Items[i]
		spec := &stage.Spec
		if spec.Client != nil && spec.NodeName == s.node && spec.VolumeHandle == v.Handle && !holdsNothing(stage) {
			targets = append(targets, spec.Client.Target)
		}
	}
	slices.Sort(targets)
	return slices.Compact(targets), nil
}

// clientRecords returns the targets of a volume that have stages of their own, from the node's records. Torn says
// that some records, perhaps of other volumes, cannot be read, so the API server must be asked as well.
func (s *Stager) clientRecords(ctx context.Context, v Volume) (targets []string, torn bool, err error) {
	names, err := s.dirs.Stages(ctx)
	if err != nil {
		return nil, false, err
	}
	for _, name := range names {
		record, err := s.dirs.Recorded(ctx, name)
		if errors.Is(err, pavdir.ErrTorn) {
			torn = true
			continue
		}
		if err != nil {
			return nil, torn, err
		}
		if record != nil && record.Client != nil && record.Driver == v.Driver && record.Handle == v.Handle {
			targets = append(targets, record.Client.Target)
		}
	}
	return targets, torn, nil
}

// holdsNothing reports whether a PavStage is only the record of a failure, or has been unstaged and is being deleted.
func holdsNothing(stage *pavv1.PavStage) bool { return IsTerminating(stage) || IsRecord(stage) }

// unstageClients unstages the volume for each client pod that still has a stage.
func (t *task) unstageClients(ctx context.Context) error {
	var failures []error
	for _, of := range t.clients {
		if err := t.unstage(ctx, of); err != nil {
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}

// holder returns the PavStage that reserves the volume for this node, on which the stages of client pods depend.
func (t *task) holder(ctx context.Context) (*pavv1.PavStage, error) {
	stage, err := t.stageOf(ctx, Subject{Volume: t.Volume})
	switch {
	case err != nil:
		return nil, err
	case stage == nil || holdsNothing(stage):
		return nil, fmt.Errorf("%w: provisioner %q, handle %q", ErrNotStaged, t.Driver, t.Handle)
	case stage.Status.Phase != pavv1.StageStaged: // Whether it is being deleted does not matter here.
		return nil, fmt.Errorf("%w: PavStage %q is not Staged", ErrBusy, stage.Name)
	case stage.Spec.Scope != pavv1.StagingScopePod:
		return nil, fmt.Errorf("%w: PavStage %q has the scope %s", ErrMismatch, stage.Name, stage.Spec.Scope)
	}
	return stage, nil
}

// Publications returns the targets at which the stage's volume is recorded as published since the node last started.
func (s *Stager) Publications(ctx context.Context, stage string) ([]pavdir.Publication, error) {
	all, err := s.dirs.Publications(ctx, stage)
	return slices.DeleteFunc(all, func(p pavdir.Publication) bool { return !p.Same(s.boot) }), err
}
