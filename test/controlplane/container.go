package controlplane

import (
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// ControllerLimits returns the memory limit of the controller agent's container, in bytes, as the Deployment among the objects has it,
// and what the container sets of Go's runtime, as variables of an environment. It is an error if there is no limit, or no setting.
func ControllerLimits(objects []*unstructured.Unstructured) (memory int64, settings []string, err error) {
	for _, object := range objects {
		if object.GetKind() != "Deployment" || object.GetName() != "controller-agent" {
			continue
		}
		deployment := &appsv1.Deployment{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, deployment); err != nil {
			return 0, nil, fmt.Errorf("decoding the Deployment: %w", err)
		}
		container := deployment.Spec.Template.Spec.Containers[0]
		for _, v := range container.Env {
			if v.Name == "GOMEMLIMIT" || v.Name == "GOGC" {
				settings = append(settings, v.Name+"="+v.Value)
			}
		}
		memory = container.Resources.Limits.Memory().Value()
	}
	if memory == 0 || settings == nil {
		return 0, nil, errors.New("no Deployment limits the controller agent's memory, and sets GOMEMLIMIT or GOGC")
	}
	return memory, settings, nil
}
