package status

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// TestDiagnose holds each thing that can be the matter against what is said of it first.
func TestDiagnose(t *testing.T) {
	type w struct {
		code    string
		state   State
		summary string // a part
		next    string // a part of the first command or text
		pod     string
	}
	tests := map[string]struct {
		facts *world
		want  w
	}{
		"the class's provisioner does not exist": {
			facts: pendingClaim().with(func(f *Facts) { f.Provisioner = nil }),
			want:  w{"NoProvisioner", Failing, `no PavProvisioner "demo"`, "kubectl get pavprovisioners", ""}},
		"the class's provisioner does not exist, and another one has a similar name": {
			facts: pendingClaim().with(func(f *Facts) { f.Provisioner, f.Similar = nil, "demos" }),
			want:  w{"NoProvisioner", Failing, `no PavProvisioner "demo"; did you mean "demos"?`, "kubectl get pavprovisioners", ""}},
		"the StorageClass is another driver's": {
			facts: pendingClaim().with(func(f *Facts) { f.Provisioner = nil; f.Driver = &storagev1.CSIDriver{} }),
			want:  w{NotPaV, Waiting, "is another driver", "", ""}},
		"the provisioner is not accepted": {
			facts: pendingClaim().with(func(f *Facts) {
				f.Provisioner.Status.Conditions = []metav1.Condition{{Type: pavv1.ProvisionerAccepted, Status: metav1.ConditionFalse, Message: "choose another name"}}
			}),
			want: w{"ProvisionerNotAccepted", Failing, `"demo" cannot be used`, "kubectl edit pavprovisioner demo", ""}},
		"the provisioner is being deleted": {
			facts: pendingClaim().with(func(f *Facts) { f.Provisioner.DeletionTimestamp = at(0) }),
			want:  w{"ProvisionerDeleting", Failing, "is being deleted", "", ""}},
		"the provisioner provisions no volumes": {
			facts: pendingClaim().with(func(f *Facts) {
				f.Provisioner.Spec.ProvisioningModes = []pavv1.ProvisioningMode{pavv1.ProvisioningModeStatic}
			}),
			want: w{"NotDynamic", Failing, "does not contain Dynamic", "kubectl edit pavprovisioner demo", ""}},
		"the StorageClass does not exist": {
			facts: pendingClaim().with(func(f *Facts) { f.Class = nil }),
			want:  w{"NoStorageClass", Failing, `no StorageClass "fast"`, "kubectl get storageclasses", ""}},
		"the claim has no StorageClass, and there is no default": {
			facts: pendingClaim().with(func(f *Facts) { f.Class, f.Claim.Spec.StorageClassName = nil, nil }),
			want:  w{"NoDefaultClass", Failing, "there is no default StorageClass", "kubectl get storageclasses", ""}},
		"the claim has no StorageClass yet": {
			facts: pendingClaim().with(func(f *Facts) { f.Class, f.Claim.Spec.StorageClassName, f.DefaultClass = nil, nil, "fast" }),
			want:  w{"NoClassYet", Waiting, "about to set", "", ""}},
		"the claim asks for no StorageClass": {
			facts: pendingClaim().with(func(f *Facts) { f.Class = nil; f.Claim.Spec.StorageClassName = new("") }),
			want:  w{"StaticPending", Waiting, "waits for a PersistentVolume", "", ""}},
		"no pod uses the claim yet": {
			facts: pendingClaim().with(waitsForConsumer),
			want:  w{"WaitsForConsumer", Waiting, "no pod uses the claim yet", "create a pod", ""}},
		"the first consumer fits no node": {
			facts: pendingClaim().with(waitsForConsumer).client("web", "").with(unschedulable),
			want:  w{"WaitsForConsumer", Failing, "pod web", "kubectl describe pod -n apps web", ""}},
		"the claim is refused": {
			facts: pendingClaim().event("PersistentVolumeClaim", "ProvisioningFailed", "spec.selector: dynamic provisioning cannot honour a selector; remove it"),
			want:  w{"ClaimRefused", Failing, "the claim is refused", "create another claim", ""}},
		"PaV is about to handle the claim": {
			facts: pendingClaim(), want: w{"NotBegun", Working, "about to handle", "", ""}},
		"PaV does not handle the claim": {
			facts: pendingClaim().with(func(f *Facts) { f.Claim.CreationTimestamp = *at(-time.Minute) }),
			want:  w{"ControllerSilent", Failing, "controller agent may not be running", "get deployment controller-agent", ""}},
		"a tenant sees events only": {
			facts: pendingClaim().with(tenant).event("PersistentVolumeClaim", "ProvisioningFailed", "creation: pod pav-pods/create-1 failed; see kubectl logs -n pav-pods create-1"),
			want:  w{"ProvisioningFailed", Failing, "no volume could be provisioned", "ask the administrator", ""}},
		"a tenant sees a claim that waits": {
			facts: pendingClaim().with(tenant), want: w{"Working", Working, "as far as you may see", "", ""}},

		"the creation pod waits for a slot": {
			facts: making(pavv1.StepCreating).with(func(f *Facts) {
				condition(f, pavv1.VolumeProvisioned, "Queued", "pod pav-pods/create-1 is created as soon as it has a slot")
			}),
			want: w{"Queued", Waiting, "waits for a slot", "kubectl get pods -A -l", ""}},
		"the creation pod runs": {
			facts: making(pavv1.StepCreating).pod("create-1", pavv1.WorkflowCreation, running), want: w{"Working", Working, "the creation pod runs", "", ""}},
		"the creation pod runs for a long time": {
			facts: making(pavv1.StepCreating).pod("create-1", pavv1.WorkflowCreation, runningSince(-9*time.Minute)),
			want:  w{"RunsLong", Slow, "the creation pod runs (for 9m)", "kubectl pav logs pvc/data -n apps -f", "create-1/main"}},
		"the creation pod fits no node": {
			facts: making(pavv1.StepCreating).pod("create-1", pavv1.WorkflowCreation, notScheduled),
			want:  w{"PodUnschedulable", Failing, "the creation pod fits no node", "kubectl describe pod -n pav-pods create-1", ""}},
		"the creation pod's image cannot be pulled": {
			facts: making(pavv1.StepCreating).pod("create-1", pavv1.WorkflowCreation, waits("ImagePullBackOff")),
			want:  w{"ImageNotPulled", Failing, "an image of the creation pod cannot be pulled", "kubectl describe pod -n pav-pods create-1", ""}},
		"the creation pod fails and is restarted": {
			facts: making(pavv1.StepCreating).pod("create-1", pavv1.WorkflowCreation, waits("CrashLoopBackOff")),
			want:  w{"ContainerCrashes", Failing, "is restarted", "kubectl describe pod", "create-1/main"}},
		"a container has ended, and is about to be restarted": {
			facts: bound().client("web", "n1").stage("n1", staging).pod("stage-1", pavv1.WorkflowStaging, restartedAfter(0, false)),
			want:  w{"ContainerCrashes", Failing, "a container of the staging pod ends and is restarted", "kubectl logs -n pav-pods stage-1", "stage-1/main"}},
		"a container was restarted, and runs": {
			facts: bound().client("web", "n1").stage("n1", staging).pod("stage-1", pavv1.WorkflowStaging, restartedAfter(2, true)),
			want:  w{"ContainerCrashes", Failing, "ends and is restarted", "kubectl logs -n pav-pods stage-1", "stage-1"}},
		"a staging pod runs after one that failed": {
			facts: bound().client("web", "n1").stage("n1", func(s *pavv1.PavStage) {
				staging(s)
				s.Status.Attempt, s.Status.StagingFailure = 3, &pavv1.WorkflowFailure{Workflow: pavv1.WorkflowStaging, PodNamespace: "pav-pods", PodName: "stage-0", Message: "m"}
			}).pod("stage-1", pavv1.WorkflowStaging, running),
			want: w{"StagingFailed", Failing, "staging on node n1 failed, attempt 2; now the staging pod runs", "kubectl edit", "stage-0"}},
		"the claim was made larger than its volume": {
			facts: bound().client("web", "n1").with(clientsRun).stage("n1", nil).with(wantsMore),
			want:  w{"ExpansionUnsupported", Failing, "asks for 20Mi, and its volume has 16Mi: PavProvisioner", "kubectl edit pavprovisioner demo", ""}},
		"the claim of a static volume was made larger": {
			facts: bound().with(wantsMore).with(unrecorded).with(func(f *Facts) { f.Provisioner.Spec.VolumeExpansion = &pavv1.VolumeExpansion{} }),
			want:  w{"ExpansionUnsupported", Failing, "PaV has no record of the volume, so that it cannot be expanded", "create a larger claim", ""}},
		"the expansion has not begun": {
			facts: bound().with(wantsMore).with(expands),
			want:  w{"Expanding", Working, "asks for 20Mi, and its volume has 16Mi, and is about to be expanded", "", ""}},
		"the expansion failed": {
			facts: bound().with(wantsMore).with(expands).with(failsToExpand(pavv1.FailurePodFailed, "expand-1")),
			want:  w{"ExpansionFailed", Failing, "attempt 1 to expand it failed, and the next one follows", "kubectl edit pavprovisioner", "expand-1"}},
		"the expansion is infeasible": {
			facts: bound().with(wantsMore).with(expands).with(failsToExpand(pavv1.FailureInfeasible, "expand-1")),
			want:  w{"Infeasible", Failing, "says that this is infeasible", "kubectl edit pvc -n apps data", "expand-1"}},
		"the expansion is refused": {
			facts: bound().with(wantsMore).with(expands).with(failsToExpand(pavv1.FailureRefused, "")),
			want:  w{"ExpansionFailed", Failing, "the volume cannot be expanded; the next attempt follows", "kubectl edit pavprovisioner", ""}},
		"the expansion pod is about to be created": {
			facts: bound().with(wantsMore).with(expands).with(func(f *Facts) {
				f.Volume.Status.Step, f.Volume.Status.Pod = pavv1.StepExpanding, &pavv1.PodReference{Namespace: "pav-pods", Name: "expand-2"}
				f.Volume.Status.Expansion = &pavv1.VolumeExpansionRecord{Target: resource.MustParse("20Mi"), ChangeAttempt: pavv1.ChangeAttempt{Attempt: 2}}
			}),
			want: w{"Working", Working, "the expansion pod is about to be created", "", ""}},
		"the volume grows when no node has it": {
			facts: bound().client("web", "n1").with(clientsRun).stage("n1", nil).with(wantsMore).with(expands).with(func(f *Facts) {
				f.Volume.Status.Expansion = &pavv1.VolumeExpansionRecord{Target: resource.MustParse("20Mi"), Offline: true}
			}),
			want: w{"ExpandsOffline", Waiting, "is expanded when no node has it staged any more", "kubectl delete pod -n apps web", ""}},
		"a node is to make the new capacity available": {
			facts: bound().client("web", "n1").with(clientsRun).stage("n1", nil).with(wantsMore).with(expands).with(isGrownOnStorage),
			want:  w{"ExpandsOnNode", Working, "the volume has grown, and pods have 16Mi of it until a node has", "", ""}},
		"no node has the volume to make the new capacity available": {
			facts: bound().with(wantsMore).with(expands).with(isGrownOnStorage),
			want:  w{"ExpandsOnNode", Waiting, "the next one that gets the volume for a pod does that", "", ""}},
		"the node expansion pod runs": {
			facts: bound().client("web", "n1").with(clientsRun).stage("n1", expandsOnNode("")).pod("grow-1", pavv1.WorkflowNodeExpansion, running).with(wantsMore).with(isGrownOnStorage),
			want:  w{"Working", Working, "the node expansion pod runs (for 1s) on node n1, to 20Mi", "", ""}},
		"the node expansion pod is about to be created": {
			facts: bound().client("web", "n1").with(clientsRun).stage("n1", expandsOnNode("")).with(wantsMore).with(isGrownOnStorage),
			want:  w{"NodeExpansion", Working, "the expansion to 20Mi on node n1 is about to start", "", ""}},
		"the expansion on a node failed": {
			facts: bound().client("web", "n1").with(clientsRun).stage("n1", expandsOnNode(pavv1.FailurePodFailed)).with(wantsMore).with(isGrownOnStorage),
			want:  w{"NodeExpansionFailed", Failing, "the expansion to 20Mi on node n1 failed, attempt 2; kubelet tries again", "kubectl edit pavprovisioner", "grow-1"}},
		"the expansion on a node is infeasible": {
			facts: bound().client("web", "n1").with(clientsRun).stage("n1", expandsOnNode(pavv1.FailureInfeasible)).with(wantsMore).with(isGrownOnStorage),
			want:  w{"Infeasible", Failing, "the pod says that it is infeasible; the next attempt follows within 10m0s", "the pod says that it would fail again", "grow-1"}},
		"a volume that is expanded on a node is to be unstaged": {
			facts: bound().stage("n1", func(s *pavv1.PavStage) {
				expandsOnNode("")(s)
				s.Status.Phase = pavv1.StageUnstaging
			}).pod("grow-1", pavv1.WorkflowNodeExpansion, running),
			want: w{"Working", Working, "on node n1, and the volume is unstaged when it has ended", "", ""}},
		"a quota has no room for the creation pod": {
			facts: making("").failure(pavv1.WorkflowCreation, "", "m").because(pavv1.FailureQuotaExceeded, "team"),
			want:  w{"QuotaExceeded", Failing, "cannot be created", "kubectl describe resourcequota -n team", ""}},
		"the creation pod's namespace is not open": {
			facts: making("").failure(pavv1.WorkflowCreation, "", "m").because(pavv1.FailureNamespaceNotOpen, "team"),
			want:  w{"NamespaceNotOpen", Failing, "cannot be created", "kubectl label namespace team pav.albertofaria.github.io/allow-pods=true", ""}},
		"the creation pod violates Pod Security": {
			facts: making("").failure(pavv1.WorkflowCreation, "", "m").because(pavv1.FailurePodSecurity, "team"),
			want:  w{"PodSecurity", Failing, "cannot be created", "kubectl describe namespace team", ""}},
		"the definition needs a node that the StorageClass does not select": {
			facts: making("").failure(pavv1.WorkflowCreation, "", "'selectedNode' is undefined").because(pavv1.FailureRefused, "pav-pods"),
			want:  w{"CreationRefused", Failing, "the creation pod cannot be created", "volumeBindingMode: WaitForFirstConsumer", ""}},
		"the creation pod says that it is infeasible": {
			facts: making("").failure(pavv1.WorkflowCreation, "create-1", "m").because(pavv1.FailureInfeasible, "pav-pods"),
			want:  w{"Infeasible", Failing, "the pod says that this is infeasible; attempt 3 follows in 1.9s, or when the claim or the definition changes", "change the claim, the definition or the storage", "create-1"}},
		"another object uses the storage": {
			facts: making("").failure(pavv1.WorkflowCreation, "create-1", "m").because(pavv1.FailureHandleInUse, "pav-pods"),
			want:  w{"HandleInUse", Failing, "attempt 3 follows in 1.9s", "give each volume and each snapshot a handle", "create-1"}},
		"another object uses the storage, and PaV waits for that object": {
			facts: making("").failure(pavv1.WorkflowCreation, "create-1", "m").because(pavv1.FailureHandleInUse, "pav-pods").
				with(func(f *Facts) { f.Volume.Status.Failure.NextAttemptTime = nil }),
			want: w{"HandleInUse", Failing, "no attempt follows while that object exists", "give each volume and each snapshot a handle", "create-1"}},
		"the time of the next attempt is not known": {
			facts: making("").failure(pavv1.WorkflowCreation, "create-1", "m").with(func(f *Facts) { f.Volume.Status.Failure.NextAttemptTime = nil }),
			want:  w{"CreationFailed", Failing, "attempt 3 follows", "kubectl edit pavprovisioner demo", "create-1"}},
		"an earlier version's failure has the reason of another one": {
			facts: making("").failure(pavv1.WorkflowCreation, "create-1", "m").because(pavv1.FailureQuotaExceeded, "pav-pods").
				with(func(f *Facts) { f.Volume.Status.Failure.NextAttemptTime = at(-time.Hour) }),
			want: w{"CreationFailed", Failing, "attempt 3 follows", "kubectl edit pavprovisioner demo", "create-1"}},
		"a quota had no room, and the creation pod runs": {
			facts: making(pavv1.StepCreating).failure(pavv1.WorkflowCreation, "", "m").because(pavv1.FailureQuotaExceeded, "pav-pods").pod("create-1", pavv1.WorkflowCreation, running),
			want:  w{"Working", Working, "the creation pod runs", "", ""}},
		"the creation pod succeeded after one that failed, and the PersistentVolume cannot be written": {
			facts: making("").failure(pavv1.WorkflowCreation, "create-0", "m").with(func(f *Facts) {
				f.Volume.Status.Handle = "h"
				condition(f, pavv1.VolumeProvisioned, "Conflict", "PersistentVolume exists")
			}),
			want: w{"PersistentVolumeRefused", Failing, "its PersistentVolume cannot be", "kubectl get pv pvc-u1", ""}},
		"the record was restored while a creation pod was recorded": {
			facts: making(pavv1.StepCreating).with(func(f *Facts) { condition(f, pavv1.VolumeProvisioned, "Restored", "restore the PersistentVolume") }),
			want:  w{"Restored", Failing, "restored from a backup", "", ""}},
		"the validation pod was removed by force": {
			facts: making("").failure(pavv1.WorkflowValidation, "validate-1", "m").because(pavv1.FailurePodRemoved, "pav-pods"),
			want:  w{"ValidationFailed", Failing, "validation attempt 2 failed; attempt 3 follows", "kubectl edit", "validate-1"}},
		"a quota has no room for the validation pod": {
			facts: making("").failure(pavv1.WorkflowValidation, "", "m").because(pavv1.FailureQuotaExceeded, "team"),
			want:  w{"QuotaExceeded", Failing, "the validation pod cannot be created", "kubectl describe resourcequota -n team", ""}},
		"the claim is refused without a pod": {
			facts: making("").failure(pavv1.WorkflowValidation, "", "PersistentVolume exists").because(pavv1.FailureRefused, ""),
			want:  w{"ValidationFailed", Failing, "the claim is refused; attempt 3 follows", "kubectl edit pavprovisioner demo", ""}},
		"the creation pod's template is wrong": {
			facts: making("").failure(pavv1.WorkflowCreation, "", `spec.volumeCreation.capacity: line 1, column 4: "x" is undefined`),
			want:  w{"CreationRefused", Failing, "attempt 3 follows in 1.9s", "kubectl edit pavprovisioner demo", ""}},
		"the creation pod fails": {
			facts: making("").failure(pavv1.WorkflowCreation, "create-1", "pod pav-pods/create-1 failed: no such user; see kubectl logs -n pav-pods create-1").
				pod("create-1", pavv1.WorkflowCreation, failedWith(7)),
			want: w{"CreationFailed", Failing, "creation attempt 2 failed", "kubectl logs -n pav-pods create-1", "create-1/main"}},
		"the creation pod has failed, and the next one runs": {
			facts: making(pavv1.StepCreating).failure(pavv1.WorkflowCreation, "create-0", "pod pav-pods/create-0 failed").pod("create-1", pavv1.WorkflowCreation, running),
			want:  w{"ProvisioningFailed", Failing, "now the creation pod runs", "kubectl edit", "create-0"}},
		"the creation pod has failed, and is being reverted": {
			facts: making(pavv1.StepReverting).failure(pavv1.WorkflowCreation, "create-0", "pod pav-pods/create-0 failed").pod("create-1", pavv1.WorkflowDeletion, running),
			want:  w{"CreationFailed", Failing, "is being reverted", "", "create-0"}},
		"validation refuses the claim": {
			facts: making("").failure(pavv1.WorkflowValidation, "validate-1", "pod pav-pods/validate-1 failed: too large"),
			want:  w{"ValidationFailed", Failing, "validation refuses the claim", "create a claim", "validate-1"}},

		"the volume is healthy": {facts: bound().stage("n1", nil).client("web", "n1").with(clientsRun), want: w{"Healthy", Healthy, "available on node n1, and pod web uses it", "", ""}},
		"the volume is not used": {
			facts: bound(), want: w{"Healthy", Healthy, "no pod uses it", "", ""}},
		"the provisioner of a bound volume is gone": {
			facts: bound().with(func(f *Facts) { f.Provisioner = nil }), want: w{"NoProvisioner", Failing, `no PavProvisioner "demo"`, "kubectl get pavprovisioners", ""}},
		"the claim waits for its pods to go": {
			facts: bound().client("web", "n1").with(clientsRun).with(func(f *Facts) { f.Claim.DeletionTimestamp = at(0) }),
			want:  w{"ClaimDeleting", Waiting, "waits for pod web", "kubectl delete pod -n apps web", ""}},
		"the PersistentVolume was removed by force": {
			facts: bound().with(func(f *Facts) { f.PV = nil; f.Claim.Status.Phase = corev1.ClaimLost }), want: w{"Lost", Failing, "is gone", "kubectl delete pvc -n apps data", ""}},

		"a staging pod fails": {
			facts: bound().client("web", "n1").stage("n1", func(s *pavv1.PavStage) {
				s.Status.Phase = pavv1.StageFailed
				s.Status.StagingFailure = &pavv1.WorkflowFailure{Workflow: pavv1.WorkflowStaging, PodNamespace: "pav-pods", PodName: "stage-1", Message: "m"}
			}),
			want: w{"StagingFailed", Failing, "staging on node n1 failed", "kubectl edit", "stage-1"}},
		"no pod needs the volume where staging failed": {
			facts: bound().stage("n2", func(s *pavv1.PavStage) {
				s.Status.Phase = pavv1.StageFailed
				s.Status.StagingFailure = &pavv1.WorkflowFailure{Workflow: pavv1.WorkflowStaging, Message: "m"}
			}),
			want: w{"Healthy", Healthy, "no pod uses it", "", ""}},
		"a staging pod is not ready for a long time": {
			facts: bound().client("web", "n1").stage("n1", staging).pod("stage-1", pavv1.WorkflowStaging, runningSince(-3*time.Minute)),
			want:  w{"RunsLong", Slow, "nor created /pav/ready", "kubectl pav logs pvc/data -n apps -f", "stage-1/main"}},
		"a staging pod is not ready for so long that it hangs": {
			facts: bound().client("web", "n1").stage("n1", staging).pod("stage-1", pavv1.WorkflowStaging, runningSince(-10*time.Minute)),
			want:  w{"RunsLong", Failing, "nor created /pav/ready", "kubectl pav logs pvc/data -n apps -f", "stage-1/main"}},
		"a dead volume is staged again": {
			facts: bound().client("web", "n1").with(clientsRun).stage("n1", func(s *pavv1.PavStage) { s.Status.Restaging = true }),
			want:  w{"Restaging", Failing, "is dead on node n1, and is being staged again", "", ""}},
		"an unstaging pod fails": {
			facts: bound().stage("n1", func(s *pavv1.PavStage) {
				s.Spec.Exclusive, s.Status.Phase, s.Status.UnstagingAttempt = true, pavv1.StageUnstaging, 4
				s.Status.UnstagingFailure = &pavv1.WorkflowFailure{Workflow: pavv1.WorkflowUnstaging, Message: "target is busy", Time: *at(-time.Second), NextAttemptTime: at(3 * time.Second)}
			}),
			want: w{"UnstagingFailed", Failing, "attempt 3; the next one follows in 3s; until then no other node", "kubectl edit", ""}},
		"another node has the volume": {
			facts: bound().stage("n1", func(s *pavv1.PavStage) { s.Spec.Exclusive = true }).client("web", "n1").with(clientsRun).client("api", "n2"),
			want:  w{"HeldByNode", Failing, "pod api waits: the volume may be on one node at a time, and is still on node n1", "kubectl delete pod -n apps web", ""}},
		"the volume is dead": {
			facts: bound().client("web", "n1").with(clientsRun).stage("n1", func(s *pavv1.PavStage) {
				s.Status.Conditions = []metav1.Condition{{Type: pavv1.StageDegraded, Status: metav1.ConditionTrue, Reason: "VolumeDead", Message: "the volume never answers again"}}
			}),
			want: w{"VolumeDead", Failing, "on node n1", "kubectl delete pod -n apps web", ""}},
		"the staging pod of a volume in use is deleted": {
			facts: bound().client("web", "n1").with(clientsRun).stage("n1", served).pod("stage-1", pavv1.WorkflowStaging, stopping),
			want:  w{"StagingPodStopping", Failing, "the staging pod on node n1 is being stopped", "", ""}},
		"the volume was staged again under a pod": {
			facts: bound().client("web", "n1").with(clientsRun).with(mounts(nil)).stage("n1", restaged).pod("stage-2", pavv1.WorkflowStaging, youngerThanClients),
			want:  w{"ClientNotRestarted", Failing, "pod web was started before the volume was staged again", "kubectl delete pod -n apps web", ""}},
		"the volume was staged again under a pod that gets new mounts": {
			facts: bound().client("web", "n1").with(clientsRun).with(mounts(new(corev1.MountPropagationHostToContainer))).stage("n1", restaged).pod("stage-2", pavv1.WorkflowStaging, youngerThanClients),
			want:  w{"Healthy", Healthy, "pod web uses it", "", ""}},
		"the driver is not registered": {
			facts: bound().client("web", "n1").with(func(f *Facts) { f.Nodes["n1"].Registration = &storagev1.CSINode{} }),
			want:  w{"DriverNotRegistered", Failing, `has not registered driver "demo"`, "kubectl -n storage logs", ""}},
		"no agent is on the node": {
			facts: bound().client("web", "n1").with(func(f *Facts) { f.Nodes["n1"].Agent, f.Nodes["n1"].AgentMissing = nil, true }),
			want:  w{"AgentNotRunning", Failing, "not on node n1", "kubectl -n storage describe daemonset", ""}},
		"the agent does not run": {
			facts: bound().client("web", "n1").with(func(f *Facts) { f.Nodes["n1"].Agent.Status.Conditions = nil }),
			want:  w{"AgentNotRunning", Failing, "does not run on node n1", "kubectl -n storage get pods", ""}},
		"the node is lost": {
			facts: bound().client("web", "n1").with(func(f *Facts) { f.Nodes["n1"].Object.Status.Conditions[0].Status = corev1.ConditionUnknown }),
			want:  w{"NodeNotReady", Failing, "node n1 has not been ready", "kubectl describe node n1", ""}},
		"the client fits no node": {
			facts: bound().client("web", "").with(unschedulable), want: w{"ClientUnscheduled", Failing, "pod web fits no node", "kubectl describe pod -n apps web", ""}},
		"the client does not start for another reason": {
			facts: bound().stage("n1", nil).client("web", "n1").with(func(f *Facts) { waits("ImagePullBackOff")(&f.Clients[0]) }),
			want:  w{"ClientNotStarted", Failing, "for another reason", "kubectl describe pod -n apps web", ""}},
		"kubelet reports a failed mount": {
			facts: bound().client("web", "n1").event("Pod", "FailedMount", "MountVolume.SetUp failed"),
			want:  w{"ClientWaits", Failing, "pod web has not started on node n1", "kubectl describe pod -n apps web", ""}},
		"the client is about to start": {
			facts: bound().client("web", "n1"), want: w{"ClientWaits", Working, "about to start", "", ""}},

		"a deletion pod fails": {
			facts: deleting().with(func(f *Facts) {
				f.Volume.Status.DeletionAttempt = 5
				f.Volume.Status.DeletionFailure = &pavv1.WorkflowFailure{Workflow: pavv1.WorkflowDeletion, Message: "not empty", Time: *at(-time.Second), NextAttemptTime: at(15 * time.Second)}
			}),
			want: w{"DeletionFailed", Failing, "deletion attempt 5 failed; the next one follows in 15s", "kubectl edit", ""}},
		"deletion waits for a stage": {
			facts: deleting().stage("n1", nil).client("web", "n1").with(clientsRun).with(func(f *Facts) {
				condition(f, pavv1.VolumeDeleted, "StillStaged", "waiting for the volume to be unstaged on node n1")
			}),
			want: w{"StillStaged", Waiting, "until the volume is unstaged", "kubectl delete pod -n apps web", ""}},
		"deletion waits, as the record was restored": {
			facts: deleting().with(func(f *Facts) { condition(f, pavv1.VolumeDeleted, "Restored", "delete the PavVolume") }),
			want:  w{"Restored", Failing, "restored from a backup", "", ""}},
		"deletion has no provisioner": {
			facts: deleting().with(func(f *Facts) { f.Provisioner = nil }), want: w{"NoProvisioner", Failing, "defines how to delete", "kubectl get pavprovisioners", ""}},
		"the deletion pod runs": {
			facts: deleting().with(func(f *Facts) {
				f.Volume.Status.Step, f.Volume.Status.Pod = pavv1.StepDeleting, &pavv1.PodReference{Namespace: "pav-pods", Name: "delete-1"}
			}).pod("delete-1", pavv1.WorkflowDeletion, running),
			want: w{"Working", Working, "the deletion pod runs", "", ""}},
		"the volume is retained": {
			facts: deleting().with(func(f *Facts) { f.Volume.Status.Phase = pavv1.VolumeRetained }), want: w{"Retained", Waiting, "administrator", "kubectl patch pv pvc-u1", ""}},
		"PaV has no record of a volume that is to be deleted": {
			facts: deleting().with(func(f *Facts) { f.Volume = nil }), want: w{"NoRecord", Failing, "no record", "kubectl delete pv pvc-u1", ""}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			report := Build(test.facts.f)
			got := report.Findings[0]
			next := ""
			if len(got.Next) > 0 {
				if next = got.Next[0].Command; next == "" {
					next = got.Next[0].Text
				}
			}
			pod := ""
			if got.Pod != nil {
				pod = strings.TrimSuffix(got.Pod.Name+"/"+got.Pod.Container, "/")
			}
			if got.Code != test.want.code || got.State != test.want.state || report.State != got.State ||
				!strings.Contains(got.Summary, test.want.summary) || !strings.Contains(next, test.want.next) || test.want.next == "" && next != "" && test.want.state == Healthy || pod != test.want.pod {
				t.Errorf("want %+v, pod %q, got %s, next %q, pod %q", test.want, test.want.pod, cmp.Diff(Finding{}, got), next, pod)
			}
		})
	}
}

// A retry stops a pod that has run for more than half a minute.
func TestDiagnose_OfAPodThatRunsForLong_OffersARetry(t *testing.T) {
	for since, want := range map[time.Duration]string{-20 * time.Second: "", -40 * time.Second: "kubectl pav retry pvc/data -n apps"} {
		got := ""
		if next := Build(making(pavv1.StepCreating).pod("create-1", pavv1.WorkflowCreation, runningSince(since)).f).Findings[0].Next; len(next) > 1 {
			got = next[1].Command
		}
		if got != want {
			t.Errorf("after %s: got the command %q, want %q", -since, got, want)
		}
	}
}

// What has mistakes is used all the same, and must not hide what is the matter.
func TestDiagnose_OfADefinitionWithMistakes_BeginsWithTheMainProblem(t *testing.T) {
	mistakes := func(f *Facts) {
		f.Provisioner.Status.Conditions = []metav1.Condition{{Type: pavv1.ProvisionerAccepted, Status: metav1.ConditionFalse, Reason: pavv1.ProvisionerInvalid, Message: "spec.a: no"}}
	}
	for first, facts := range map[string]*world{
		"ClaimRefused":     pendingClaim().event("PersistentVolumeClaim", "ProvisioningFailed", "spec.selector: remove it"),
		"WaitsForConsumer": pendingClaim().with(waitsForConsumer),
		"NotBegun":         pendingClaim(),
	} {
		t.Run(first, func(t *testing.T) {
			found := Build(facts.with(mistakes).f).Findings
			if len(found) != 2 || found[0].Code != first || found[1].Code != "ProvisionerInvalid" || found[1].Reason != "spec.a: no" {
				t.Errorf("got %+v", found)
			}
		})
	}
}
