package definition

import (
	"strings"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/template"
)

// StaticPod is a pod template without any Jinja in it, so the pod is known in advance.
type StaticPod struct {
	// Field is the path of the pod template from the root of the object.
	Field string

	// Workflow is the workflow of the pod: one of pavv1's Workflow constants.
	Workflow string

	// Template is the PodTemplateSpec as plain data, as evaluation would return it.
	Template map[string]any
}

// section is a part of a definition that is evaluated as a whole and has a pod template, in a field of the spec.
type section struct{ name, field, workflow string }

// sections are in the order in which a volume and a bucket go through them.
var sections = []section{
	{"volumeValidation", "volumeValidation.podTemplate", pavv1.WorkflowValidation},
	{"volumeCreation", "volumeCreation.podTemplate", pavv1.WorkflowCreation},
	{"volumeExpansion", "volumeExpansion.podTemplate", pavv1.WorkflowExpansion},
	{"volumeModification", "volumeModification.podTemplate", pavv1.WorkflowModification},
	{"volumeDeletion", "volumeDeletion.podTemplate", pavv1.WorkflowDeletion},
	{"snapshotCreation", "snapshotCreation.podTemplate", pavv1.WorkflowSnapshotCreation},
	{"snapshotDeletion", "snapshotDeletion.podTemplate", pavv1.WorkflowSnapshotDeletion},
	{"volumeStaging", "volumeStaging.podTemplate", pavv1.WorkflowStaging},
	{template.NodeExpansion, template.NodeExpansion, pavv1.WorkflowNodeExpansion},
	{"volumeUnstaging", "volumeUnstaging.podTemplate", pavv1.WorkflowUnstaging},
	{"bucketValidation", "bucketValidation.podTemplate", pavv1.WorkflowBucketValidation},
	{"bucketCreation", "bucketCreation.podTemplate", pavv1.WorkflowBucketCreation},
	{"bucketUpdate", "bucketUpdate.podTemplate", pavv1.WorkflowBucketUpdate},
	{"bucketDeletion", "bucketDeletion.podTemplate", pavv1.WorkflowBucketDeletion},
	{"bucketAccessGrant", "bucketAccessGrant.podTemplate", pavv1.WorkflowGrant},
	{"bucketAccessRevoke", "bucketAccessRevoke.podTemplate", pavv1.WorkflowRevocation},
}

// Pods returns the pod templates of a definition that have no Jinja in them.
func Pods(object map[string]any) []StaticPod {
	var pods []StaticPod
	spec, _ := object["spec"].(map[string]any)
	for _, s := range sections {
		part, field, _ := strings.Cut(s.field, ".")
		content, _ := spec[part].(map[string]any)
		pod, ok := content[field].(map[string]any)
		if ok && isStatic(pod, maxDepth) {
			pods = append(pods, StaticPod{Field: "spec." + s.field, Workflow: s.workflow, Template: evaluated(pod).(map[string]any)})
		}
	}
	return pods
}

// maxDepth is the maximum nesting of a pod template whose strings are checked: a pod's nesting is less than half of it.
const maxDepth = 50

func isStatic(value any, depth int) bool {
	if depth == 0 {
		return false
	}
	switch v := value.(type) {
	case string:
		return !template.HasTemplate(v)
	case []any:
		for _, item := range v {
			if !isStatic(item, depth-1) {
				return false
			}
		}
	case map[string]any:
		for _, item := range v {
			if !isStatic(item, depth-1) {
				return false
			}
		}
	}
	return true
}

// evaluated returns a copy of plain data with its strings as evaluation returns them, except for templates: Jinja
// turns all line breaks into line feeds, and removes one at the end.
func evaluated(value any) any {
	switch v := value.(type) {
	case string:
		if template.HasTemplate(v) {
			return v
		}
		v = strings.ReplaceAll(strings.ReplaceAll(v, "\r\n", "\n"), "\r", "\n")
		return strings.TrimSuffix(v, "\n")
	case []any:
		items := make([]any, len(v))
		for i, item := range v {
			items[i] = evaluated(item)
		}
		return items
	case map[string]any:
		entries := make(map[string]any, len(v))
		for key, entry := range v {
			entries[key] = evaluated(entry)
		}
		return entries
	default:
		return value
	}
}
