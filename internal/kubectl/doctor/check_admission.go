package doctor

import (
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/kubectl/agent"
	"github.com/albertofaria/pav/internal/kubectl/status"
)

// webhookNames are the webhooks of the controller agent.
var webhookNames = []string{"provisioners." + pavv1.Group, pavv1.PodsWebhook, pavv1.ControllerPodsWebhook}

// policyNames are the ValidatingAdmissionPolicies of an installation. Their bindings have the same names.
var policyNames = []string{
	"pav-stages-of-own-node", "pav-volume-labels", "pav-admitted-stages", "pav-pods-of-own-node", "pav-controller-pods", "pav-keys-on-pods",
	"pav-controller-claims", "pav-controller-claim-statuses", "pav-volumes-to-be-deleted", "pav-controller-provisioners", "pav-controller-stages",
	"pav-controller-persistent-volumes", "pav-controller-drivers", "pav-controller-budgets", "pav-controller-webhooks",
	"pav-controller-snapshot-contents", "pav-snapshots-to-be-deleted",
	"pav-open-namespaces", "pav-access-to-workflow-pods", "pav-inline-volumes",
}

// nodesPolicy is there only if the controller agent removes taints of nodes.
const nodesPolicy = "pav-controller-nodes"

// bucketPolicies are there with agent.BucketRights.
var bucketPolicies = []string{"pav-credentials", "pav-controller-config-maps", "pav-controller-bucket-claims", "pav-controller-buckets"}

// checkWebhooks checks whether the API server can call the webhooks.
func checkWebhooks(f *Facts) (rows []Row, well string) {
	if rows = f.unknown(getWebhooks); rows != nil {
		return rows, ""
	}
	if f.Webhooks == nil {
		message := fmt.Sprintf("ValidatingWebhookConfiguration %s does not exist: definitions are not checked when they are written", agent.Webhooks)
		return []Row{problem(message, reinstall())}, ""
	}
	var missing, bare []string
	services := map[types.NamespacedName]bool{}
	for _, name := range webhookNames {
		at := slices.IndexFunc(f.Webhooks.Webhooks, func(w admissionv1.ValidatingWebhook) bool { return w.Name == name })
		if at < 0 {
			missing = append(missing, name)
			continue
		}
		config := &f.Webhooks.Webhooks[at].ClientConfig
		if len(config.CABundle) == 0 {
			bare = append(bare, name)
		}
		if config.Service != nil {
			services[types.NamespacedName{Namespace: config.Service.Namespace, Name: config.Service.Name}] = true
		}
	}
	if len(missing) > 0 {
		rows = append(rows, problem(fmt.Sprintf("ValidatingWebhookConfiguration %s does not have %s", agent.Webhooks, listed(missing)), reinstall()))
	}
	if len(bare) > 0 {
		rows = append(rows, problem("the API server cannot trust the controller agent, which has not written the field caBundle of "+listed(bare),
			status.Step{Text: "see why", Command: f.controllerLogs()}))
	}
	for service := range services {
		rows = append(rows, checkService(f, service)...)
	}
	return rows, fmt.Sprintf("all %d have a CA bundle, and a Service with ready endpoints", len(webhookNames))
}

// checkService checks whether a webhook's Service leads to a controller agent.
func checkService(f *Facts, service types.NamespacedName) []Row {
	if unknown := f.unknown(getService, listEndpoints); unknown != nil {
		return unknown
	}
	if !f.Services[service] {
		return []Row{problem(fmt.Sprintf("Service %s of the webhooks does not exist", service), reinstall())}
	}
	for i := range f.Endpoints {
		slice := &f.Endpoints[i]
		of := types.NamespacedName{Namespace: slice.Namespace, Name: slice.Labels[discoveryv1.LabelServiceName]}
		if of == service && slices.ContainsFunc(slice.Endpoints, isServing) {
			return nil
		}
	}
	return []Row{problem(fmt.Sprintf("Service %s of the webhooks has no ready endpoints: definitions and some pods are refused", service),
		status.Step{Text: "see the controller agent", Command: f.controllerPods()})}
}

// isServing reports whether an endpoint is ready. "A nil value should be interpreted as true."
func isServing(e discoveryv1.Endpoint) bool { return e.Conditions.Ready == nil || *e.Conditions.Ready }

// checkPolicies checks whether the admission policies are there that keep agents and tenants within their rights.
func checkPolicies(f *Facts) (rows []Row, well string) {
	if rows = f.unknown(listPolicies, listBindings, getBucketRights); rows != nil {
		return rows, ""
	}
	wanted := slices.Clone(policyNames)
	if f.Deployment != nil && hasArgument(f.Deployment, "--startup-taint") {
		wanted = append(wanted, nodesPolicy)
	}
	if f.BucketRights {
		wanted = append(wanted, bucketPolicies...)
	}
	for _, one := range []struct {
		kind  string
		found map[string]bool
	}{{"ValidatingAdmissionPolicy", f.Policies}, {"ValidatingAdmissionPolicyBinding", f.Bindings}} {
		var missing []string
		for _, name := range wanted {
			if !one.found[name] {
				missing = append(missing, name)
			}
		}
		if len(missing) > 0 {
			next := reinstall()
			if slices.ContainsFunc(missing, func(name string) bool { return slices.Contains(bucketPolicies, name) }) {
				next.Command += " -f deployment-buckets.yaml"
			}
			rows = append(rows, problem(fmt.Sprintf("%s: %s: what the agents and tenants may do is not limited as it should be",
				plural(len(missing), one.kind+" does not exist", "objects of kind "+one.kind+" do not exist"), listed(missing)), next))
		}
	}
	return rows, fmt.Sprintf("all %d are there, with their bindings", len(wanted))
}
