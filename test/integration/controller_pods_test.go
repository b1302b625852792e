package integration

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/albertofaria/pav/internal/admission"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// rightful is a pod with all kinds of rights on its node, which is chosen by tenants.
const rightful = `{
	"metadata": {"annotations": {"of": "{{ pvc.metadata.name }}"}},
	"spec": {
		"nodeName": "` + fakeNode + `", "hostNetwork": true, "hostPID": true, "hostIPC": true,
		"tolerations": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}],
		"volumes": [{"name": "host", "hostPath": {"path": "/srv/{{ pvc.metadata.namespace }}"}}],
		"initContainers": [{"name": "tunes", "image": "none", "securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}],
		"containers": [{"name": "main", "image": "none", "securityContext": {"privileged": true}}]
	}
}`

// inAllPods gives a provisioner validation, creation, expansion, modification and deletion pods.
func inAllPods(template string) func(*pavv1.PavProvisioner, *storagev1.StorageClass) {
	return func(p *pavv1.PavProvisioner, s *storagev1.StorageClass) {
		s.AllowVolumeExpansion = new(true)
		p.Spec.VolumeExpansion = &pavv1.VolumeExpansion{PodTemplate: field(template)}
		p.Spec.VolumeModification = &pavv1.VolumeModification{Parameters: []string{"tier"}, PodTemplate: field(template)}
		p.Spec.VolumeValidation = &pavv1.VolumeValidation{PodTemplate: field(template)}
		p.Spec.VolumeCreation.PodTemplate = field(template)
		p.Spec.VolumeDeletion = &pavv1.VolumeDeletion{PodTemplate: field(template)}
	}
}

// rights are the ways for a pod to have rights on its node.
var rights = map[string]func(*corev1.PodSpec){
	"a privileged container": func(p *corev1.PodSpec) {
		p.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
	},
	"a privileged container that starts first": func(p *corev1.PodSpec) {
		p.InitContainers = []corev1.Container{{Name: "first", Image: "none", SecurityContext: &corev1.SecurityContext{Privileged: new(true)}}}
	},
	"a capability": func(p *corev1.PodSpec) {
		p.Containers[0].SecurityContext = &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"CHOWN", "SYS_PTRACE"}}}
	},
	"a node": func(p *corev1.PodSpec) { p.NodeName = "control-plane" },
	"a toleration of the control plane": func(p *corev1.PodSpec) {
		p.Tolerations = []corev1.Toleration{{Key: "node-role.kubernetes.io/control-plane", Operator: corev1.TolerationOpExists}}
	},
	"a toleration of masters": func(p *corev1.PodSpec) {
		p.Tolerations = []corev1.Toleration{{Key: "node-role.kubernetes.io/master", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}}
	},
	"a toleration of everything": func(p *corev1.PodSpec) { p.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} },
	"a directory of the node": func(p *corev1.PodSpec) {
		p.Volumes = append(p.Volumes, corev1.Volume{Name: "stolen", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}})
	},
	"the network of the node":   func(p *corev1.PodSpec) { p.HostNetwork = true },
	"the processes of the node": func(p *corev1.PodSpec) { p.HostPID = true },
	"the IPC of the node":       func(p *corev1.PodSpec) { p.HostIPC = true },
	"a process of a Windows node": func(p *corev1.PodSpec) {
		p.OS, p.HostNetwork = &corev1.PodOS{Name: corev1.Windows}, true
		p.SecurityContext = &corev1.PodSecurityContext{WindowsOptions: &corev1.WindowsSecurityContextOptions{HostProcess: new(true)}}
	},
}

// forge returns a pod of a workflow of a volume or snapshot as a thief of the controller agent's token would make it.
func forge(owner client.Object, kind string, change func(*corev1.PodSpec)) *corev1.Pod {
	ownerKind := "PavVolume"
	if _, ok := owner.(*pavv1.PavSnapshot); ok {
		ownerKind = "PavSnapshot"
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: workflow.DefaultNamespace, Name: workflow.Name(kind, string(owner.GetUID()), "99"),
			Labels:      map[string]string{pavv1.WorkflowLabel: kind},
			Annotations: map[string]string{pavv1.AttemptAnnotation: "99"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: pavv1.GroupVersion.String(), Kind: ownerKind, Name: owner.GetName(), UID: owner.GetUID(), Controller: new(true),
			}},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "stolen", Image: "none"}}},
	}
	change(&pod.Spec)
	return pod
}

// With the controller agent's token, pods have no rights on nodes that the definition does not plan for their workflow.
func TestControllerPods_HaveTheRightsThatTheDefinitionPlans(t *testing.T) {
	c := start(t)
	t.Cleanup(func() { checkNothingLeft(t, c) })
	serveWebhook(t, c).launch(t, admission.DefaultLifetimes())
	driver(t, c, "modest")
	driver(t, c, "mighty", func(p *pavv1.PavProvisioner, _ *storagev1.StorageClass) {
		p.Spec.VolumeDeletion = &pavv1.VolumeDeletion{PodTemplate: field(rightful)}
	}, retain)
	_, modest := bound(t, c, mustCreate(t, c, claimOf("modest", "modest")))
	_, mighty := bound(t, c, mustCreate(t, c, claimOf("mighty", "mighty")))
	thief := stolenController(t, c)
	const notPlanned = "does not plan"

	for name, change := range rights {
		t.Run(name, func(t *testing.T) {
			wantForbidden(t, thief, forge(modest, pavv1.WorkflowCreation, change), notPlanned)
			wantForbidden(t, thief, forge(mighty, pavv1.WorkflowCreation, change), notPlanned)
		})
	}
	beyond := slices.Sorted(maps.Keys(rights))
	for _, name := range []string{"the network of the node", "the processes of the node", "the IPC of the node", "a toleration of the control plane", "a toleration of masters", "a toleration of everything"} {
		beyond = slices.DeleteFunc(beyond, func(n string) bool { return n == name }) // the definition plans these
	}
	for _, name := range beyond {
		t.Run("beyond what is planned: "+name, func(t *testing.T) {
			wantForbidden(t, thief, forge(mighty, pavv1.WorkflowDeletion, rights[name]), notPlanned)
		})
	}
	t.Run("what is planned", func(t *testing.T) {
		pod := forge(mighty, pavv1.WorkflowDeletion, rights["the processes of the node"])
		if err := thief.Create(t.Context(), pod); err != nil {
			t.Error(err)
		}
		removeNow(t, c, pod)
	})
	t.Run("a dry run", func(t *testing.T) {
		try(t, thief, []attempt{{"of a privileged pod", creating(forge(modest, pavv1.WorkflowCreation, rights["a privileged container"])), ""}})
	})
	t.Run("an expansion of a volume that does not grow", func(t *testing.T) {
		wantForbidden(t, thief, forge(mighty, pavv1.WorkflowExpansion, rights["the processes of the node"]), notPlanned)
	})
	t.Run("a modification of a volume that is not modified", func(t *testing.T) {
		wantForbidden(t, thief, forge(mighty, pavv1.WorkflowModification, rights["the processes of the node"]), notPlanned)
	})
	t.Run("of no volume", func(t *testing.T) {
		other := forge(mighty, pavv1.WorkflowDeletion, rights["the processes of the node"])
		other.OwnerReferences[0].UID = "another"
		wantForbidden(t, thief, other, "another one by now")
		other.OwnerReferences[0].Name = "pvc-none"
		wantForbidden(t, thief, other, `PavVolume "pvc-none" does not exist`)
		other.OwnerReferences = nil
		wantForbidden(t, thief, other, "0 owners")
	})
	t.Run("of a forged record", func(t *testing.T) {
		before := modest.DeepCopy()
		modest.Status.Definition = &pavv1.VolumeDefinition{UID: "u", Generation: 1, VolumeCreation: &pavv1.VolumeCreation{PodTemplate: field(rightful)}}
		if err := thief.Status().Patch(t.Context(), modest, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
		wantForbidden(t, thief, forge(modest, pavv1.WorkflowCreation, rights["the processes of the node"]), notPlanned)
	})
}

// The agent's own pods of a definition that plans rights are admitted, until the volume is deleted: also when its claim
// is gone.
func TestControllerPods_OfADefinitionThatPlansThem(t *testing.T) {
	c := start(t)
	t.Cleanup(func() { checkNothingLeft(t, c) })
	serveWebhook(t, c).launch(t, admission.DefaultLifetimes())
	driver(t, c, "rightful", inAllPods(rightful))
	claim := mustCreate(t, c, claimOf("rightful", "data"))
	goThrough := func(kind string, result workflow.Result) {
		t.Helper()
		pod, _ := podOf(t, c, claim, kind)
		if len(workflow.NodeRights(&pod.Spec)) != 8 {
			t.Errorf("the %s pod has the rights %v", kind, workflow.NodeRights(&pod.Spec))
		}
		endBound(t, c, pod, result)
	}
	goThrough(pavv1.WorkflowValidation, workflow.Result{})
	goThrough(pavv1.WorkflowCreation, workflow.Result{Handle: "made"})
	_, volume := bound(t, c, claim)
	mustPatch(t, c, claim, requests("2Gi"))
	goThrough(pavv1.WorkflowExpansion, workflow.Result{})
	wantSize(t, c, claim, "2Gi")
	if hasAttributesClasses(c) {
		attributesClass(t, c, "rightful", "rightful", "tier", "1")
		mustPatch(t, c, claim, namesClass("rightful"))
		goThrough(pavv1.WorkflowModification, workflow.Result{})
		wantAttributes(t, c, claim, "rightful.")
	}
	mustDelete(t, c, claim)
	gone(t, c, claim)
	goThrough(pavv1.WorkflowDeletion, workflow.Result{})
	gone(t, c, volume)
}

// endBound is end for a pod that is bound to its node by itself.
func endBound(t *testing.T, c *cluster, pod *corev1.Pod, result workflow.Result) {
	t.Helper()
	ended := pod.DeepCopy()
	ended.Status.Phase = corev1.PodSucceeded
	ended.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.Now()},
	}}}
	if err := c.Admin.Status().Patch(t.Context(), ended, client.MergeFrom(pod)); err != nil {
		t.Fatal(err)
	}
	if err := tellResult(t.Context(), nodeAgent(t, c, fakeNode), pod, result); err != nil {
		t.Fatal(err)
	}
}

// detour makes the API server ask somewhere else about the controller agent's pods.
func detour(t *testing.T, c *cluster, port int32, answered bool) {
	t.Helper()
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: admission.ConfigurationName}}
	mustPatch(t, c, configuration, func(v *admissionregistrationv1.ValidatingWebhookConfiguration) {
		v.Webhooks[2].ClientConfig.Service.Port = &port
	})
	thief, owned := stolenController(t, c), &pavv1.PavVolume{ObjectMeta: metav1.ObjectMeta{Name: "none", UID: "none"}}
	eventually(t, fmt.Sprintf("the webhook is answered: %t", answered), func(ctx context.Context) (bool, string) {
		err := thief.Create(ctx, forge(owned, pavv1.WorkflowCreation, rights["a privileged container"]))
		return apierrors.IsForbidden(err) == answered, fmt.Sprint(err)
	})
}

// While the webhook does not answer, as just after the installation, pods with rights on nodes wait in the same attempt,
// and others do not.
func TestControllerPods_WaitForTheWebhook(t *testing.T) {
	c := start(t)
	t.Cleanup(func() { checkNothingLeft(t, c) })
	w := serveWebhook(t, c)
	w.launch(t, admission.DefaultLifetimes())
	driver(t, c, "waits", inAllPods(strings.Replace(rightful, `"nodeName": "`+fakeNode+`", `, "", 1)))
	driver(t, c, "goes-on", func(p *pavv1.PavProvisioner, _ *storagev1.StorageClass) {
		p.Spec.VolumeDeletion = &pavv1.VolumeDeletion{PodTemplate: field(`{"spec": {"containers": [{"name": "main", "image": "none"}]}}`)}
	})
	detour(t, c, portOf(t, freeAddress(t)), false)
	waits := mustCreate(t, c, claimOf("waits", "waits"))
	wantEvent(t, c, waits, "Warning", "Provisioning", "waits until PaV's webhook")
	claim := mustCreate(t, c, claimOf("goes-on", "goes-on"))
	bound(t, c, claim)
	mustDelete(t, c, claim)
	deletion, goesOn := podOf(t, c, claim, pavv1.WorkflowDeletion)
	end(t, c, deletion, workflow.Result{}, 0)
	gone(t, c, goesOn)
	confined := forge(volumeOf(waits), pavv1.WorkflowCreation, func(p *corev1.PodSpec) {
		p.Tolerations = []corev1.Toleration{{Key: "disks", Operator: corev1.TolerationOpExists}}
		p.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(false), Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"CHOWN", "NET_ADMIN"}}}
	})
	confined.OwnerReferences = nil
	if err := stolenController(t, c).Create(t.Context(), confined); err != nil {
		t.Errorf("a pod without rights on its node: %v", err)
	}
	removeNow(t, c, confined)

	detour(t, c, w.port, true)
	_, volume := podOf(t, c, waits, pavv1.WorkflowValidation)
	if volume.Status.Attempt != 1 || volume.Status.Pods != 1 || volume.Status.Failure != nil {
		t.Errorf("it is attempt %d and pod %d, after the failure %v", volume.Status.Attempt, volume.Status.Pods, volume.Status.Failure)
	}
	mustDelete(t, c, waits)
	gone(t, c, volume)
}
