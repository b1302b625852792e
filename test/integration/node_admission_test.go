package integration

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/albertofaria/pav/internal/admission"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// squat creates a pod with the name and owner of the next pod of a stage, with another node's token.
func squat(t *testing.T, c *cluster, stage *pavv1.PavStage, kind string) {
	t.Helper()
	const node = "squatter"
	onNode := corev1.NodeSelectorRequirement{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: workflow.DefaultNamespace, Name: workflow.Name(kind, string(stage.UID), "1"),
			Labels:      map[string]string{pavv1.WorkflowLabel: kind, pavv1.StageLabel: stage.Name},
			Annotations: map[string]string{pavv1.NodeAnnotation: node, pavv1.AttemptAnnotation: "1"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: pavv1.GroupVersion.String(), Kind: "PavStage", Name: stage.Name, UID: stage.UID, Controller: new(true),
			}},
		},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "main", Image: "busybox:1.37.0"}},
			Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{onNode}}},
			}}},
		},
	}
	if err := nodeAgent(t, c, node).Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	pod.Status.Phase = corev1.PodSucceeded // so that anyone who takes it for its own takes its work for done
	if err := c.Admin.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Admin.Delete(lasting(t), pod, client.GracePeriodSeconds(0)) })
}

// withSecret is the worker's pod with a Secret.
var withSecret = strings.Replace(workerTemplate, `"spec": {`, `"spec": {"volumes": [{"name": "secret", "secret": {"secretName": "any"}}],`, 1)

func useSecret(p *pavv1.PavProvisioner) {
	p.Spec.VolumeStaging.PodTemplate, p.Spec.VolumeUnstaging.PodTemplate = *field(withSecret), field(withSecret)
}

// launchController starts a controller agent that serves the webhook.
func (n *node) launchController(t *testing.T, w *webhook) {
	t.Helper()
	t.Cleanup(func() { // Nobody else does what the controller agent does when it has ended.
		provisioner := &pavv1.PavProvisioner{ObjectMeta: metav1.ObjectMeta{Name: n.provisioner}}
		free := client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`))
		if err := n.c.Admin.Patch(lasting(t), provisioner, free); err != nil {
			t.Error(err)
		}
		_ = n.c.Admin.Delete(lasting(t), csiDriver(n.provisioner))
	})
	w.launch(t, admission.DefaultLifetimes())
}

// A pod that refers to a Secret waits for the controller agent, and the claim's events say so. The volume is unstaged when
// client and claim are gone. Pods that agents of other nodes created in advance are not taken for its own.
func TestNode_WaitsForTheControllerAgent_AndTakesNoPodsOfOtherNodesForItsOwn(t *testing.T) {
	n := newNode(t, workers(t, nil), useSecret)
	w := serveWebhook(t, n.c)
	n.run(t)
	v := n.volume(t, "made-waiting")
	user := mustCreate(t, n.c, userOf(v, n.Node))
	const words = "waits for the controller agent"
	eventually(t, "the call says what it waits for", func(ctx context.Context) (bool, string) {
		err := n.Stage(ctx, v)
		return err != nil && strings.Contains(err.Error(), words), fmt.Sprint(err)
	})
	eventually(t, "an event says so", func(ctx context.Context) (bool, string) {
		events := &corev1.EventList{}
		err := n.c.Admin.List(ctx, events, client.InNamespace("default"), client.MatchingFields{"involvedObject.name": v.Name})
		for i := range events.Items {
			if e := &events.Items[i]; e.Reason == "FailedMount" && strings.Contains(e.Message, words) && e.InvolvedObject.Kind == "PersistentVolumeClaim" {
				return true, ""
			}
		}
		return false, fmt.Sprintf("%d events, %v", len(events.Items), err)
	})
	stage := n.stages(t)[0]
	if stage.Status.StagingPod != nil || len(n.Journal.Of(v.Handle)) > 0 {
		t.Errorf("a pod was made: %+v", stage.Status.StagingPod)
	}

	squat(t, n.c, &stage, pavv1.WorkflowStaging)
	squat(t, n.c, &stage, pavv1.WorkflowUnstaging)
	n.launchController(t, w)
	n.stage(t, v)
	if staged := n.stages(t)[0]; staged.UID != stage.UID || staged.Status.Attempt != 2 {
		t.Errorf("the volume is not staged by the next pod of the same PavStage, but by attempt %d of %q, which was %q", staged.Status.Attempt, staged.UID, stage.UID)
	}
	if err := n.c.Admin.Delete(t.Context(), user, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	mustDelete(t, n.c, claimNamed(v))
	gone(t, n.c, claimNamed(v))
	n.unstage(t, v)
	n.wantRuns(t, v, runs(pavv1.WorkflowStaging, pavv1.WorkflowUnstaging))
}

// An agent ends before it has recorded that its staging pod was not admitted. Then the claim goes, without which no pod
// of the stage is admitted any more. As none ever was, there is nothing to be unstaged.
func TestNode_StagingPodThatWasNeverAdmitted_IsNotUnstaged(t *testing.T) {
	n := newNode(t, workers(t, nil), useSecret)
	w := serveWebhook(t, n.c)
	config := n.agentConfig
	var asked atomic.Bool
	answered, ended := make(chan struct{}), make(chan struct{})
	n.agentConfig = gated(t, config, func(r *http.Request) {
		switch {
		case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/namespaces/"+workflow.DefaultNamespace+"/pods"):
			asked.Store(true)
		case r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/pavstages/") && asked.CompareAndSwap(true, false):
			close(answered)
			<-ended
			panic(http.ErrAbortHandler) // It is not passed on.
		}
	})
	first := n.run(t)
	v := n.volume(t, "never-made")
	user := mustCreate(t, n.c, userOf(v, n.Node))
	ctx, cancel := context.WithTimeout(t.Context(), inTime)
	defer cancel()
	go n.Until(ctx, func(ctx context.Context) error { return n.Stage(ctx, v) })
	<-answered
	first.Stop(t)
	close(ended)
	cancel()
	if pod := n.stages(t)[0].Status.StagingPod; pod == nil || !pod.Judged {
		t.Fatalf("the PavStage has not recorded a pod that is to be judged, but %+v", pod)
	}

	n.agentConfig = config
	n.run(t)
	if err := n.c.Admin.Delete(t.Context(), user, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	mustDelete(t, n.c, claimNamed(v))
	gone(t, n.c, claimNamed(v))
	n.launchController(t, w)
	n.unstage(t, v)
	n.wantRuns(t, v, runs())
}
