package definition

import (
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/albertofaria/pav/internal/workflow"
)

// pod is a pod template that is being checked.
type pod struct {
	*check
	workflow string
	template node
	spec     node
}

// pod checks a pod template.
func (c *check) pod(w *walker, field string, value any) {
	known, _ := w.value(field, podType, value)
	p := &pod{check: c, workflow: workflowOf(w.section), template: node{field, value}}
	if !p.template.isMapping() {
		return
	}
	p.spec = p.template.key("spec")
	steps := []func(){func() { p.fence(node{field, known}) }, p.metadata, p.placement, p.restarts, p.volumes, p.containers, p.sinks}
	for _, step := range steps {
		if p.over(field) {
			return
		}
		step()
	}
}

func workflowOf(name string) string {
	return sections[slices.IndexFunc(sections, func(s section) bool { return s.name == name })].workflow
}

// fence reports the known parts of the template for which PaV would refuse to create the pod.
func (p *pod) fence(known node) {
	if p.spec.value != nil && !p.spec.isMapping() || !p.spec.key("containers").isKnownList() {
		// A template may yield any containers.
		entries := known.value.(map[string]any)
		spec, _ := entries["spec"].(map[string]any)
		if spec == nil {
			spec = map[string]any{}
			entries["spec"] = spec
		}
		spec["containers"] = []any{nil}
	}
	raw, err := json.Marshal(known.value)
	if err == nil {
		template := &corev1.PodTemplateSpec{}
		if err = json.Unmarshal(raw, template); err == nil {
			for _, problem := range workflow.Problems(known.field, template, p.workflow) {
				p.errorf(problem.Field, "%s", problem.Err)
			}
			return
		}
	}
	p.errorf(known.field, "is not a pod template: %s", err)
}

func (p *pod) metadata() {
	metadata := p.template.key("metadata")
	for _, unused := range []string{"name", "generateName"} {
		if name := metadata.key(unused); name.value != nil {
			p.warnf(name.field, "has no effect, as PaV names the pod; leave it out")
		}
	}
	if namespace, ok := metadata.key("namespace").text(); ok && namespace != "" && !isLabel(namespace) {
		p.errorf(metadata.key("namespace").field, "%s is not a valid namespace name, which is a DNS label", quote(namespace))
	}
	p.labels(metadata.key("labels"))
	p.keys(metadata.key("annotations"))
}

// placement checks the fields that say where and how the pod runs.
func (p *pod) placement() {
	if name := p.spec.key("nodeName"); workflow.OnNode(p.workflow) && name.value != nil {
		if text, ok := name.text(); ok && text != "" {
			p.warnf(name.field, "the pod must run on its client's node, and fails if that is not %s; remove this", quote(text))
		}
	}
	if list := p.spec.key("ephemeralContainers"); len(list.items()) > 0 {
		p.errorf(list.field, "a pod cannot be created with ephemeral containers; use containers")
	}
	for _, name := range []string{"serviceAccountName", "priorityClassName", "runtimeClassName"} {
		field := p.spec.key(name)
		if text, ok := field.text(); ok && text != "" && !isSubdomain(text) {
			p.errorf(field.field, "%s is not a valid object name: use at most 253 lower-case letters, digits, '-' and '.'", quote(text))
		}
	}
	p.labels(p.spec.key("nodeSelector"))
}

// ownNamespaces are templates, without spaces, for the namespace of the tenant.
var ownNamespaces = []string{
	"{{pvc.metadata.namespace}}", "{{claim.metadata.namespace}}", "{{access.metadata.namespace}}", "{{namespace.metadata.name}}",
}

// quiet reports whether the pod runs in the claim's own namespace. There, the objects that it names belong to the
// tenant anyway.
func (p *pod) quiet() bool {
	text, _ := p.template.key("metadata").key("namespace").value.(string)
	return slices.Contains(ownNamespaces, strings.Join(strings.Fields(text), ""))
}
