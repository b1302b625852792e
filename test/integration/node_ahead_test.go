package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	contract "github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/workflow"
	"github.com/albertofaria/pav/test/kubelet"
)

// provisionedFor makes the PavVolume of a volume that is provisioned for a pod on a node, as the controller agent and the
// scheduler do, which these tests do not run. It returns the pod, which is on no node yet.
func (n *node) provisionedFor(t *testing.T, v kubelet.Volume) *corev1.Pod {
	t.Helper()
	pod := userOf(v, "")
	pod.Name = v.Name + "-coming"
	pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} // No kubelet reports that the node is ready.
	mustCreate(t, n.c, pod)
	t.Cleanup(func() { n.removeUser(t, pod) })
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: v.Name}}
	mustPatch(t, n.c, claim, func(claim *corev1.PersistentVolumeClaim) { // Kubernetes still writes it, to bind it.
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, contract.SelectedNode, n.Node)
	})
	awaitBound(t, n.c, claim) // Before that, the volume is not staged ahead, and it is not tried again.
	raw, err := json.Marshal(claim)
	if err != nil {
		t.Fatal(err)
	}
	volume := mustCreate(t, n.c, &pavv1.PavVolume{
		ObjectMeta: metav1.ObjectMeta{Name: v.Name, Labels: map[string]string{pavv1.ProvisionerLabel: v.Driver, pavv1.NodeLabel: workflow.Hash(n.Node)}},
		Spec: pavv1.PavVolumeSpec{
			Provisioner: v.Driver, ReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			ClaimRef:     pavv1.ClaimReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
			StorageClass: apiextensionsv1.JSON{Raw: []byte(`{}`)}, Claim: apiextensionsv1.JSON{Raw: raw},
		},
	})
	t.Cleanup(func() { mustDeleteLasting(t, n.c, volume) })
	for _, phase := range []pavv1.VolumePhase{pavv1.VolumePending, pavv1.VolumeReady} {
		volume.Status.Phase, volume.Status.Handle = phase, v.Handle
		volume.Status.Conditions = []metav1.Condition{{
			Type: pavv1.VolumeProvisioned, Status: metav1.ConditionTrue, Reason: "Provisioned",
			// It is not too late on a slow machine either.
			LastTransitionTime: metav1.NewTime(time.Now().Add(10 * time.Minute)),
		}}
		if err := n.c.Admin.Status().Update(t.Context(), volume); err != nil {
			t.Fatal(err)
		}
	}
	return pod
}

// serves waits until the agent of the node has filled its caches: it serves its driver then.
func (n *node) serves(t *testing.T) {
	t.Helper()
	n.succeed(t, "unstaging a volume that does not exist", func(ctx context.Context) error {
		return n.Unstage(ctx, kubelet.Volume{Driver: n.provisioner, Handle: "none", Name: "none"})
	})
}

// stagedAhead waits until the agent has staged a volume without a call.
func (n *node) stagedAhead(t *testing.T) *pavv1.PavStage {
	t.Helper()
	stage := &n.hasStages(t, 1)[0]
	exists(t, n.c, stage, "is staged", func(s *pavv1.PavStage) bool { return s.Status.Phase == pavv1.StageStaged })
	return stage
}

// hasStages waits until the node has a number of PavStages, and returns them.
func (n *node) hasStages(t *testing.T, number int) []pavv1.PavStage {
	t.Helper()
	list := &pavv1.PavStageList{}
	eventually(t, fmt.Sprintf("the node has %d PavStages", number), func(ctx context.Context) (bool, string) {
		err := n.c.Admin.List(ctx, list, client.MatchingLabels{pavv1.NodeLabel: workflow.Hash(n.Node)})
		return err == nil && len(list.Items) == number, fmt.Sprintf("%+v, %v", list.Items, err)
	})
	return list.Items
}

// A volume that was provisioned for a pod on the node is staged before kubelet calls, by one pod, and kubelet's call finds
// it staged.
func TestNode_VolumeProvisionedForAPodOfTheNode_IsStagedAhead(t *testing.T) {
	n := newNode(t, workers(t, nil))
	n.run(t)
	n.serves(t)
	v := n.volume(t, "made-ahead")
	n.provisionedFor(t, v)
	stage := n.stagedAhead(t)
	n.userOf(t, v, v.Name+"-user")
	n.stage(t, v)
	if now := n.stages(t)[0]; now.UID != stage.UID {
		t.Errorf("kubelet's call made another PavStage: %s, and it was %s", now.UID, stage.UID)
	}
	n.wantRuns(t, v, runs(pavv1.WorkflowStaging))
	n.unstage(t, v)
	n.wantRuns(t, v, runs(pavv1.WorkflowStaging, pavv1.WorkflowUnstaging))
}

// A volume is provisioned before the agent's watch of volumes has begun: nothing waits for that watch.
func TestNode_VolumeProvisionedBeforeItIsWatched_IsStagedAhead(t *testing.T) {
	n := newNode(t, workers(t, nil))
	provisioned := make(chan struct{})
	n.agentConfig = gated(t, n.agentConfig, func(r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/pavvolumes") {
			select {
			case <-provisioned:
			case <-r.Context().Done():
			}
		}
	})
	n.run(t)
	n.serves(t)
	v := n.volume(t, "made-ahead")
	n.provisionedFor(t, v)
	close(provisioned)
	n.stagedAhead(t)
	n.userOf(t, v, v.Name+"-user")
	n.stage(t, v)
	n.unstage(t, v)
	n.wantRuns(t, v, runs(pavv1.WorkflowStaging, pavv1.WorkflowUnstaging))
}

// Kubelet's call arrives while the volume is staged ahead, and continues that.
func TestNode_CallDuringStagingAhead_ContinuesIt(t *testing.T) {
	began, end := make(chan struct{}), make(chan struct{})
	worker := workers(t, nil)
	n := newNode(t, func(ctx context.Context, pod *kubelet.Pod) int32 {
		if pod.Workflow() == pavv1.WorkflowStaging {
			close(began)
			<-end
		}
		return worker(ctx, pod)
	})
	looks := atomic.Int32{}
	n.agentConfig = gated(t, n.agentConfig, func(r *http.Request) {
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/pavstages/") {
			looks.Add(1)
		}
	})
	n.run(t)
	n.serves(t)
	v := n.volume(t, "made-ahead")
	n.provisionedFor(t, v)
	n.hasStages(t, 1)
	<-began
	n.userOf(t, v, v.Name+"-user")
	before, staged := looks.Load(), make(chan error, 1)
	go func() { staged <- n.firstAnswer(t, func(ctx context.Context) error { return n.Stage(ctx, v) }) }()
	eventually(t, "the call has looked at the stage", func(context.Context) (bool, string) {
		return looks.Load() > before, fmt.Sprintf("%d looks", looks.Load())
	})
	select {
	case err := <-staged:
		t.Errorf("the call did not wait for the pod: %v", err)
	default:
	}
	close(end)
	if err := <-staged; err != nil {
		t.Errorf("staging: %v", err)
	}
	n.wantRuns(t, v, runs(pavv1.WorkflowStaging))
	n.unstage(t, v)
}

// The pod for which a volume was staged ahead never comes: it was deleted, or runs on another node, which waits for the volume.
func TestNode_VolumeStagedAhead_IsUnstaged_IfNoPodComes(t *testing.T) {
	n := newNode(t, workers(t, nil))
	n.run(t)
	n.serves(t)
	v := n.volume(t, "made-ahead")
	pod := n.provisionedFor(t, v)
	n.stagedAhead(t)
	n.removeUser(t, pod)
	n.hasStages(t, 0)
	n.wantRuns(t, v, runs(pavv1.WorkflowStaging, pavv1.WorkflowUnstaging))
}

// Pods that the controller agent has to admit are left to kubelet's call, as it admits them for volumes that a pod on the node
// uses. No event reports it.
func TestNode_StagingAhead_LeavesPodsToTheCallThatMustBeAdmitted(t *testing.T) {
	n := newNode(t, workers(t, nil), useSecret)
	n.run(t)
	n.serves(t)
	v := n.volume(t, "made-ahead")
	pod := n.provisionedFor(t, v)
	n.hasStages(t, 1)
	n.removeUser(t, pod)
	n.hasStages(t, 0)
	n.wantRuns(t, v, map[string]int{})
	events := &corev1.EventList{}
	if err := n.c.Admin.List(t.Context(), events, client.InNamespace("default"), client.MatchingFields{"involvedObject.name": v.Name}); err != nil {
		t.Fatal(err)
	}
	for i := range events.Items {
		if e := &events.Items[i]; e.Type == corev1.EventTypeWarning {
			t.Errorf("event %s: %s", e.Reason, e.Message)
		}
	}
}

// comes makes a pod that mounts a volume, and that the scheduler has just bound to the node. It is there until the test ends.
func (n *node) comes(t *testing.T, v kubelet.Volume) *corev1.Pod {
	t.Helper()
	pod := userOf(v, n.Node)
	pod.Name = v.Name + "-arrived"
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: pod.Spec.Volumes[0].Name, MountPath: "/data"}}
	mustCreate(t, n.c, pod)
	t.Cleanup(func() { n.removeUser(t, pod) })
	return pod
}

// A volume is staged as soon as a pod that mounts it has come to the node. Kubelet's call finds it staged.
func TestNode_VolumeOfAPodThatComes_IsStagedAhead(t *testing.T) {
	n := newNode(t, workers(t, nil))
	n.run(t)
	n.serves(t)
	v := n.volume(t, "arrives")
	awaitBound(t, n.c, claimNamed(v))
	n.comes(t, v)
	stage := n.stagedAhead(t)
	n.stage(t, v)
	if now := n.stages(t)[0]; now.UID != stage.UID {
		t.Errorf("kubelet's call made another PavStage: %s, and it was %s", now.UID, stage.UID)
	}
	n.wantRuns(t, v, runs(pavv1.WorkflowStaging))
	n.unstage(t, v)
	n.hasStages(t, 0)
	n.wantRuns(t, v, runs(pavv1.WorkflowStaging, pavv1.WorkflowUnstaging))
}

// Kubelet may refuse a pod that has come, for example as the node has no memory for it. It never asks for the pod's volumes then.
func TestNode_VolumeOfAPodThatComes_IsUnstaged_IfKubeletRefusesThePod(t *testing.T) {
	n := newNode(t, workers(t, nil))
	n.run(t)
	n.serves(t)
	v := n.volume(t, "arrives")
	awaitBound(t, n.c, claimNamed(v))
	pod := n.comes(t, v)
	n.stagedAhead(t)
	n.setPhase(t, pod, corev1.PodFailed)
	n.hasStages(t, 0)
	n.wantRuns(t, v, runs(pavv1.WorkflowStaging, pavv1.WorkflowUnstaging))
}
