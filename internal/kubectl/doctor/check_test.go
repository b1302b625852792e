package doctor

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/kubectl/agent"
	"github.com/albertofaria/pav/internal/protocol"
)

// found returns what a report says about problems and unknown things, one line for each row, with its first command.
func found(r *Report) []string {
	lines := []string{}
	for _, row := range r.Rows {
		if row.Result == OK {
			continue
		}
		line := string(row.Result) + " " + row.Check + ": " + row.Message
		if len(row.Next) > 0 {
			line += " > " + row.Next[0].Command
		}
		lines = append(lines, line)
	}
	return lines
}

func TestExamine_WhereAllIsWell_SaysSoForEachCheck(t *testing.T) {
	r := Examine(healthy(t))
	var got []string
	for _, row := range r.Rows {
		got = append(got, string(row.Result)+" "+row.Check+": "+row.Message)
	}
	want := []string{
		"ok definitions: 6 CustomResourceDefinitions are established, and have the fields of version 0.2.0",
		"ok controller agent: 2 replicas are ready in namespace storage; pod controller-agent-a leads",
		"ok versions: the agents and this plugin have version 0.2.0",
		"ok node agents: it is ready on 2 nodes",
		"ok drivers: 2 drivers are registered on 2 nodes",
		"ok webhooks: all 3 have a CA bundle, and a Service with ready endpoints",
		"ok policies: all 20 are there, with their bindings",
		"ok namespaces: pav-pods lets workflow pods mount, and has room for more of them",
		"ok provisioners: 1 PavProvisioner is ready",
		"ok volumes: none of 1 volume and 1 stage fails",
		"ok buckets: they are not enabled, and not needed",
		"ok leftovers: no object of a node, a claim or an owner that is gone; no deletion takes longer than 10m",
	}
	if diff := cmp.Diff(want, got); diff != "" || r.Result != OK || r.Namespace != "storage" || r.Version != "0.2.0" {
		t.Errorf("%s, %s, %s (-want +got):\n%s", r.Result, r.Namespace, r.Version, diff)
	}
}

func TestExamine_FindsWhatIsWrong(t *testing.T) {
	const reapply = " > kubectl apply --server-side --force-conflicts -f deployment.yaml"
	logs := " > kubectl -n storage logs -l app.kubernetes.io/component=controller-agent --prefix --tail=20"
	pods := " > kubectl -n storage get pods -o wide -l app.kubernetes.io/component=controller-agent"
	volumes := "pavvolumes.pav.albertofaria.github.io"
	schema := func(f *Facts) *apiextensionsv1.JSONSchemaProps {
		return f.Definitions[volumes].Spec.Versions[0].Schema.OpenAPIV3Schema
	}
	for name, test := range map[string]struct {
		change func(*Facts)
		want   []string
	}{
		"PaV is not installed": {func(f *Facts) { f.Definitions = nil },
			[]string{"problem definitions: PaV is not installed: there are no CustomResourceDefinitions of it > kubectl create -f deployment.yaml"}},
		"a definition is missing": {func(f *Facts) { delete(f.Definitions, volumes) },
			[]string{"problem definitions: CustomResourceDefinition " + volumes + " does not exist" + reapply}},
		"a definition is not served": {func(f *Facts) {
			f.Definitions[volumes].Status.Conditions[1] = apiextensionsv1.CustomResourceDefinitionCondition{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionFalse, Message: "not all names are accepted"}
		}, []string{"problem definitions: CustomResourceDefinition " + volumes + " is not served: not all names are accepted > kubectl describe crd " + volumes}},
		"a definition is being deleted": {func(f *Facts) { f.Definitions[volumes].DeletionTimestamp = agoPointer(0) },
			[]string{"problem definitions: CustomResourceDefinition " + volumes + " is being deleted, which waits for its objects > kubectl describe crd " + volumes}},
		"a definition has another version": {func(f *Facts) { f.Definitions[volumes].Spec.Versions[0].Name = "v2" },
			[]string{"problem definitions: CustomResourceDefinition " + volumes + " does not serve v1alpha1, the version of this plugin" + reapply}},
		"a definition is older than the plugin": {func(f *Facts) { delete(schema(f).Properties["status"].Properties["failure"].Properties, "reason") },
			[]string{"problem definitions: CustomResourceDefinition " + volumes + " is older than this plugin: it does not have status.failure.reason" + reapply}},
		"a definition is newer than the plugin": {func(f *Facts) {
			schema(f).Properties["spec"].Properties["snapshot"] = apiextensionsv1.JSONSchemaProps{}
		},
			[]string{"problem definitions: CustomResourceDefinition " + volumes + " is newer than this plugin, which does not know spec.snapshot > kubectl pav version"}},
		"a definition has no schema": {func(f *Facts) { f.Definitions[volumes].Spec.Versions[0].Schema = nil },
			[]string{"problem definitions: CustomResourceDefinition " + volumes + " is older than this plugin: it does not have a schema" + reapply}},

		"there is no controller agent": {func(f *Facts) { f.Deployment = nil },
			[]string{"problem controller agent: Deployment controller-agent does not exist in namespace storage" + reapply}},
		"the controller agent is scaled to 0": {func(f *Facts) { f.Deployment.Spec.Replicas = new(int32(0)) },
			[]string{"problem controller agent: the controller agent is scaled to 0: no volume is created or deleted > kubectl -n storage scale deployment/controller-agent --replicas=2"}},
		"a replica is not ready": {func(f *Facts) {
			f.Deployment.Status.ReadyReplicas = 1
			unready(&f.Agents[1], "ImagePullBackOff")
		}, []string{`problem controller agent: 1 of 2 replicas are ready: pod storage/controller-agent-b, container "controller-agent": ImagePullBackOff` + pods}},
		"no replica leads": {func(f *Facts) { f.Lease.Spec.HolderIdentity = new("") },
			[]string{"problem controller agent: no replica of the controller agent leads, so none works" + logs}},
		"there is no Lease": {func(f *Facts) { f.Lease = nil },
			[]string{"problem controller agent: no replica of the controller agent leads, so none works" + logs}},
		"no leader is needed": {func(f *Facts) {
			f.Lease, f.Deployment.Spec.Template.Spec.Containers[0].Args = nil, []string{"controller", "--leader-elect=false"}
		}, []string{}},
		"the leader's pod is gone": {func(f *Facts) { f.Lease.Spec.HolderIdentity = new("controller-agent-z_1") },
			[]string{"problem controller agent: the leader, controller-agent-z, is not a pod of the controller agent that is ready" + logs}},
		"the leader does not renew its Lease": {func(f *Facts) { f.Lease.Spec.RenewTime.Time = noon.Add(-6 * time.Minute) },
			[]string{"problem controller agent: the leader, controller-agent-a, has not renewed its Lease for 6m" + logs}},

		"the plugin has another version": {func(f *Facts) { f.Version = "0.3.0" },
			[]string{"problem versions: the agents have version 0.2.0, and this command has version 0.3.0: install that of the agents > kubectl pav version"}},
		"the agents have several versions": {func(f *Facts) { f.Agents[3].Spec.Containers[0].Image = "pav:0.1.9" },
			[]string{"problem versions: agents of several versions run; if no upgrade is under way, see: kubectl -n storage rollout status daemonset/node-agent > kubectl pav version"}},

		"there are no node agents": {func(f *Facts) { f.DaemonSet = nil },
			[]string{"problem node agents: DaemonSet node-agent does not exist in namespace storage" + reapply}},
		"a node has no agent": {func(f *Facts) { f.Agents = f.Agents[:3] },
			[]string{"problem node agents: no node agent runs on n2 > kubectl -n storage describe daemonset node-agent"}},
		"a node has just been added": {func(f *Facts) {
			f.Nodes = append(f.Nodes, linuxNode("n3"))
			f.Nodes[2].CreationTimestamp = ago(20 * time.Second)
		}, []string{}},
		"a node is of another system": {func(f *Facts) {
			f.Nodes = append(f.Nodes, linuxNode("w"))
			f.Nodes[2].Labels[corev1.LabelOSStable] = "windows"
		}, []string{}},
		"the installer excludes a node": {func(f *Facts) {
			f.Agents, f.DaemonSet.Spec.Template.Spec.Affinity = f.Agents[:3], &corev1.Affinity{}
		}, []string{}},
		"an agent is not ready": {func(f *Facts) { unready(&f.Agents[3], "CrashLoopBackOff") },
			[]string{`problem node agents: the node agent is not ready on n2: pod storage/node-agent-2, container "node-agent": CrashLoopBackOff > kubectl -n storage describe pod node-agent-2`}},
		"an agent is just starting": {func(f *Facts) {
			unready(&f.Agents[3], "ContainerCreating")
			f.Agents[3].CreationTimestamp = ago(20 * time.Second)
		}, []string{}},
		"a node is not ready": {func(f *Facts) { f.Nodes[1].Status.Conditions[0].Status = corev1.ConditionUnknown },
			[]string{"problem node agents: not ready, and so without a node agent that works: n2 > kubectl describe node n2"}},
		"no node is selected": {func(f *Facts) {
			f.DaemonSet.Spec.Template.Spec.NodeSelector["pool"] = "storage"
			f.Agents = f.Agents[:2]
		}, []string{"problem node agents: no node is selected by the DaemonSet, so no volume can be staged > kubectl -n storage get daemonset node-agent -o wide",
			"unknown drivers: no node agent has been ready for long enough to tell"}},

		"PaV's CSIDriver is missing": {func(f *Facts) { f.CSIDrivers = f.CSIDrivers[1:] },
			[]string{"problem drivers: CSIDriver pav.albertofaria.github.io does not exist, so no workflow pod gets its /pav" + reapply}},
		"PaV's driver is not registered": {func(f *Facts) { f.CSINodes[1].Spec.Drivers = f.CSINodes[1].Spec.Drivers[1:] },
			[]string{"problem drivers: driver pav.albertofaria.github.io is not registered on n2 > kubectl -n storage logs node-agent-2 --tail=20"}},
		"a node has no CSINode": {func(f *Facts) { f.CSINodes = f.CSINodes[1:] }, []string{
			"problem drivers: driver pav.albertofaria.github.io is not registered on n1 > kubectl -n storage logs node-agent-1 --tail=20",
			"problem drivers: driver demo is not registered on n1 > kubectl -n storage logs node-agent-1 --tail=20",
		}},
		"a provisioner has just become ready": {func(f *Facts) {
			f.CSINodes[1] = registration("n2", pavv1.Driver)
			f.Provisioners[0].Status.Conditions[1].LastTransitionTime = ago(5 * time.Second)
		}, []string{}},
		"an agent has just become ready": {func(f *Facts) {
			f.CSINodes[1] = registration("n2")
			f.Agents[3].Status.Conditions[0].LastTransitionTime = ago(5 * time.Second)
		}, []string{}},

		"there are no webhooks": {func(f *Facts) { f.Webhooks = nil },
			[]string{"problem webhooks: ValidatingWebhookConfiguration pav-provisioners does not exist: definitions are not checked when they are written" + reapply}},
		"a webhook is missing": {func(f *Facts) { f.Webhooks.Webhooks = f.Webhooks.Webhooks[:2] },
			[]string{"problem webhooks: ValidatingWebhookConfiguration pav-provisioners does not have controller-pods.pav.albertofaria.github.io" + reapply}},
		"a webhook has no CA bundle": {func(f *Facts) { f.Webhooks.Webhooks[0].ClientConfig.CABundle = nil },
			[]string{"problem webhooks: the API server cannot trust the controller agent, which has not written the field caBundle of provisioners.pav.albertofaria.github.io" + logs}},
		"the webhooks' Service is missing": {func(f *Facts) { clear(f.Services) },
			[]string{"problem webhooks: Service storage/webhook of the webhooks does not exist" + reapply}},
		"the webhooks have no ready endpoints": {func(f *Facts) { f.Endpoints[0].Endpoints[0].Conditions.Ready = new(false) },
			[]string{"problem webhooks: Service storage/webhook of the webhooks has no ready endpoints: definitions and some pods are refused" + pods}},
		"another Service has the endpoints": {func(f *Facts) { f.Endpoints[0].Namespace = "other" },
			[]string{"problem webhooks: Service storage/webhook of the webhooks has no ready endpoints: definitions and some pods are refused" + pods}},
		"a policy is missing": {func(f *Facts) { delete(f.Policies, "pav-keys-on-pods") },
			[]string{"problem policies: 1 ValidatingAdmissionPolicy does not exist: pav-keys-on-pods: what the agents and tenants may do is not limited as it should be" + reapply}},
		"the policy of an enabled feature is missing": {func(f *Facts) {
			f.Deployment.Spec.Template.Spec.Containers[0].Args = []string{"controller", "--startup-taint"}
			f.Bindings[nodesPolicy] = true
		}, []string{"problem policies: 1 ValidatingAdmissionPolicy does not exist: pav-controller-nodes: what the agents and tenants may do is not limited as it should be" + reapply}},
		"the policies of buckets are missing": {func(f *Facts) {
			f.BucketRights, f.Credentials = true, true
			for _, name := range bucketPolicies[1:] {
				f.Policies[name] = true
			}
			for _, name := range bucketPolicies {
				f.Bindings[name] = true
			}
		}, []string{"problem policies: 1 ValidatingAdmissionPolicy does not exist: pav-credentials: what the agents and tenants may do is not limited as it should be" + reapply + " -f deployment-buckets.yaml"}},
		"bindings are missing": {func(f *Facts) {
			delete(f.Bindings, "pav-keys-on-pods")
			delete(f.Bindings, "pav-inline-volumes")
		}, []string{"problem policies: 2 objects of kind ValidatingAdmissionPolicyBinding do not exist: pav-inline-volumes, pav-keys-on-pods: what the agents and tenants may do is not limited as it should be" + reapply}},

		"there is no namespace for workflow pods": {func(f *Facts) { f.Namespaces = nil },
			[]string{"problem namespaces: namespace pav-pods does not exist, so no workflow pod can run" + reapply}},
		"the namespace has no label": {func(f *Facts) { f.Namespaces[0].Labels = nil },
			[]string{"problem namespaces: namespace pav-pods has no label pod-security.kubernetes.io/enforce, so pods that mount may be refused > kubectl label --overwrite namespace pav-pods pod-security.kubernetes.io/enforce=privileged"}},
		"the namespace is being deleted": {func(f *Facts) { f.Namespaces[0].DeletionTimestamp = agoPointer(0) },
			[]string{"problem namespaces: namespace pav-pods is being deleted, so no workflow pod can be created there > kubectl describe namespace pav-pods"}},
		"an open namespace is restricted": {func(f *Facts) { f.Namespaces = append(f.Namespaces, openNamespace("restricted")) },
			[]string{`problem namespaces: namespace apps enforces the Pod Security Standard "restricted", so pods that mount may be refused > kubectl label --overwrite namespace apps pod-security.kubernetes.io/enforce=privileged`}},
		"an open namespace has the cluster's default": {func(f *Facts) { f.Namespaces = append(f.Namespaces, openNamespace("")) }, []string{}},
		"a quota has no room": {func(f *Facts) {
			f.Namespaces = append(f.Namespaces, openNamespace(privileged))
			f.Quotas = append(f.Quotas, quota("apps", "10", "10"))
		}, []string{"problem namespaces: ResourceQuota apps/pods has no room: 10 of 10 pods are used > kubectl -n apps edit resourcequota pods"}},

		"a provisioner is not accepted": {func(f *Facts) {
			f.Provisioners[0].Status.Conditions[0] = condition(pavv1.ProvisionerAccepted, metav1.ConditionFalse, "choose another name")
			f.Provisioners[0].Status.Conditions[1] = condition(pavv1.ProvisionerReady, metav1.ConditionFalse, "it is not accepted")
		}, []string{"problem provisioners: PavProvisioner demo is not accepted: choose another name > kubectl pav describe pav/demo"}},
		"a provisioner is not ready": {func(f *Facts) {
			f.Provisioners[0].Status.Conditions[1] = condition(pavv1.ProvisionerReady, metav1.ConditionFalse, "another CSIDriver exists")
		}, []string{"problem provisioners: PavProvisioner demo is not ready: another CSIDriver exists > kubectl pav describe pav/demo"}},
		"a provisioner has not been checked": {func(f *Facts) { f.Provisioners[0].Status.Conditions = nil },
			[]string{"problem provisioners: PavProvisioner demo has not been checked by the controller agent > kubectl pav describe pav/demo"}},
		"a provisioner is new": {func(f *Facts) {
			f.Provisioners[0].Status.Conditions, f.Provisioners[0].CreationTimestamp = nil, ago(time.Second)
		}, []string{}},
		"a provisioner is being deleted": {func(f *Facts) {
			deleting(&f.Provisioners[0].ObjectMeta, pavv1.ProvisionerFinalizer, time.Minute)
			f.Provisioners[0].Status.Conditions[1].Status = metav1.ConditionFalse
		}, []string{}},
		"a volume cannot be created": {func(f *Facts) {
			f.Volumes[0].Status = pavv1.PavVolumeStatus{Phase: pavv1.VolumePending, Failure: &pavv1.WorkflowFailure{}}
		}, []string{"problem volumes: 1 volume cannot be created or deleted: pvc-u1 > kubectl pav describe pv/pvc-u1"}},
		"a volume fails on a node": {func(f *Facts) { f.Stages[0].Status.StagingFailure = &pavv1.WorkflowFailure{} },
			[]string{"problem volumes: 1 volume fails on a node, in 1 PavStage: pvc-u1 > kubectl pav describe pv/pvc-u1"}},

		"a node is gone": {func(f *Facts) { f.Stages[0].Spec.NodeName = "n9" },
			[]string{"problem leftovers: the node of 1 PavStage is gone: stage-1 (node n9)" + logs}},
		"a PersistentVolume is gone": {func(f *Facts) { clear(f.PVs) },
			[]string{"problem leftovers: the PersistentVolume of 1 PavVolume is gone: pvc-u1 > kubectl pav describe pv/pvc-u1"}},
		"a claim is gone, and deletion fails": {func(f *Facts) {
			clear(f.Claims)
			f.Volumes[0].Status = pavv1.PavVolumeStatus{Phase: pavv1.VolumeDeleting, DeletionFailure: &pavv1.WorkflowFailure{}}
		}, []string{"problem volumes: 1 volume cannot be created or deleted: pvc-u1 > kubectl pav describe pv/pvc-u1",
			"problem leftovers: the claim of 1 PavVolume is gone, and the storage is not deleted: pvc-u1 > kubectl pav describe pv/pvc-u1"}},
		"a claim is gone, and deletion waits for long": {func(f *Facts) {
			clear(f.Claims)
			f.Volumes[0].Status = pavv1.PavVolumeStatus{Phase: pavv1.VolumeDeleting, Conditions: []metav1.Condition{condition(pavv1.VolumeDeleted, metav1.ConditionFalse, "in use")}}
		}, []string{"problem leftovers: the claim of 1 PavVolume is gone, and the storage is not deleted: pvc-u1 > kubectl pav describe pv/pvc-u1"}},
		"a claim has just gone": {func(f *Facts) {
			clear(f.Claims)
			f.Volumes[0].Status = pavv1.PavVolumeStatus{Phase: pavv1.VolumeDeleting}
		}, []string{}},
		"a volume is retained": {func(f *Facts) {
			clear(f.Claims)
			clear(f.PVs)
			f.Volumes[0].Status = pavv1.PavVolumeStatus{Phase: pavv1.VolumeRetained}
		}, []string{}},
		"the owner of a pod is gone": {func(f *Facts) { f.Stages = nil },
			[]string{"problem leftovers: PaV's record of 1 workflow pod is gone: pav-pods/stage-pod > kubectl -n pav-pods describe pod stage-pod"}},
		"a snapshot cannot be created": {func(f *Facts) { f.Snapshots = snapshot(pavv1.PavSnapshotStatus{Failure: &pavv1.WorkflowFailure{}}) },
			[]string{"problem volumes: 1 snapshot cannot be created: snapshot-s1 > kubectl pav describe pavsnapshot/snapshot-s1"}},
		"a snapshot cannot be deleted": {func(f *Facts) {
			f.Snapshots = snapshot(pavv1.PavSnapshotStatus{DeletionFailure: &pavv1.WorkflowFailure{}})
		},
			[]string{"problem leftovers: the storage of 1 PavSnapshot is not deleted: snapshot-s1 > kubectl pav describe pavsnapshot/snapshot-s1"}},
		"a pod without an owner is being deleted": {func(f *Facts) {
			f.Stages = nil
			deleting(&f.Pods[0].ObjectMeta, pavv1.PodFinalizer, time.Minute)
		}, []string{}},
		"deletions are stuck": {func(f *Facts) {
			deleting(&f.Pods[0].ObjectMeta, pavv1.PodFinalizer, 11*time.Minute)
			deleting(&f.Stages[0].ObjectMeta, pavv1.StageFinalizer, time.Hour)
			deleting(&f.PVs["pvc-u1"].ObjectMeta, pavv1.PVFinalizer, time.Hour)
			deleting(&f.Provisioners[0].ObjectMeta, pavv1.ProvisionerFinalizer, 11*time.Minute)
			f.Provisioners = append(f.Provisioners, pavv1.PavProvisioner{ObjectMeta: metav1.ObjectMeta{Name: "older"}})
			deleting(&f.Provisioners[1].ObjectMeta, pavv1.ProvisionerFinalizer, 3*time.Hour)
		}, []string{
			"problem leftovers: 2 PavProvisioners have been under deletion for up to 3h: demo, older > kubectl pav describe pav/older",
			"problem leftovers: PavStage stage-1 has been under deletion for 1h > kubectl pav describe pv/pvc-u1",
			"problem leftovers: PersistentVolume pvc-u1 has been under deletion for 1h > kubectl pav describe pv/pvc-u1",
			"problem leftovers: workflow pod pav-pods/stage-pod has been under deletion for 11m > kubectl -n pav-pods describe pod stage-pod",
		}},
		"another finalizer holds an object": {func(f *Facts) { deleting(&f.Volumes[0].ObjectMeta, "example.com/backup", time.Hour) }, []string{}},
		"another provisioner's PersistentVolume is stuck": {func(f *Facts) {
			pv := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "x", Annotations: map[string]string{protocol.ProvisionedBy: "other"}}}
			deleting(&pv.ObjectMeta, pavv1.PVFinalizer, time.Hour)
			f.PVs["x"] = pv
		}, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			f := healthy(t)
			test.change(f)
			r := Examine(f)
			if diff := cmp.Diff(test.want, found(r)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if wrong := len(test.want) > 0; wrong != (r.Result == Problem) {
				t.Errorf("the result is %s", r.Result)
			}
		})
	}
}

// openNamespace is a namespace apps that is open to workflow pods.
func openNamespace(level string) corev1.Namespace {
	n := corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "apps", Labels: map[string]string{pavv1.AllowPodsLabel: "true"}}}
	if level != "" {
		n.Labels[enforceLabel] = level
	}
	return n
}

// What cannot be read is unknown, and nothing else is said about it.
func TestExamine_WhereRightsAreLacking_SaysWhich(t *testing.T) {
	f := &Facts{Now: noon, Namespace: "storage", Unread: map[right]string{}}
	for _, may := range []right{
		listAgents, getDeployment, getDaemonSet, getLease, getService, listEndpoints, getDefinitions, getWebhooks, listPolicies, listBindings, getBucketRights, listNodes,
		listCSINodes, listCSIDrivers, listNamespaces, listQuotas, listProvisioner, listVolumes, listStages, listPods, listPVs, listClaims,
	} {
		f.Unread[may] = "you may not " + string(may)
	}
	r := Examine(f)
	for _, row := range r.Rows {
		if row.Result != Unknown || !strings.HasPrefix(row.Message, "you may not ") {
			t.Errorf("%s: %s %s", row.Check, row.Result, row.Message)
		}
	}
	if r.Result != Unknown || !slices.Contains(found(r), "unknown policies: you may not list validatingadmissionpolicies") {
		t.Errorf("%s: %q", r.Result, found(r))
	}
	f = healthy(t)
	f.Webhooks, f.Unread[getWebhooks] = nil, "you may not get validatingwebhookconfigurations"
	if r := Examine(f); r.Result != Unknown || len(found(r)) != 1 {
		t.Errorf("without one right: %s: %q", r.Result, found(r))
	}
	f.Deployment = nil
	if r := Examine(f); r.Result != Problem {
		t.Errorf("with a problem, and without one right: %s", r.Result)
	}
}

// The names of policies and webhooks are those of the manifests.
func TestNames_AreThoseOfTheManifests(t *testing.T) {
	text, err := os.ReadFile("../../../deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	forBuckets, err := os.ReadFile("../../../deployment-buckets.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []struct {
		manifest string
		text     []byte
		names    []string
	}{{"deployment.yaml", text, policyNames}, {"deployment-buckets.yaml", forBuckets, bucketPolicies}} {
		for _, kind := range []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"} {
			var want []string
			for _, match := range regexp.MustCompile(`(?m)^kind: `+kind+`\nmetadata:\n  name: (\S+)$`).FindAllStringSubmatch(string(of.text), -1) {
				want = append(want, match[1])
			}
			if diff := cmp.Diff(slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(of.names))); diff != "" {
				t.Errorf("%s (-%s +plugin):\n%s", kind, of.manifest, diff)
			}
		}
	}
	if !strings.Contains(string(forBuckets), "kind: ClusterRoleBinding\nmetadata:\n  name: "+agent.BucketRights+"\n") {
		t.Errorf("deployment-buckets.yaml has no ClusterRoleBinding %s", agent.BucketRights)
	}
	chart, err := os.ReadFile("../../../deploy/chart/templates/52-policies-controller.yaml")
	if err != nil || !strings.Contains(string(chart), "kind: ValidatingAdmissionPolicyBinding\nmetadata:\n  name: "+nodesPolicy+"\n") {
		t.Errorf("the chart has no policy %s: %v", nodesPolicy, err)
	}
	for _, name := range webhookNames {
		if !strings.Contains(string(text), "  - name: "+name+"\n") {
			t.Errorf("deployment.yaml has no webhook %s", name)
		}
	}
}

func TestListed_NamesTheFirst(t *testing.T) {
	if got, want := listed([]string{"b", "a", "b", "c", "d", "f", "e", "g"}), "a, b, c, d, e and 2 more"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
