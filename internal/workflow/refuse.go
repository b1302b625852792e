package workflow

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// errClash is wrapped by errors about templates that set fields which PaV sets.
var errClash = errors.New("is set by PaV and must not be in the template")

// errPrints is wrapped by errors about commands whose output may have credentials, and is not only in the log of their container.
var errPrints = errors.New("must not be in a pod that has credentials: kubelet writes what the command prints into events or its log; " +
	"do it in the command of a container")

// ProblemError is a mistake in a pod template, for which no pod is created from it.
type ProblemError struct {
	// Field is the path of the wrong field.
	Field string

	// Err says what is wrong.
	Err error
}

// Error implements error.
func (p *ProblemError) Error() string { return p.Field + ": " + p.Err.Error() }

// Unwrap returns what is wrong.
func (p *ProblemError) Unwrap() error { return p.Err }

// Problems returns all mistakes in a pod template of a workflow that do not depend on the node. Field is the
// template's path.
func Problems(field string, template *corev1.PodTemplateSpec, workflow string) []*ProblemError {
	r := &refusals{}
	if len(template.Spec.Containers) == 0 {
		r.add(field+".spec.containers", errors.New("a pod needs at least one container"))
	}
	if len(template.OwnerReferences) > 0 {
		r.add(field+".metadata.ownerReferences", errClash)
	}
	if len(template.Finalizers) > 0 {
		r.add(field+".metadata.finalizers", errClash)
	}
	r.keys(field+".metadata.labels", template.Labels)
	r.keys(field+".metadata.annotations", template.Annotations)
	if size, most := sizeOf(template.Annotations), maxAnnotations(workflow); size > most {
		r.add(field+".metadata.annotations", fmt.Errorf("they have %d bytes, and may have %d", size, most))
	}
	if workflow != pavv1.WorkflowStaging && template.Spec.RestartPolicy == corev1.RestartPolicyAlways {
		r.add(field+".spec.restartPolicy", errors.New("must be Never or OnFailure, as a pod that is always restarted never completes"))
	}
	r.volumes(field+".spec.volumes", template.Spec.Volumes)
	r.mounts(field+".spec.initContainers", template.Spec.InitContainers, workflow)
	r.mounts(field+".spec.containers", template.Spec.Containers, workflow)
	if PrintsSecrets(workflow) {
		r.handlers(field+".spec.initContainers", template.Spec.InitContainers)
		r.handlers(field+".spec.containers", template.Spec.Containers)
	}
	return r.problems
}

// refuse returns why no pod is created from the template on the policy's node, if so.
func refuse(field string, template *corev1.PodTemplateSpec, fence PodPolicy) error {
	if problems := Problems(field, template, fence.Workflow); len(problems) > 0 {
		return problems[0]
	}
	if name := template.Spec.NodeName; fence.Node != "" && name != "" && name != fence.Node {
		return fmt.Errorf("%s.spec.nodeName: the pod runs on node %q, not on %q: %w", field, fence.Node, name, errClash)
	}
	return nil
}

type refusals struct{ problems []*ProblemError }

func (r *refusals) add(field string, err error) {
	r.problems = append(r.problems, &ProblemError{Field: field, Err: err})
}

// maxAnnotations returns how many bytes the annotations of a template may have. The rest of the 256 KiB that the API server accepts is
// for those of PaV: the result has up to 110 KiB of sealed credentials, or 80 KiB of what clients are told of a bucket.
func maxAnnotations(workflow string) int {
	if workflow == pavv1.WorkflowGrant || workflow == pavv1.WorkflowBucketCreation {
		return 64 << 10
	}
	return 192 << 10
}

func sizeOf(values map[string]string) int {
	size := 0
	for key, value := range values {
		size += len(key) + len(value)
	}
	return size
}

func (r *refusals) keys(field string, values map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if prefix, _, _ := strings.Cut(key, "/"); prefix == pavv1.Group || strings.HasSuffix(prefix, "."+pavv1.Group) {
			r.add(field+"["+key+"]", errClash)
		}
	}
}

func (r *refusals) volumes(field string, volumes []corev1.Volume) {
	for i, volume := range volumes {
		if volume.Name == PavVolume {
			r.add(fmt.Sprintf("%s[%d].name", field, i), fmt.Errorf("%q %w", PavVolume, errClash))
		}
		if volume.CSI != nil && volume.CSI.Driver == pavv1.Driver {
			r.add(fmt.Sprintf("%s[%d].csi.driver", field, i), fmt.Errorf("a volume of %q %w", pavv1.Driver, errClash))
		}
	}
}

func (r *refusals) mounts(field string, containers []corev1.Container, workflow string) {
	for i, container := range containers {
		for j, mount := range container.VolumeMounts {
			at, where := path.Clean("/"+mount.MountPath), fmt.Sprintf("%s[%d].volumeMounts[%d].mountPath", field, i, j)
			switch {
			case at == pavPath:
				r.add(where, fmt.Errorf("%s %w", pavPath, errClash))
			case workflow == pavv1.WorkflowGrant && strings.HasPrefix(at+"/", credentialsPath+"/"):
				r.add(where, fmt.Errorf("%s %w, so that credentials are on no disk", credentialsPath, errClash))
			}
		}
	}
}

// handlers refuses the commands of probes and hooks: kubelet writes what they print into events, or into its own log.
func (r *refusals) handlers(field string, containers []corev1.Container) {
	for i, container := range containers {
		for _, probe := range []struct {
			name string
			*corev1.Probe
		}{{"livenessProbe", container.LivenessProbe}, {"readinessProbe", container.ReadinessProbe}, {"startupProbe", container.StartupProbe}} {
			if probe.Probe != nil && probe.Exec != nil {
				r.add(fmt.Sprintf("%s[%d].%s.exec", field, i, probe.name), errPrints)
			}
		}
		if container.Lifecycle == nil {
			continue
		}
		for _, hook := range []struct {
			name string
			*corev1.LifecycleHandler
		}{{"postStart", container.Lifecycle.PostStart}, {"preStop", container.Lifecycle.PreStop}} {
			if hook.LifecycleHandler != nil && hook.Exec != nil {
				r.add(fmt.Sprintf("%s[%d].lifecycle.%s.exec", field, i, hook.name), errPrints)
			}
		}
	}
}
