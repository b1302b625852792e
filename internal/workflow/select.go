package workflow

import (
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// PodsOfController selects the pods that PavVolumes and PavSnapshots control: those of the controller agent.
func PodsOfController() (labels.Selector, error) {
	ours, err := labels.NewRequirement(pavv1.WorkflowLabel, selection.In, pavv1.WorkflowsOfController())
	if err != nil {
		return nil, fmt.Errorf("selecting the pods of the controller agent: %w", err)
	}
	notOfStages, err := labels.NewRequirement(pavv1.StageLabel, selection.DoesNotExist, nil)
	if err != nil {
		return nil, fmt.Errorf("selecting the pods of the controller agent: %w", err)
	}
	return labels.NewSelector().Add(*ours, *notOfStages), nil
}
