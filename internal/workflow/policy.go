package workflow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// DefaultNamespace is the namespace of workflow pods whose template has none.
const DefaultNamespace = "pav-pods"

// PavVolume is the name of the volume that every workflow pod has at /pav.
const PavVolume = "pav"

const (
	pavPath         = "/pav"
	credentialsPath = pavPath + "/" + CredentialsDirectory

	// nodeCritical is the priority class of staging and unstaging pods whose template has none: a staging pod must
	// not be evicted for a less important pod while clients use its volume.
	nodeCritical = "system-node-critical"

	// longestRun is when Kubernetes ends a validation, creation, expansion, modification or deletion pod whose template has no deadline.
	longestRun = 24 * time.Hour

	// terminationLog is where a container of a grant or revocation pod finds the file that kubelet keeps for it on the node's disk, and whose content
	// it puts into the status of the pod. It must be somewhere. No script writes there by habit, as to /dev/termination-log, and
	// nobody who lists /pav/credentials finds it.
	terminationLog = "/dev/pav-termination-log"

	// daemonSetPod makes the cluster autoscaler ignore a pod that cannot move to another node.
	daemonSetPod = "cluster-autoscaler.kubernetes.io/daemonset-pod"
)

// PodPolicy has the fields of a workflow pod that PaV sets, regardless of the template.
type PodPolicy struct {
	// Workflow is the value of pavv1.WorkflowLabel.
	Workflow string

	// Name of the pod.
	Name string

	// Owner is the pod's controller.
	Owner metav1.OwnerReference

	// Labels and Annotations are those of PaV, with keys of pavv1.Group.
	Labels, Annotations map[string]string

	// Node is the node that the pod is bound to; empty if the scheduler selects the node, within the template.
	Node string

	// Within limits the nodes of the pod, in addition to its template; nil for all nodes. If the template has
	// spec.nodeName, which bypasses the scheduler, kubelet applies it.
	Within *corev1.NodeSelector

	// Avoid lists nodes that the scheduler should select only if there are no others.
	Avoid []string

	// Defaults are those of all workflow pods, which do not override the template.
	Defaults Defaults
}

// maxTerms is how many alternatives a template's node affinity and PodPolicy.Within may have together.
const maxTerms = 100

// Build returns the pod for an evaluated pod template, with its PodPolicy. Field is the template's
// path, which errors begin with.
func Build(field string, rendered map[string]any, fence PodPolicy) (*corev1.Pod, error) {
	template, err := decodeTemplate(field, rendered)
	if err != nil {
		return nil, err
	}
	if err := refuse(field, template, fence); err != nil {
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
	fence.Defaults.apply(&pod.Spec, fence.Node != "")
	setDefaults(&pod.Spec, fence.Workflow)
	if err := confine(field, &pod.Spec, fence.Within); err != nil {
		return nil, err
	}
	if fence.Node != "" {
		bindToNode(pod, fence.Node)
	} else {
		avoid(&pod.Spec, fence.Avoid)
	}
	addPav(&pod.Spec, fence.Workflow)
	return pod, nil
}

// decodeTemplate is strict: a field that PaV does not know would otherwise be lost without an error.
func decodeTemplate(field string, rendered map[string]any) (*corev1.PodTemplateSpec, error) {
	raw, err := json.Marshal(rendered)
	if err != nil {
		return nil, fmt.Errorf("%s: encoding the evaluated template: %w", field, err)
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	template := &corev1.PodTemplateSpec{}
	if err := decoder.Decode(template); err != nil {
		return nil, fmt.Errorf("%s: the evaluated template is not a pod template: %w", field, err)
	}
	return template, nil
}

func setDefaults(spec *corev1.PodSpec, workflow string) {
	if spec.RestartPolicy == "" {
		spec.RestartPolicy = corev1.RestartPolicyNever
	}
	if spec.AutomountServiceAccountToken == nil {
		spec.AutomountServiceAccountToken = new(false)
	}
	// Staging pods run as long as their volumes are used.
	if spec.ActiveDeadlineSeconds == nil && workflow != pavv1.WorkflowStaging && workflow != pavv1.WorkflowUnstaging {
		spec.ActiveDeadlineSeconds = new(int64(longestRun / time.Second))
	}
	// On nodes of other systems, no container of a template can run.
	if _, chosen := spec.NodeSelector[corev1.LabelOSStable]; !chosen {
		spec.NodeSelector = merge(spec.NodeSelector, map[string]string{corev1.LabelOSStable: string(corev1.Linux)})
	}
	eachContainer(spec, func(container *corev1.Container) {
		if PrintsSecrets(workflow) {
			container.TerminationMessagePath = terminationLog
			container.TerminationMessagePolicy = corev1.TerminationMessageReadFile
		}
		// The last log lines of a failed container are then in the pod's status, which the agents can read without
		// the right to read logs, and record for administrators.
		if container.TerminationMessagePolicy == "" {
			container.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
		}
	})
}

// bindToNode binds the pod to its node as DaemonSet pods are bound, by affinity and not by nodeName, so that the
// scheduler still binds its claims that wait for their first consumer.
func bindToNode(pod *corev1.Pod, node string) {
	spec := &pod.Spec
	spec.NodeName = ""
	if spec.PriorityClassName == "" && spec.Priority == nil {
		spec.PriorityClassName = nodeCritical
	}
	spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Operator: corev1.TolerationOpExists})
	pod.Annotations[daemonSetPod] = "true"

	required := requiredNodes(spec)
	// Terms are alternatives, so the requirement goes into each.
	if len(required.NodeSelectorTerms) == 0 {
		required.NodeSelectorTerms = []corev1.NodeSelectorTerm{{}}
	}
	for i := range required.NodeSelectorTerms {
		term := &required.NodeSelectorTerms[i]
		term.MatchFields = append(term.MatchFields, corev1.NodeSelectorRequirement{
			Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node},
		})
	}
}

// avoid makes the scheduler select some nodes only if there are no others. It does not change where the pod may run.
func avoid(spec *corev1.PodSpec, nodes []string) {
	if len(nodes) == 0 {
		return
	}
	var term corev1.NodeSelectorTerm
	for _, node := range nodes {
		term.MatchFields = append(term.MatchFields, corev1.NodeSelectorRequirement{
			Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpNotIn, Values: []string{node},
		})
	}
	affinity := nodeAffinity(spec)
	affinity.PreferredDuringSchedulingIgnoredDuringExecution = append(
		slices.Clone(affinity.PreferredDuringSchedulingIgnoredDuringExecution), corev1.PreferredSchedulingTerm{Weight: 100, Preference: term})
}

// confine lets the pod run only on nodes of within. Terms are alternatives, so both selectors match if a term of one
// and a term of the other match.
func confine(field string, spec *corev1.PodSpec, within *corev1.NodeSelector) error {
	if within == nil {
		return nil
	}
	required := requiredNodes(spec)
	terms := withoutEmpty(within.DeepCopy().NodeSelectorTerms)
	if own := required.NodeSelectorTerms; len(own) > 0 {
		if len(own)*len(terms) > maxTerms {
			return fmt.Errorf("%s.spec.affinity.nodeAffinity: its %d terms, confined to the %d of the allowed nodes, make more than %d; use fewer",
				field, len(own), len(terms), maxTerms)
		}
		terms = product(withoutEmpty(own), terms)
	}
	if len(terms) == 0 {
		return fmt.Errorf("%s.spec.affinity.nodeAffinity: no node is left, as all of its terms, or all of those of the allowed nodes, are empty", field)
	}
	required.NodeSelectorTerms = terms
	return nil
}

func product(these, those []corev1.NodeSelectorTerm) []corev1.NodeSelectorTerm {
	terms := make([]corev1.NodeSelectorTerm, 0, len(these)*len(those))
	for _, a := range these {
		for _, b := range those {
			terms = append(terms, corev1.NodeSelectorTerm{
				MatchExpressions: slices.Concat(a.MatchExpressions, b.MatchExpressions),
				MatchFields:      slices.Concat(a.MatchFields, b.MatchFields),
			})
		}
	}
	return terms
}

// withoutEmpty removes terms that match no node in Kubernetes, but would match every node in a product.
func withoutEmpty(terms []corev1.NodeSelectorTerm) []corev1.NodeSelectorTerm {
	return slices.DeleteFunc(slices.Clone(terms), func(term corev1.NodeSelectorTerm) bool {
		return len(term.MatchExpressions) == 0 && len(term.MatchFields) == 0
	})
}

// requiredNodes returns the pod's required node affinity, to be filled in.
func requiredNodes(spec *corev1.PodSpec) *corev1.NodeSelector {
	required := &nodeAffinity(spec).RequiredDuringSchedulingIgnoredDuringExecution
	if *required == nil {
		*required = &corev1.NodeSelector{}
	}
	return *required
}

// nodeAffinity returns the pod's node affinity, to be filled in.
func nodeAffinity(spec *corev1.PodSpec) *corev1.NodeAffinity {
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	if spec.Affinity.NodeAffinity == nil {
		spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	return spec.Affinity.NodeAffinity
}

// addPav mounts /pav in every container.
func addPav(spec *corev1.PodSpec, workflow string) {
	spec.Volumes = append(slices.Clone(spec.Volumes), corev1.Volume{
		Name:         PavVolume,
		VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: pavv1.Driver}},
	})
	eachContainer(spec, func(container *corev1.Container) {
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{
			Name: PavVolume, MountPath: pavPath, MountPropagation: propagation(workflow, container),
		})
	})
}

// PrintsSecrets reports whether what pods of a workflow print may have credentials of clients, so that PaV repeats none of it. A revocation
// pod may list a user of whom it removes one key, with the key that stays.
func PrintsSecrets(workflow string) bool {
	return workflow == pavv1.WorkflowGrant || workflow == pavv1.WorkflowRevocation
}

// OnNode reports whether the pods of a workflow run on the node that has the volume staged, with the /pav of the stage.
func OnNode(workflow string) bool {
	return workflow == pavv1.WorkflowStaging || workflow == pavv1.WorkflowUnstaging || workflow == pavv1.WorkflowNodeExpansion
}

// propagation returns the propagation of mounts below /pav. Mounts of a privileged container of a stage's pod reach
// the node; those of other pods do not.
func propagation(workflow string, container *corev1.Container) *corev1.MountPropagationMode {
	if !OnNode(workflow) {
		return nil
	}
	if c := container.SecurityContext; c != nil && c.Privileged != nil && *c.Privileged {
		return new(corev1.MountPropagationBidirectional)
	}
	return new(corev1.MountPropagationHostToContainer)
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
