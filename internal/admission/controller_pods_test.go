package admission

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	"github.com/albertofaria/pav/internal/workflow"
)

func TestUnplannedRights(t *testing.T) {
	privileged := func(container string) corev1.PodSpec {
		return corev1.PodSpec{HostPID: true, Containers: []corev1.Container{{Name: container, Image: container, SecurityContext: &corev1.SecurityContext{Privileged: new(true)}}}}
	}
	on := func(node string) corev1.PodSpec { return corev1.PodSpec{NodeName: node} }
	plan := func(spec corev1.PodSpec) *corev1.Pod { return &corev1.Pod{Spec: spec} }
	other := privileged("main")
	other.HostPID, other.Containers[0].Image = false, "another"
	sidecar := privileged("main")
	sidecar.Containers = append(sidecar.Containers, corev1.Container{Name: "sidecar"})
	for name, tt := range map[string]struct {
		pod     corev1.PodSpec
		planned *corev1.Pod
		want    []string
	}{
		"what is planned":                           {pod: privileged("main"), planned: plan(privileged("main"))},
		"less than is planned, in another image":    {pod: other, planned: plan(privileged("main"))},
		"a sidecar without rights":                  {pod: sidecar, planned: plan(privileged("main"))},
		"another container than the privileged one": {pod: privileged("other"), planned: plan(privileged("main")), want: []string{"spec.containers[other].securityContext.privileged"}},
		"a pod where none is planned":               {pod: privileged("main"), want: []string{"spec.containers[main].securityContext.privileged", "spec.hostPID"}},
		"a pod where a modest one is planned":       {pod: on("a"), planned: plan(corev1.PodSpec{}), want: []string{"spec.nodeName=a"}},
		"another node":                              {pod: on("a"), planned: plan(on("b")), want: []string{"spec.nodeName=a"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, unplanned(workflow.NodeRights(&tt.pod), tt.planned), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("rights that are not planned (-want +got):\n%s", diff)
			}
		})
	}
}
