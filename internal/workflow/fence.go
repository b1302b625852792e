package workflow

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// DefaultNamespace is where workflow pods run whose template names no namespace.
const DefaultNamespace = "pav-pods"

const (
	pavVolume = "pav"
	pavPath   = "/pav"

	// nodeCritical is the priority class of staging and unstaging pods whose template names none:
	// a client's volume must not lose its staging pod to a pod that matters less.
	nodeCritical = "system-node-critical"

	// daemonSetPod keeps the cluster autoscaler from waiting for a pod that never moves.
	daemonSetPod = "cluster-autoscaler.kubernetes.io/daemonset-pod"
)

// Fence is what PaV decides about a workflow pod, whatever its template says.
type Fence struct {
	// Workflow is the value of pavv1.WorkflowLabel.
	Workflow string

	// Name of the pod.
	Name string

	// Owner is the pod's controller.
	Owner metav1.OwnerReference

	// Labels and Annotations are PaV's own, with keys of pavv1.Group.
	Labels, Annotations map[string]string

	// Node is the node that the pod is bound to.
	Node string
}

// errClash is wrapped by errors about templates that set what is PaV's.
var errClash = errors.New("is set by PaV and must not be in the template")

// Build returns the pod for an evaluated pod template, inside its fence. Field is the template's
// path, which errors begin with.
func Build(field string, rendered map[string]any, fence Fence) (*corev1.Pod, error) {
	template, err := decodeTemplate(field, rendered)
	if err != nil {
		return nil, err
	}
	if err := refuseClashes(field, template, fence); err != nil {
		return nil, err
	}

	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name:            fence.Name,
			Namespace:       template.Namespace,
			Labels:          merge(template.Labels, fence.Labels, map[string]string{pavv1.WorkflowLabel: fence.Workflow}),
			Annotations:     merge(template.Annotations, fence.Annotations),
			OwnerReferences: []metav1.OwnerReference{fence.Owner},
			Finalizers:      []string{pavv1.PodFinalizer},
		},
		Spec: template.Spec,
	}
	if pod.Namespace == "" {
		pod.Namespace = DefaultNamespace
	}
	setDefaults(&pod.Spec)
	bindToNode(pod, fence.Node)
	addPav(&pod.Spec)
	return pod, nil
}

// decodeTemplate is strict: a field that PaV does not know would otherwise be lost without a word.
func decodeTemplate(field string, rendered map[string]any) (*corev1.PodTemplateSpec, error) {
	raw, err := json.Marshal(rendered)
	if err != nil {
		return nil, fmt.Errorf("%s: encoding the evaluated template: %w", field, err)
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	template := &corev1.PodTemplateSpec{}
	if err := decoder.Decode(template); err != nil {
		return nil, fmt.Errorf("%s: the evaluated template is no pod template: %w", field, err)
	}
	return template, nil
}

func refuseClashes(field string, template *corev1.PodTemplateSpec, fence Fence) error {
	if len(template.Spec.Containers) == 0 {
		return fmt.Errorf("%s.spec.containers: a pod needs at least one container", field)
	}
	if len(template.OwnerReferences) > 0 {
		return fmt.Errorf("%s.metadata.ownerReferences: %w", field, errClash)
	}
	if len(template.Finalizers) > 0 {
		return fmt.Errorf("%s.metadata.finalizers: %w", field, errClash)
	}
	if err := refuseKeys(field+".metadata.labels", template.Labels); err != nil {
		return err
	}
	if err := refuseKeys(field+".metadata.annotations", template.Annotations); err != nil {
		return err
	}
	if name := template.Spec.NodeName; name != "" && name != fence.Node {
		return fmt.Errorf("%s.spec.nodeName: the pod runs on node %q, not on %q: %w", field, fence.Node, name, errClash)
	}
	if fence.Workflow != pavv1.WorkflowStaging && template.Spec.RestartPolicy == corev1.RestartPolicyAlways {
		return fmt.Errorf("%s.spec.restartPolicy: must be Never or OnFailure, as a pod that is always restarted never completes", field)
	}
	return refusePavClashes(field, &template.Spec)
}

func refuseKeys(field string, values map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if prefix, _, _ := strings.Cut(key, "/"); prefix == pavv1.Group || strings.HasSuffix(prefix, "."+pavv1.Group) {
			return fmt.Errorf("%s[%s]: %w", field, key, errClash)
		}
	}
	return nil
}

func refusePavClashes(field string, spec *corev1.PodSpec) error {
	for i, volume := range spec.Volumes {
		if volume.Name == pavVolume {
			return fmt.Errorf("%s.spec.volumes[%d].name: %q %w", field, i, pavVolume, errClash)
		}
	}
	if err := refuseMounts(field+".spec.initContainers", spec.InitContainers); err != nil {
		return err
	}
	return refuseMounts(field+".spec.containers", spec.Containers)
}

func refuseMounts(field string, containers []corev1.Container) error {
	for i, container := range containers {
		for j, mount := range container.VolumeMounts {
			if path.Clean("/"+mount.MountPath) == pavPath {
				return fmt.Errorf("%s[%d].volumeMounts[%d].mountPath: %s %w", field, i, j, pavPath, errClash)
			}
		}
	}
	return nil
}

func setDefaults(spec *corev1.PodSpec) {
	if spec.RestartPolicy == "" {
		spec.RestartPolicy = corev1.RestartPolicyNever
	}
	if spec.AutomountServiceAccountToken == nil {
		spec.AutomountServiceAccountToken = new(false)
	}
	eachContainer(spec, func(container *corev1.Container) {
		// So that a failure's last log lines are in the pod's status, which needs no right to read logs.
		if container.TerminationMessagePolicy == "" {
			container.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
		}
	})
}

// bindToNode binds the pod to its node as DaemonSet pods are bound, by affinity and not by nodeName,
// so that the scheduler still binds claims of it that wait for their first consumer.
func bindToNode(pod *corev1.Pod, node string) {
	spec := &pod.Spec
	spec.NodeName = ""
	if spec.PriorityClassName == "" && spec.Priority == nil {
		spec.PriorityClassName = nodeCritical
	}
	spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Operator: corev1.TolerationOpExists})
	pod.Annotations[daemonSetPod] = "true"

	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	if spec.Affinity.NodeAffinity == nil {
		spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	required := &spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if *required == nil {
		*required = &corev1.NodeSelector{}
	}
	// Terms are alternatives, so the requirement goes into each.
	if len((*required).NodeSelectorTerms) == 0 {
		(*required).NodeSelectorTerms = []corev1.NodeSelectorTerm{{}}
	}
	for i := range (*required).NodeSelectorTerms {
		term := &(*required).NodeSelectorTerms[i]
		term.MatchFields = append(term.MatchFields, corev1.NodeSelectorRequirement{
			Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node},
		})
	}
}

// addPav gives every container /pav. What a privileged container mounts below it reaches the node.
func addPav(spec *corev1.PodSpec) {
	spec.Volumes = append(slices.Clone(spec.Volumes), corev1.Volume{
		Name:         pavVolume,
		VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: pavv1.Driver}},
	})
	eachContainer(spec, func(container *corev1.Container) {
		propagation := corev1.MountPropagationHostToContainer
		if c := container.SecurityContext; c != nil && c.Privileged != nil && *c.Privileged {
			propagation = corev1.MountPropagationBidirectional
		}
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{
			Name: pavVolume, MountPath: pavPath, MountPropagation: &propagation,
		})
	})
}

func eachContainer(spec *corev1.PodSpec, visit func(*corev1.Container)) {
	for i := range spec.InitContainers {
		visit(&spec.InitContainers[i])
	}
	for i := range spec.Containers {
		visit(&spec.Containers[i])
	}
}

func merge(parts ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range parts {
		maps.Copy(out, m)
	}
	return out
}
