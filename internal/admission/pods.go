package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/definition"
	"github.com/albertofaria/pav/internal/workflow"
)

// tryPods makes a dry run of every pod of a definition that has no template in it, as far as it is known to be a pod.
// Findings are the known mistakes, which are not reported again.
func (h *Handler) tryPods(ctx context.Context, object map[string]any, findings []definition.Finding) []definition.Finding {
	pods := definition.Pods(object)
	if len(pods) == 0 {
		return nil
	}
	wait, cancel := context.WithTimeout(ctx, dryRunWait)
	defer cancel()
	if !enter(wait, h.dryRuns) {
		return []definition.Finding{{Severity: definition.Warning, Field: "spec", Message: "its pods were not tried at the API server: the webhook is busy"}}
	}
	defer func() { <-h.dryRuns }()
	found := make([][]definition.Finding, len(pods))
	var running sync.WaitGroup
	for i, pod := range pods {
		running.Go(func() { found[i] = unsaid(findings, h.tryPod(ctx, pod)) })
	}
	running.Wait()
	var all []definition.Finding
	for _, f := range found {
		all = append(all, f...)
	}
	return all
}

func (h *Handler) tryPod(ctx context.Context, static definition.StaticPod) []definition.Finding {
	known, ok := knownFields(static.Template)
	if !ok {
		return nil // a field has the wrong type, which is already reported
	}
	if spec, ok := known["spec"].(map[string]any); ok && spec["restartPolicy"] == "Always" && static.Workflow != pavv1.WorkflowStaging {
		delete(spec, "restartPolicy") // which is already reported, and is all that Build would report
	}
	policy := staticPodPolicy(static)
	policy.Defaults = h.PodDefaults
	pod, err := workflow.Build(static.Field, known, policy)
	if err != nil {
		return []definition.Finding{{Severity: definition.Error, Field: fieldOf(static.Field, err), Message: strings.TrimPrefix(err.Error(), fieldOf(static.Field, err)+": ")}}
	}
	// This agent may create only pods of its own workflows; they differ only in the label.
	pod.Labels[pavv1.WorkflowLabel] = pavv1.WorkflowCreation
	var found []definition.Finding
	if warning := h.checkNamespace(ctx, static, pod); warning != nil {
		found = append(found, *warning)
	}
	err = h.Client.Create(ctx, pod)
	return append(found, findingsOf(static.Field, len(found) == 0, err)...)
}

// knownFields returns what of a pod template Kubernetes knows, or false if that is no pod template.
// Fields that it does not know are told of elsewhere, and must not hide what else is wrong.
func knownFields(template map[string]any) (map[string]any, bool) {
	raw, err := json.Marshal(template)
	if err != nil {
		return nil, false
	}
	typed := &corev1.PodTemplateSpec{} // decoded with the case of its keys, as the API server does
	if err := json.Unmarshal(raw, typed); err != nil {
		return nil, false
	}
	known, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	return known, err == nil
}

// tried is the node of bound pods in a dry run. It need not exist.
const tried = "node"

// staticPodPolicy returns the PodPolicy that the agents use for such a pod.
func staticPodPolicy(static definition.StaticPod) workflow.PodPolicy {
	f := workflow.PodPolicy{
		Workflow: static.Workflow,
		// No pod of PaV has this name: their hashes are of other texts.
		Name:  workflow.Name(static.Workflow, "dry run", static.Field),
		Owner: metav1.OwnerReference{APIVersion: pavv1.GroupVersion.String(), Kind: "PavVolume", Name: "dry-run", UID: "dry-run", Controller: new(true)},
	}
	if workflow.OnNode(static.Workflow) {
		f.Node = tried
		if spec, ok := static.Template["spec"].(map[string]any); ok {
			if name, ok := spec["nodeName"].(string); ok && name != "" {
				f.Node = name // on that node alone the pod would run
			}
		}
	}
	return f
}

// checkNamespace returns a warning if the pod's namespace is not open to workflow pods. It may be opened at any time.
// The pod is then tried in PaV's own namespace, without its service account.
func (h *Handler) checkNamespace(ctx context.Context, static definition.StaticPod, pod *corev1.Pod) *definition.Finding {
	err := (&workflow.Runner{Client: h.Client}).CheckNamespace(ctx, pod.Namespace)
	if !errors.Is(err, workflow.ErrRefused) {
		return nil
	}
	name := pod.Namespace
	pod.Namespace, pod.Spec.ServiceAccountName, pod.Spec.DeprecatedServiceAccount = workflow.DefaultNamespace, "", ""
	return &definition.Finding{
		Severity: definition.Warning, Field: static.Field + ".metadata.namespace",
		Message: fmt.Sprintf("its pods wait until this is run: kubectl label namespace %s %s=true", name, pavv1.AllowPodsLabel),
	}
}

// findingsOf returns the findings in an API server's answer to a dry run: errors of its validation of the pod are
// mistakes; all others are only warnings, as they may not apply later. The same holds for a pod that was not tried in
// its own namespace, and for denials by policies: they may allow the agent that creates the pod, or its real labels.
func findingsOf(field string, own bool, err error) []definition.Finding {
	if err == nil {
		return nil
	}
	causes := causesOf(err)
	if len(causes) == 0 {
		return []definition.Finding{{Severity: definition.Warning, Field: field, Message: fmt.Sprintf("a dry run of the pod fails at present: %v", err)}}
	}
	severity := definition.Warning
	if own {
		severity = definition.Error
	}
	var found []definition.Finding
	for _, cause := range causes {
		found = append(found, definition.Finding{Severity: severity, Field: field + "." + cause.Field, Message: cause.Message})
	}
	return found
}

// causesOf returns the causes of an error if it is one of validation: each is about a field. A policy can give
// its denials the reason Invalid, too.
func causesOf(err error) []metav1.StatusCause {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsInvalid(err) || status.Status().Details == nil {
		return nil
	}
	causes := status.Status().Details.Causes
	for _, cause := range causes {
		if cause.Field == "" || !slices.Contains(ofValidation, field.ErrorType(cause.Type)) {
			return nil
		}
	}
	return causes
}

// ofValidation are the types of the causes that Kubernetes' validation gives.
var ofValidation = []field.ErrorType{
	field.ErrorTypeNotFound, field.ErrorTypeRequired, field.ErrorTypeDuplicate, field.ErrorTypeInvalid, field.ErrorTypeNotSupported,
	field.ErrorTypeForbidden, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid,
}

// fieldOf returns the field at the beginning of an error of workflow.Build.
func fieldOf(field string, err error) string {
	if at, _, ok := strings.Cut(err.Error(), ": "); ok && strings.HasPrefix(at, field) {
		return at
	}
	return field
}

// unsaid returns the new findings: the first one for each field is enough. If a field is missing where an unknown one
// is, it was only misspelled.
func unsaid(said, found []definition.Finding) []definition.Finding {
	var kept []definition.Finding
	for _, f := range found {
		if !isSaid(said, f) {
			kept = append(kept, f)
		}
	}
	return kept
}

func isSaid(said []definition.Finding, f definition.Finding) bool {
	if f.Severity != definition.Error {
		return false
	}
	for _, s := range said {
		if s.Severity != definition.Error {
			continue
		}
		if s.Field == f.Field || strings.HasPrefix(f.Field, s.Field+".") || strings.HasPrefix(f.Field, s.Field+"[") {
			return true
		}
		if s.Key && parent(s.Field) == parent(f.Field) && strings.HasPrefix(f.Message, "Required value") {
			return true
		}
	}
	return false
}

// parent returns the path of the object that has a field. A key in brackets may itself have dots.
func parent(field string) string {
	if end := strings.LastIndexByte(field, '['); end >= 0 && strings.HasSuffix(field, "]") {
		return field[:end]
	}
	return field[:max(0, strings.LastIndexByte(field, '.'))]
}
