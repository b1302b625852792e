package integration

import (
	"context"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

const (
	relabel   = `{"metadata": {"labels": {"a": "b"}}}`
	adopted   = `{"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}]}}`
	finalized = `{"metadata": {"finalizers": ["example.org/mine"]}}`
)

// These requests are made with a stolen token of the controller agent.

func TestControllerToken_ChangesTheAuthorityOfItsWebhooksOnly(t *testing.T) {
	c := start(t)
	const only = "caBundle of its webhooks only"
	configuration := mustCreate(t, c, &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "pav-provisioners"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "provisioners.pav.albertofaria.github.io", AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: namespace, Name: "webhook"}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{"CREATE"},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{"example.org"}, APIVersions: []string{"v1"}, Resources: []string{"nothing"}},
			}},
			SideEffects: new(admissionregistrationv1.SideEffectClassNone),
		}},
	})
	t.Cleanup(func() { mustDeleteLasting(t, c, configuration) })
	another := configuration.DeepCopy()
	another.Name = "another"
	const secrets = `[{"op": "replace", "path": "/webhooks/0/rules/0", "value": {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["secrets"]}}]`
	const added = `[{"op": "add", "path": "/webhooks/-", "value": {"name": "a.example.org", "admissionReviewVersions": ["v1"], "sideEffects": "None",
		"clientConfig": {"url": "https://example.org/"}}}]`
	const elsewhere = `[{"op": "replace", "path": "/webhooks/0/clientConfig", "value": {"url": "https://example.org/"}}]`
	set := func(field, value string) func(context.Context, client.Client) error {
		return patching(configuration, `[{"op": "add", "path": "/webhooks/0/`+field+`", "value": `+value+`}]`)
	}
	try(t, stolenController(t, c), []attempt{
		{"it changes the authority", set("clientConfig/caBundle", `"LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCi0tLS0tRU5EIENFUlRJRklDQVRFLS0tLS0K"`), ""},
		{"it looks at Secrets", patching(configuration, secrets), only},
		{"it adds a webhook", patching(configuration, added), only},
		{"it takes the webhook away", patching(configuration, `[{"op": "remove", "path": "/webhooks/0"}]`), only},
		{"it calls another server", patching(configuration, elsewhere), only},
		{"it calls another path", set("clientConfig/service/path", `"/other"`), only},
		{"it fails open", set("failurePolicy", `"Ignore"`), only},
		{"it adds a condition", set("matchConditions", `[{"name": "a", "expression": "false"}]`), only},
		{"it leaves namespaces out", set("namespaceSelector", `{"matchLabels": {"a": "b"}}`), only},
		{"it leaves objects out", set("objectSelector", `{"matchLabels": {"a": "b"}}`), only},
		{"it waits for less", set("timeoutSeconds", "1"), only},
		{"it adds a label", patching(configuration, relabel), only},
		{"it holds the configuration", patching(configuration, finalized), only},
		{"it gives it an owner", patching(configuration, adopted), only},
		{"it changes another configuration", patching(another, relabel), notInTheRole},
		{"it makes another configuration", creating(another), notInTheRole},
		{"it deletes its own", deleting(configuration), notInTheRole},
	})
}

func TestControllerToken_ChangesFinalizersOfDefinitionsOnly(t *testing.T) {
	c := start(t)
	const only = "its own finalizer of a PavProvisioner only"
	provisioner := mustCreate(t, c, provisionerOf("policed"))
	t.Cleanup(func() { mustDeleteLasting(t, c, provisioner) })
	others := provisionerOf("policed-held")
	others.Finalizers = []string{"example.org/other"}
	mustCreate(t, c, others)
	t.Cleanup(func() { mustDeleteLasting(t, c, others) })
	defer mustPatch(t, c, others, func(p *pavv1.PavProvisioner) { p.Finalizers = nil })
	try(t, stolenController(t, c), []attempt{
		{"it adds its finalizer", patching(provisioner, `{"metadata": {"finalizers": ["`+pavv1.ProvisionerFinalizer+`"]}}`), ""},
		{"it adds its finalizer to another's", patching(others, `[{"op": "add", "path": "/metadata/finalizers/-", "value": "`+pavv1.ProvisionerFinalizer+`"}]`), ""},
		{"it takes another's finalizer", patching(others, `{"metadata": {"finalizers": null}}`), only},
		{"it adds another finalizer", patching(provisioner, finalized), only},
		{"it changes a staging pod", patching(provisioner, `{"spec": {"volumeStaging": {"podTemplate": {"spec": {"hostPID": true}}}}}`), only},
		{"it adds a label", patching(provisioner, relabel), only},
		{"it adds an annotation", patching(provisioner, `{"metadata": {"annotations": {"a": "b"}}}`), only},
		{"it gives it an owner", patching(provisioner, adopted), only},
		{"it makes a definition", creating(provisionerOf("forged")), notInTheRole},
		{"it deletes a definition", deleting(provisioner), notInTheRole},
	})
}

func TestControllerToken_WritesPersistentVolumesForClaimsOnly(t *testing.T) {
	c := start(t)
	const (
		ofPav   = "of PavProvisioners only"
		claims  = "for claims only, and without Secrets"
		changes = "the reclaim policy, PaV's labels and the provisioner's finalizer of a PersistentVolume, raise its capacity"
		storage = `"` + pavv1.StorageLabel + `": "s", "` + pavv1.ProvisionerLabel + `": "policed"`
	)
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pvc-0123", Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": "policed"}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")},
			AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			ClaimRef:                      &corev1.ObjectReference{Namespace: "default", Name: "nobody", UID: "0123"},
			PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "policed", VolumeHandle: "h"}},
		},
	}
	with := func(change func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
		v := volume.DeepCopy()
		change(v)
		return v
	}
	const path = "/tmp/no-such-file"
	node := with(func(v *corev1.PersistentVolume) {
		v.Name, v.Spec.ClaimRef = "policed-host-path", nil
		v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path}}
	})
	existing := mustCreate(t, c, with(func(v *corev1.PersistentVolume) {
		v.Name, v.Spec.ClaimRef, v.Labels = "pvc-4567", nil, map[string]string{"own": "o"}
	}))
	t.Cleanup(func() { mustDeleteLasting(t, c, existing) })
	mustCreate(t, c, node)
	t.Cleanup(func() { mustDeleteLasting(t, c, node) })
	hostPath := with(func(v *corev1.PersistentVolume) { v.Spec.PersistentVolumeSource = node.Spec.PersistentVolumeSource })
	stolen := stolenController(t, c)
	try(t, stolen, []attempt{
		{"it creates one for a claim", creating(volume), ""},
		{"it creates one of a node's files", creating(hostPath), ofPav},
		{"it creates one of PaV's own driver", creating(with(func(v *corev1.PersistentVolume) { v.Spec.CSI.Driver = pavv1.Driver })), ofPav},
		{"it creates one for nobody", creating(with(func(v *corev1.PersistentVolume) { v.Spec.ClaimRef = nil })), claims},
		{"it creates one of a name that is not its claim's", creating(with(func(v *corev1.PersistentVolume) { v.Name = "pvc-other" })), claims},
		{"it creates one that another driver made", creating(with(func(v *corev1.PersistentVolume) { v.Spec.CSI.Driver = "other" })), claims},
		{"it creates one with a Secret", creating(with(func(v *corev1.PersistentVolume) {
			v.Spec.CSI.NodePublishSecretRef = &corev1.SecretReference{Namespace: "kube-system", Name: "s"}
		})), claims},
		{"it changes the reclaim policy", patching(existing, `{"spec": {"persistentVolumeReclaimPolicy": "Delete"}}`), ""},
		{"it adds its finalizer", patching(existing, `[{"op": "add", "path": "/metadata/finalizers/-", "value": "`+pavv1.PVFinalizer+`"}]`), ""},
		{"it takes Kubernetes' finalizer", patching(existing, `{"metadata": {"finalizers": null}}`), changes},
		{"it gives it to a claim", patching(existing, `{"spec": {"claimRef": {"namespace": "default", "name": "mine"}}}`), changes},
		{"it raises the capacity", patching(existing, `{"spec": {"capacity": {"storage": "2Mi"}}}`), ""},
		{"it lowers the capacity", patching(existing, `{"spec": {"capacity": {"storage": "1Ki"}}}`), changes},
		{"it changes mount options", patching(existing, `{"spec": {"mountOptions": ["dev"]}}`), changes},
		{"it changes the class", patching(existing, `{"spec": {"storageClassName": "other"}}`), changes},
		{"it adds a label", patching(existing, relabel), changes},
		{"it labels the storage", patching(existing, `{"metadata": {"labels": {`+storage+`}}}`), ""},
		{"it adds another label beside", patching(existing, `{"metadata": {"labels": {`+storage+`, "b": "c"}}}`), changes},
		{"it changes another label", patching(existing, `{"metadata": {"labels": {"own": "other"}}}`), changes},
		{"it removes all labels", patching(existing, `{"metadata": {"labels": null}}`), changes},
		{"it deletes it", deleting(existing), ""},
		{"it changes the policy of one of a node's files", patching(node, `{"spec": {"persistentVolumeReclaimPolicy": "Delete"}}`), ofPav},
		{"it deletes one of a node's files", deleting(node), ofPav},
	})
	if hasAttributesClasses(c) {
		try(t, stolen, []attempt{{"it names a class of attributes", patching(existing, `{"spec": {"volumeAttributesClassName": "a"}}`), ""}})
	}
}

func TestControllerToken_WritesTheSizesOfBoundClaimsOnly(t *testing.T) {
	c := start(t)
	const sizes, less = "the sizes and attributes in the status of a claim that is bound", "less capacity than it had"
	pv := mustCreate(t, c, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "sized"},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName: "nobodys", Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "other", VolumeHandle: "sized"}},
		},
	})
	// Else Kubernetes may see the claim first, and look again only when it looks at all claims.
	exists(t, c, pv, "is available", func(pv *corev1.PersistentVolume) bool { return pv.Status.Phase == corev1.VolumeAvailable })
	bound := claimOf("nobodys", "sized")
	bound.Spec.VolumeName = pv.Name
	bound = mustCreate(t, c, bound)
	pending := mustCreate(t, c, claimOf("nobodys", "unsized"))
	t.Cleanup(func() {
		for _, object := range []client.Object{bound, pending, pv} {
			mustDeleteLasting(t, c, object)
		}
	})
	awaitBound(t, c, bound)
	mustPatchStatus(t, c, bound, func(claim *corev1.PersistentVolumeClaim) {
		claim.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: "example.org/a", Status: corev1.ConditionTrue}}
		claim.Status.CurrentVolumeAttributesClassName = new("before")
	})
	const resizing = `{"type": "Resizing", "status": "True"}, {"type": "ControllerResizeError", "status": "True", "message": "m"}, {"type": "FileSystemResizePending", "status": "True"}`
	const other = `{"type": "example.org/a", "status": "True", "lastProbeTime": null, "lastTransitionTime": null}`
	attributes := sizes
	if !hasAttributesClasses(c) {
		attributes = "" // the API server drops what is said of them
	}
	smaller, failure := "less available than a claim has", "only that its volume grows"
	if !hasAllocations(c) {
		smaller, failure = "", "" // it drops what is said of allocations, too
	}
	try(t, stolenController(t, c), []attempt{
		{"it says that the volume grows", patching(bound, `{"status": {"allocatedResources": {"storage": "2Gi"}, "allocatedResourceStatuses": {"storage": "ControllerResizeInProgress"}}}`, "status"), ""},
		{"it says that a node is to act", patching(bound, `{"status": {"allocatedResources": {"storage": "2Gi"}, "allocatedResourceStatuses": {"storage": "NodeResizePending"}}}`, "status"), ""},
		{"it says that a node is to make it smaller", patching(bound, `{"status": {"allocatedResources": {"storage": "1Ki"}, "allocatedResourceStatuses": {"storage": "NodeResizePending"}}}`, "status"), smaller},
		{"it records a failure on a node", patching(bound, `{"status": {"allocatedResourceStatuses": {"storage": "NodeResizeInfeasible"}}}`, "status"), failure},
		{"it says how it grows", patching(bound, `{"status": {"conditions": [`+other+`, `+resizing+`]}}`, "status"), ""},
		{"it says that it has grown", patching(bound, `{"status": {"capacity": {"storage": "2Gi"}}}`, "status"), ""},
		{"it says that it has shrunk", patching(bound, `{"status": {"capacity": {"storage": "1Mi"}}}`, "status"), less},
		{"it removes the capacity", patching(bound, `{"status": {"capacity": null}}`, "status"), less},
		{"it says that the attributes change", patching(bound, `{"status": {"modifyVolumeStatus": {"targetVolumeAttributesClassName": "a", "status": "InProgress"}}}`, "status"), ""},
		{"it says something else of that", patching(bound, `{"status": {"modifyVolumeStatus": {"targetVolumeAttributesClassName": "a", "status": "Lost"}}}`, "status"), attributes},
		{"it says which attributes there are", patching(bound, `{"status": {"currentVolumeAttributesClassName": "a", "modifyVolumeStatus": null}}`, "status"), ""},
		{"it says that there are none", patching(bound, `{"status": {"currentVolumeAttributesClassName": null}}`, "status"), attributes},
		{"it says what fails of that", patching(bound, `{"status": {"conditions": [`+other+`, {"type": "ModifyVolumeError", "status": "True", "message": "m"}, {"type": "ModifyingVolume", "status": "True"}]}}`, "status"), ""},
		{"it removes another condition", patching(bound, `{"status": {"conditions": null}}`, "status"), sizes},
		{"it adds another condition", patching(bound, `{"status": {"conditions": [`+other+`, {"type": "Ready", "status": "True"}]}}`, "status"), sizes},
		{"it changes the phase", patching(bound, `{"status": {"phase": "Lost"}}`, "status"), sizes},
		{"it binds a claim", patching(pending, `{"status": {"phase": "Bound"}}`, "status"), sizes},
		{"it changes a claim that is not bound", patching(pending, `{"status": {"capacity": {"storage": "2Gi"}}}`, "status"), sizes},
		{"it changes access modes", patching(bound, `{"status": {"accessModes": ["ReadWriteMany"]}}`, "status"), sizes},
		{"it labels the claim", patching(bound, relabel, "status"), sizes},
	})
}

func TestControllerToken_WritesDriversOfDefinitionsOnly(t *testing.T) {
	c := start(t)
	const only, tokens = "CSIDrivers of PavProvisioners only", "tokens of pods given to a driver"
	own := &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{Name: "policed", Labels: map[string]string{pavv1.ProvisionerLabel: "policed"}, OwnerReferences: []metav1.OwnerReference{{
			APIVersion: pavv1.GroupVersion.String(), Kind: "PavProvisioner", Name: "policed", UID: "u", Controller: new(true),
		}}},
		Spec: storagev1.CSIDriverSpec{AttachRequired: new(false)},
	}
	mustCreate(t, c, own)
	t.Cleanup(func() { mustDeleteLasting(t, c, own) })
	other := mustCreate(t, c, &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "policed-other"}})
	t.Cleanup(func() { mustDeleteLasting(t, c, other) })
	named := func(change func(*storagev1.CSIDriver)) *storagev1.CSIDriver {
		d := own.DeepCopy()
		d.Name, d.Labels[pavv1.ProvisionerLabel], d.OwnerReferences[0].Name = "policed-new", "policed-new", "policed-new"
		change(d)
		return d
	}
	const asks = `{"spec": {"tokenRequests": [{"audience": "a"}]}}`
	try(t, stolenController(t, c), []attempt{
		{"it creates one", creating(named(func(*storagev1.CSIDriver) {})), ""},
		{"it creates one without a label", creating(named(func(d *storagev1.CSIDriver) { d.Labels = nil })), only},
		{"it creates one without an owner", creating(named(func(d *storagev1.CSIDriver) { d.OwnerReferences = nil })), only},
		{"it creates one of another definition", creating(named(func(d *storagev1.CSIDriver) { d.OwnerReferences[0].Name = "other" })), only},
		{"it creates one that gets tokens", creating(named(func(d *storagev1.CSIDriver) { d.Spec.TokenRequests = []storagev1.TokenRequest{{Audience: "a"}} })), tokens},
		{"it changes its own", patching(own, `{"spec": {"requiresRepublish": false}}`), ""},
		{"it has tokens given to its own", patching(own, asks), tokens},
		{"it deletes its own", deleting(own), ""},
		{"it changes another", patching(other, asks), only},
		{"it takes another for its own", patching(other, `{"metadata": {"labels": {"`+pavv1.ProvisionerLabel+`": "policed-other"}, "ownerReferences":
			[{"apiVersion": "`+pavv1.GroupVersion.String()+`", "kind": "PavProvisioner", "name": "policed-other", "uid": "u", "controller": true}]}}`), only},
		{"it deletes another", deleting(other), only},
		{"it deletes that of /pav", deleting(csiDriver(pavv1.Driver)), only},
	})
}

func TestControllerToken_ProtectsStagingPodsOnly(t *testing.T) {
	c := start(t)
	const named, staging, closed = "of the name pav-staging only", "may protect staging pods only", "not open to workflow pods"
	openNamespace(t, c, "policed-budgets", "true")
	budget := func(in string, change func(*policyv1.PodDisruptionBudget)) *policyv1.PodDisruptionBudget {
		b := budgetIn(in)
		b.Spec = policyv1.PodDisruptionBudgetSpec{
			MinAvailable: new(intstr.FromInt32(1)),
			Selector:     &metav1.LabelSelector{MatchLabels: map[string]string{pavv1.WorkflowLabel: pavv1.WorkflowStaging}},
		}
		change(b)
		return b
	}
	same := func(*policyv1.PodDisruptionBudget) {}
	excepting := func(key string, operator metav1.LabelSelectorOperator) func(*policyv1.PodDisruptionBudget) {
		return func(b *policyv1.PodDisruptionBudget) {
			b.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: key, Operator: operator}}
		}
	}
	everything := func(b *policyv1.PodDisruptionBudget) { b.Spec.Selector = &metav1.LabelSelector{} }
	try(t, stolenController(t, c), []attempt{
		{"it protects staging pods", creating(budget("policed-budgets", same)), ""},
		{"it leaves out those that may be evicted", creating(budget("policed-budgets", excepting(pavv1.EvictableLabel, metav1.LabelSelectorOpDoesNotExist))), ""},
		{"it leaves out others", creating(budget("policed-budgets", excepting("a", metav1.LabelSelectorOpDoesNotExist))), staging},
		{"it leaves out those that may not be evicted", creating(budget("policed-budgets", excepting(pavv1.EvictableLabel, metav1.LabelSelectorOpExists))), staging},
		{"it protects all pods", creating(budget("policed-budgets", everything)), staging},
		{"it protects other pods", creating(budget("policed-budgets", func(b *policyv1.PodDisruptionBudget) { b.Spec.Selector.MatchLabels = map[string]string{"a": "b"} })), staging},
		{"it makes a budget of another name", creating(budget("policed-budgets", func(b *policyv1.PodDisruptionBudget) { b.Name = "other" })), named},
		{"it makes one where no workflow pods run", creating(budget("default", same)), closed},
		{"it makes its own protect all pods", patching(budgetIn("pav-pods"), `{"spec": {"selector": {"matchLabels": null}}}`), staging},
	})
}

func stageSpec(node string) pavv1.PavStageSpec {
	return pavv1.PavStageSpec{
		Provisioner: "policed", VolumeName: "pv", VolumeHandle: "h", NodeName: node, VolumeMode: corev1.PersistentVolumeFilesystem,
		ClaimRef: pavv1.ClaimReference{Namespace: "default", Name: "c", UID: "u"}, Volume: *field(`{"kind": "PersistentVolume"}`), Claim: *field(`{"kind": "PersistentVolumeClaim"}`),
	}
}

func TestControllerToken_DoesNotChangeWhatAStageIsOf(t *testing.T) {
	c := start(t)
	stage := mustCreate(t, c, &pavv1.PavStage{
		ObjectMeta: metav1.ObjectMeta{Name: "policed", Labels: map[string]string{pavv1.NodeLabel: "n"}},
		Spec:       stageSpec("node"),
	})
	t.Cleanup(func() { mustDeleteLasting(t, c, stage) })
	const only = "what a PavStage is of"
	try(t, stolenController(t, c), []attempt{
		{"it lets go of it", patching(stage, `{"metadata": {"finalizers": null}}`), ""},
		{"it deletes it", deleting(stage), ""},
		{"it moves it to another node's agent", patching(stage, `{"metadata": {"labels": {"`+pavv1.NodeLabel+`": "other"}}}`), only},
		{"it gives it an owner", patching(stage, adopted), only},
		{"it creates one", creating(stage), notInTheRole},
	})
}
