package doctor

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/kubectl/agent"
	"github.com/albertofaria/pav/internal/protocol"
)

// noon is when everything is looked at.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func atNoon() time.Time { return noon }

func ago(d time.Duration) metav1.Time { return metav1.NewTime(noon.Add(-d)) }

func agoPointer(d time.Duration) *metav1.Time { at := ago(d); return &at }

// definitionsOfThisVersion returns the CustomResourceDefinitions of the chart, as they are when they are served.
func definitionsOfThisVersion(t *testing.T) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	files, err := filepath.Glob("../../../deploy/chart/definitions/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(text, definition); err != nil {
			t.Fatal(err)
		}
		definition.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{
			{Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionTrue}, {Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue},
		}
		found[definition.Name] = definition
	}
	return found
}

func readyPod(component, name, node string) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: name, Labels: agent.Labels(component), CreationTimestamp: ago(time.Hour)},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: component, Image: "registry/pav:0.2.0"}}},
		Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: ago(time.Hour)}}},
	}
}

func unready(pod *corev1.Pod, reason string) {
	pod.Status.Conditions[0].Status = corev1.ConditionFalse
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: pod.Spec.Containers[0].Name, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}}
}

func linuxNode(name string) corev1.Node {
	return corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelOSStable: "linux"}, CreationTimestamp: ago(time.Hour)},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
}

func registration(node string, drivers ...string) storagev1.CSINode {
	csiNode := storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: node}}
	for _, name := range drivers {
		csiNode.Spec.Drivers = append(csiNode.Spec.Drivers, storagev1.CSINodeDriver{Name: name})
	}
	return csiNode
}

func condition(kind string, status metav1.ConditionStatus, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Message: message, LastTransitionTime: ago(time.Hour)}
}

// healthy is an installation in namespace storage in which all is well: two nodes, a provisioner and a volume in use.
func healthy(t *testing.T) *Facts {
	t.Helper()
	f := &Facts{
		Now: noon, Version: "0.2.0", Namespace: "storage", Unread: map[right]string{},
		Definitions: definitionsOfThisVersion(t),
		Deployment: &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: new(int32(2)), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: agent.Controller, Args: []string{"controller"}}}}}}, Status: appsv1.DeploymentStatus{ReadyReplicas: 2}},
		DaemonSet: &appsv1.DaemonSet{Spec: appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{NodeSelector: map[string]string{corev1.LabelOSStable: "linux"}}}}},
		Lease: &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: new("controller-agent-a_0b7e"),
			RenewTime: &metav1.MicroTime{Time: noon.Add(-2 * time.Second)}}},
		Agents: []corev1.Pod{readyPod(agent.Controller, "controller-agent-a", "n1"), readyPod(agent.Controller, "controller-agent-b", "n2"),
			readyPod(agent.Node, "node-agent-1", "n1"), readyPod(agent.Node, "node-agent-2", "n2")},
		Nodes:      []corev1.Node{linuxNode("n1"), linuxNode("n2")},
		CSINodes:   []storagev1.CSINode{registration("n1", pavv1.Driver, "demo"), registration("n2", pavv1.Driver, "demo")},
		CSIDrivers: []storagev1.CSIDriver{{ObjectMeta: metav1.ObjectMeta{Name: pavv1.Driver}}, {ObjectMeta: metav1.ObjectMeta{Name: "demo"}}},
		Webhooks:   &admissionv1.ValidatingWebhookConfiguration{},
		Services:   map[types.NamespacedName]bool{{Namespace: "storage", Name: "webhook"}: true},
		Endpoints: []discoveryv1.EndpointSlice{{ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Labels: map[string]string{discoveryv1.LabelServiceName: "webhook"}},
			Endpoints: []discoveryv1.Endpoint{{Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}}}},
		Policies: map[string]bool{}, Bindings: map[string]bool{},
		Namespaces: []corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "pav-pods", Labels: map[string]string{enforceLabel: privileged}}}},
		Quotas:     []corev1.ResourceQuota{quota("pav-pods", "3", "1G")},
		Claims:     map[types.UID]bool{"u1": true},
	}
	for _, name := range webhookNames {
		f.Webhooks.Webhooks = append(f.Webhooks.Webhooks, admissionv1.ValidatingWebhook{Name: name, ClientConfig: admissionv1.WebhookClientConfig{
			CABundle: []byte("ca"), Service: &admissionv1.ServiceReference{Namespace: "storage", Name: "webhook"}}})
	}
	for _, name := range policyNames {
		f.Policies[name], f.Bindings[name] = true, true
	}
	f.Provisioners = []pavv1.PavProvisioner{{ObjectMeta: metav1.ObjectMeta{Name: "demo", CreationTimestamp: ago(time.Hour)}}}
	f.Provisioners[0].Status.Conditions = []metav1.Condition{condition(pavv1.ProvisionerAccepted, metav1.ConditionTrue, ""), condition(pavv1.ProvisionerReady, metav1.ConditionTrue, "")}
	f.Volumes = []pavv1.PavVolume{{ObjectMeta: metav1.ObjectMeta{Name: "pvc-u1", UID: "v1", CreationTimestamp: ago(time.Hour)},
		Spec:   pavv1.PavVolumeSpec{Provisioner: "demo", ClaimRef: pavv1.ClaimReference{Namespace: "apps", Name: "data", UID: "u1"}},
		Status: pavv1.PavVolumeStatus{Phase: pavv1.VolumeReady, Handle: "h"}}}
	f.PVs = map[string]*metav1.PartialObjectMetadata{"pvc-u1": {ObjectMeta: metav1.ObjectMeta{Name: "pvc-u1", Annotations: map[string]string{protocol.ProvisionedBy: "demo"}}}}
	f.Stages = []pavv1.PavStage{{ObjectMeta: metav1.ObjectMeta{Name: "stage-1", UID: "s1"},
		Spec: pavv1.PavStageSpec{Provisioner: "demo", VolumeName: "pvc-u1", NodeName: "n1"}, Status: pavv1.PavStageStatus{Phase: pavv1.StageStaged}}}
	f.Pods = []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "pav-pods", Name: "stage-pod", CreationTimestamp: ago(time.Hour),
		Labels:          map[string]string{pavv1.WorkflowLabel: pavv1.WorkflowStaging},
		OwnerReferences: []metav1.OwnerReference{{UID: "s1", Controller: new(true)}}}}}
	return f
}

func quota(namespace, used, hard string) corev1.ResourceQuota {
	return corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pods"}, Status: corev1.ResourceQuotaStatus{
		Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse(hard)}, Used: corev1.ResourceList{corev1.ResourcePods: resource.MustParse(used)}}}
}

// deleting puts an object under deletion with a finalizer, since some time.
func deleting(meta *metav1.ObjectMeta, finalizer string, since time.Duration) {
	meta.DeletionTimestamp, meta.Finalizers = agoPointer(since), []string{finalizer}
}

func snapshot(status pavv1.PavSnapshotStatus) []pavv1.PavSnapshot {
	return []pavv1.PavSnapshot{{ObjectMeta: metav1.ObjectMeta{Name: "snapshot-s1", UID: "s2"}, Status: status}}
}

// withBuckets enables buckets, and lets the provisioner have them.
func withBuckets(f *Facts) {
	f.Provisioners[0].Spec.BucketCreation = &pavv1.BucketCreation{}
	f.BucketRights, f.Credentials, f.BucketAPIs = true, true, map[string]bool{}
	for name := range bucketAPIs {
		f.BucketAPIs[name] = true
	}
	for _, name := range bucketPolicies {
		f.Policies[name], f.Bindings[name] = true, true
	}
}

func bucket(status pavv1.PavBucketStatus) []pavv1.PavBucket {
	return []pavv1.PavBucket{{ObjectMeta: metav1.ObjectMeta{Name: "b-u1", UID: "b1"}, Status: status}}
}

func access(status pavv1.PavBucketAccessStatus) []pavv1.PavBucketAccess {
	return []pavv1.PavBucketAccess{{ObjectMeta: metav1.ObjectMeta{Name: "a-u1", UID: "a1"}, Status: status}}
}
