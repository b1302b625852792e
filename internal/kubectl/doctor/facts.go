package doctor

import (
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/kubectl/agent"
)

// right is a request that the user needs a right for, in words: "list nodes".
type right string

// What Gather reads.
const (
	listAgents      right = "list pods in the namespace of the agents"
	getDeployment   right = "get deployments in the namespace of the agents"
	getDaemonSet    right = "get daemonsets in the namespace of the agents"
	getLease        right = "get leases in the namespace of the agents"
	getService      right = "get services in the namespace of the agents"
	listEndpoints   right = "list endpointslices in the namespace of the agents"
	getDefinitions  right = "get customresourcedefinitions"
	getWebhooks     right = "get validatingwebhookconfigurations"
	listPolicies    right = "list validatingadmissionpolicies"
	listBindings    right = "list validatingadmissionpolicybindings"
	getBucketRights right = "get clusterrolebindings"
	listNodes       right = "list nodes"
	listCSINodes    right = "list csinodes"
	listCSIDrivers  right = "list csidrivers"
	listNamespaces  right = "list namespaces"
	listQuotas      right = "list resourcequotas"
	listProvisioner right = "list pavprovisioners"
	listVolumes     right = "list pavvolumes"
	listStages      right = "list pavstages"
	listSnapshots   right = "list pavsnapshots"
	listBuckets     right = "list pavbuckets"
	listAccesses    right = "list pavbucketaccesses"
	listPods        right = "list pods in all namespaces"
	listPVs         right = "list persistentvolumes"
	listClaims      right = "list persistentvolumeclaims in all namespaces"
)

// Facts is everything that was found out about an installation. A nil object does not exist, or could not be read; then
// Unread says so.
type Facts struct {
	// Now is the time at which it was found out.
	Now time.Time

	// Version is the version of the plugin.
	Version string

	// Namespace is the namespace of the agents.
	Namespace string

	// Unread has the reason for which something could not be read.
	Unread map[right]string

	// Definitions are PaV's CustomResourceDefinitions, by name.
	Definitions map[string]*apiextensionsv1.CustomResourceDefinition

	// Deployment and Lease are those of the controller agent, DaemonSet that of the node agents, and Agents the pods of
	// both.
	Deployment *appsv1.Deployment
	DaemonSet  *appsv1.DaemonSet
	Lease      *coordinationv1.Lease
	Agents     []corev1.Pod

	Nodes      []corev1.Node
	CSINodes   []storagev1.CSINode
	CSIDrivers []storagev1.CSIDriver

	// Webhooks are the controller agent's. Services are those that the webhooks name, and Endpoints the slices of these.
	Webhooks  *admissionv1.ValidatingWebhookConfiguration
	Services  map[types.NamespacedName]bool
	Endpoints []discoveryv1.EndpointSlice

	// Policies and Bindings are the names of all ValidatingAdmissionPolicies and of their bindings.
	Policies, Bindings map[string]bool

	// BucketRights says that the controller agent has the rights that only buckets need, and Credentials that the namespace of
	// credentials exists.
	BucketRights, Credentials bool

	// BucketAPIs are the CustomResourceDefinitions of claims of buckets that exist, by name: true if a version that PaV serves is served.
	BucketAPIs map[string]bool

	// Namespaces are those where workflow pods may be, and Quotas their ResourceQuotas.
	Namespaces []corev1.Namespace
	Quotas     []corev1.ResourceQuota

	Provisioners []pavv1.PavProvisioner
	Volumes      []pavv1.PavVolume
	Stages       []pavv1.PavStage
	Snapshots    []pavv1.PavSnapshot
	Buckets      []pavv1.PavBucket
	Accesses     []pavv1.PavBucketAccess

	// Pods are the workflow pods.
	Pods []corev1.Pod

	// PVs are the PersistentVolumes of all drivers, by name. Claims are the UIDs of all claims.
	PVs    map[string]*metav1.PartialObjectMetadata
	Claims map[types.UID]bool
}

// unknown returns a row for each of the rights without which something could not be read.
func (f *Facts) unknown(rights ...right) []Row {
	var rows []Row
	for _, needed := range rights {
		if why, is := f.Unread[needed]; is {
			rows = append(rows, Row{Result: Unknown, Message: why})
		}
	}
	return rows
}

// settleTime is how long the effects of a change may take.
const settleTime = time.Minute

// settled reports whether the effects of a change must be there.
func (f *Facts) settled(since metav1.Time) bool { return f.Now.Sub(since.Time) >= settleTime }

// agentOn returns the node agent's pod on a node, or nil.
func (f *Facts) agentOn(node string) *corev1.Pod {
	for _, pod := range f.agents(agent.Node) {
		if pod.Spec.NodeName == node {
			return pod
		}
	}
	return nil
}

// agents returns the pods of an agent, without those that are ending.
func (f *Facts) agents(component string) []*corev1.Pod {
	var found []*corev1.Pod
	for i := range f.Agents {
		if pod := &f.Agents[i]; pod.Labels[agent.ComponentLabel] == component && pod.DeletionTimestamp == nil {
			found = append(found, pod)
		}
	}
	return found
}

// readySince returns since when a pod is ready; nil if it is not.
func readySince(pod *corev1.Pod) *metav1.Time {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return &c.LastTransitionTime
		}
	}
	return nil
}
