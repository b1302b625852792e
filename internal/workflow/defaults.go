package workflow

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

// Defaults are fields of all workflow pods of a cluster that an administrator sets in one place. A template that sets a
// field itself keeps its own value. All agents must have the same defaults.
type Defaults struct {
	// Registries maps registries to the mirrors that images are pulled from, such as docker.io to
	// registry.example.com/docker-hub. Images of templates are always rewritten.
	Registries map[string]string `json:"registries,omitempty"`

	// ImagePullSecrets are those of pods without any, and without a service account, which may have some. They are in the
	// namespace of the pod.
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// Resources are those of containers without any, unless the pod has resources.
	Resources corev1.ResourceRequirements `json:"resources,omitzero"`

	// PriorityClassName is that of validation, creation, expansion, modification and deletion pods without a priority.
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// NodeSelector is that of validation, creation, expansion, modification and deletion pods that do not choose their nodes.
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// Tolerations are added to those of validation, creation, expansion, modification and deletion pods.
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
}

// DefaultsHelp describes the flag of both agents that sets the defaults.
const DefaultsHelp = "defaults of all workflow pods, as YAML or JSON, the same for both agents: registries (mirrors), imagePullSecrets, resources, priorityClassName, nodeSelector, tolerations"

// Set reads the defaults of a flag, in YAML or JSON. Errors name the field.
func (d *Defaults) Set(text string) error {
	read := Defaults{}
	if err := yaml.UnmarshalStrict([]byte(text), &read); err != nil {
		return err
	}
	if err := read.validate(); err != nil {
		return err
	}
	*d = read
	return nil
}

// String returns the defaults as JSON, or "" if there are none.
func (d *Defaults) String() string {
	text, err := json.Marshal(d)
	if err != nil || string(text) == "{}" {
		return ""
	}
	return string(text)
}

// Type returns what a flag's help calls its value.
func (d *Defaults) Type() string { return "yaml" }

// validate returns the mistakes with which every pod would be refused, or every image not found.
func (d *Defaults) validate() error {
	var mistakes []error
	for _, registry := range slices.Sorted(maps.Keys(d.Registries)) {
		if named, err := reference.ParseNormalizedNamed(registry + "/image"); err != nil || reference.Domain(named) != registry {
			mistakes = append(mistakes, fmt.Errorf("registries: %q is not a registry, such as docker.io", registry))
		}
		mirror := d.Registries[registry]
		if named, err := reference.ParseNormalizedNamed(mirror + "/image"); err != nil || named.Name() != mirror+"/image" {
			mistakes = append(mistakes, fmt.Errorf("registries[%s]: %q is not a registry with a path, such as registry.example.com/mirror", registry, mirror))
		}
	}
	for i, secret := range d.ImagePullSecrets {
		mistakes = appendAbout(mistakes, fmt.Sprintf("imagePullSecrets[%d].name", i), secret.Name, validation.IsDNS1123Subdomain(secret.Name))
	}
	mistakes = append(mistakes, validateResources(d.Resources)...)
	if name := d.PriorityClassName; name != "" {
		mistakes = appendAbout(mistakes, "priorityClassName", name, validation.IsDNS1123Subdomain(name))
	}
	for _, key := range slices.Sorted(maps.Keys(d.NodeSelector)) {
		mistakes = appendAbout(mistakes, "nodeSelector", key, validation.IsQualifiedName(key))
		mistakes = appendAbout(mistakes, fmt.Sprintf("nodeSelector[%s]", key), d.NodeSelector[key], validation.IsValidLabelValue(d.NodeSelector[key]))
	}
	for i := range d.Tolerations {
		if said := validateToleration(&d.Tolerations[i]); said != "" {
			mistakes = append(mistakes, fmt.Errorf("tolerations[%d]: %s", i, said))
		}
	}
	return errors.Join(mistakes...)
}

// validateToleration returns why the API server would refuse a toleration, or "".
func validateToleration(t *corev1.Toleration) string {
	switch {
	case t.Operator != "" && t.Operator != corev1.TolerationOpEqual && t.Operator != corev1.TolerationOpExists:
		return fmt.Sprintf("operator: %q is not one of Equal, Exists", t.Operator)
	case t.Operator == corev1.TolerationOpExists && t.Value != "":
		return "value: must be empty with the operator Exists"
	case t.Operator != corev1.TolerationOpExists && t.Key == "":
		return "key: may be empty with the operator Exists only"
	case t.Effect != "" && t.Effect != corev1.TaintEffectNoSchedule && t.Effect != corev1.TaintEffectPreferNoSchedule && t.Effect != corev1.TaintEffectNoExecute:
		return fmt.Sprintf("effect: %q is not one of NoSchedule, PreferNoSchedule, NoExecute", t.Effect)
	case t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute:
		return "tolerationSeconds: needs the effect NoExecute"
	}
	return ""
}

func appendAbout(mistakes []error, field, value string, said []string) []error {
	for _, text := range said {
		mistakes = append(mistakes, fmt.Errorf("%s: %q: %s", field, value, text))
	}
	return mistakes
}

// ownResource has Kubernetes' own resources that all containers can have.
var ownResource = map[corev1.ResourceName]bool{corev1.ResourceCPU: true, corev1.ResourceMemory: true, corev1.ResourceEphemeralStorage: true}

func validateResources(r corev1.ResourceRequirements) (mistakes []error) {
	if len(r.Claims) > 0 {
		mistakes = append(mistakes, errors.New("resources.claims: there are none for all pods; name them in the templates"))
	}
	for _, list := range []struct {
		field string
		of    corev1.ResourceList
	}{{"requests", r.Requests}, {"limits", r.Limits}} {
		for _, name := range slices.Sorted(maps.Keys(list.of)) {
			if amount := list.of[name]; amount.Cmp(resource.Quantity{}) < 0 {
				mistakes = append(mistakes, fmt.Errorf("resources.%s[%s]: %s is negative", list.field, name, amount.String()))
			}
			if !strings.Contains(string(name), "/") && !ownResource[name] {
				mistakes = append(mistakes, fmt.Errorf("resources.%s: %q is not one of cpu, memory, ephemeral-storage, nor the name of an extended resource", list.field, name))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Requests)) {
		request := r.Requests[name]
		limit, limited := r.Limits[name]
		if strings.Contains(string(name), "/") && (!limited || request.Cmp(limit) != 0) {
			mistakes = append(mistakes, fmt.Errorf("resources.requests[%s]: of an extended resource, the limit must be the same", name))
		} else if limited && request.Cmp(limit) > 0 {
			mistakes = append(mistakes, fmt.Errorf("resources.requests[%s]: %s is above the limit, %s", name, request.String(), limit.String()))
		}
	}
	return mistakes
}

// apply sets the fields of a pod that its template has not set. Bound pods run on a given node.
func (d *Defaults) apply(spec *corev1.PodSpec, bound bool) {
	if len(spec.ImagePullSecrets) == 0 && spec.ServiceAccountName == "" && spec.DeprecatedServiceAccount == "" {
		spec.ImagePullSecrets = slices.Clone(d.ImagePullSecrets)
	}
	eachContainer(spec, func(container *corev1.Container) {
		container.Image = d.mirror(container.Image)
		if r := container.Resources; spec.Resources == nil && len(r.Requests)+len(r.Limits)+len(r.Claims) == 0 {
			container.Resources = *d.Resources.DeepCopy()
		}
	})
	for i := range spec.Volumes {
		if image := spec.Volumes[i].Image; image != nil {
			image.Reference = d.mirror(image.Reference)
		}
	}
	if bound {
		return
	}
	if spec.PriorityClassName == "" && spec.Priority == nil {
		spec.PriorityClassName = d.PriorityClassName
	}
	if len(spec.NodeSelector) == 0 && spec.NodeName == "" && (spec.Affinity == nil || spec.Affinity.NodeAffinity == nil) {
		spec.NodeSelector = maps.Clone(d.NodeSelector)
	}
	spec.Tolerations = slices.Concat(spec.Tolerations, d.Tolerations)
}

// mirror returns where an image is pulled from. One that is not a valid reference is left to the API server to refuse.
func (d *Defaults) mirror(image string) string {
	if len(d.Registries) == 0 {
		return image
	}
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return image
	}
	mirror, mirrored := d.Registries[reference.Domain(named)]
	if !mirrored {
		return image
	}
	return mirror + named.String()[len(reference.Domain(named)):]
}
