package doctor

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/kubectl/status"
	"github.com/albertofaria/pav/internal/workflow"
)

// enforceLabel on a namespace is the Pod Security Standard that pods there must meet.
const enforceLabel = "pod-security.kubernetes.io/enforce"

const privileged = "privileged"

// checkNamespaces checks whether workflow pods can run in the namespaces that are open to them.
func checkNamespaces(f *Facts) (rows []Row, well string) {
	if rows = f.unknown(listNamespaces); rows != nil {
		return rows, ""
	}
	if !slices.ContainsFunc(f.Namespaces, func(n corev1.Namespace) bool { return n.Name == workflow.DefaultNamespace }) {
		rows = append(rows, problem(fmt.Sprintf("namespace %s does not exist, so no workflow pod can run", workflow.DefaultNamespace), reinstall()))
	}
	open := 0
	for i := range f.Namespaces {
		rows = append(rows, checkNamespace(f, &f.Namespaces[i])...)
		if f.Namespaces[i].Labels[pavv1.AllowPodsLabel] == "true" {
			open++
		}
	}
	rows = append(rows, f.unknown(listQuotas)...)
	well = fmt.Sprintf("%s lets workflow pods mount, and has room for more of them", workflow.DefaultNamespace)
	if open > 0 {
		well = fmt.Sprintf("%s and %s open to workflow pods let them mount, and have room for more", workflow.DefaultNamespace, counted(open, "namespace"))
	}
	return rows, well
}

// checkNamespace returns what keeps workflow pods from a namespace.
func checkNamespace(f *Facts, namespace *corev1.Namespace) (rows []Row) {
	name := namespace.Name
	if namespace.DeletionTimestamp != nil {
		return []Row{problem(fmt.Sprintf("namespace %s is being deleted, so no workflow pod can be created there", name),
			status.Step{Text: "see what it waits for", Command: "kubectl describe namespace " + name})}
	}
	// An administrator who opens a namespace may leave the level to the cluster's default, which allows all in most clusters.
	if level, set := namespace.Labels[enforceLabel]; level != privileged && (set || name == workflow.DefaultNamespace) {
		what := "has no label " + enforceLabel
		if set {
			what = fmt.Sprintf("enforces the Pod Security Standard %q", level)
		}
		rows = append(rows, problem(fmt.Sprintf("namespace %s %s, so pods that mount may be refused", name, what),
			step("allow them", "kubectl label --overwrite namespace %s %s=%s", name, enforceLabel, privileged)))
	}
	for i := range f.Quotas {
		if quota := &f.Quotas[i]; quota.Namespace == name {
			rows = append(rows, checkQuota(quota)...)
		}
	}
	return rows
}

// checkQuota returns which limit on the number of pods is reached.
func checkQuota(quota *corev1.ResourceQuota) []Row {
	for _, resource := range []corev1.ResourceName{corev1.ResourcePods, "count/pods"} {
		hard, limited := quota.Status.Hard[resource]
		if used := quota.Status.Used[resource]; limited && used.Cmp(hard) >= 0 {
			message := fmt.Sprintf("ResourceQuota %s/%s has no room: %s of %s pods are used", quota.Namespace, quota.Name, used.String(), hard.String())
			return []Row{problem(message,
				step("raise the limit, or remove pods", "kubectl -n %s edit resourcequota %s", quota.Namespace, quota.Name))}
		}
	}
	return nil
}
