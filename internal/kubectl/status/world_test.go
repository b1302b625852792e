package status

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// noon is when everything is looked at.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func atNoon() time.Time { return noon }

func at(after time.Duration) *metav1.Time {
	at := metav1.NewTime(noon.Add(after))
	return &at
}

// world builds facts.
type world struct{ f *Facts }

func (w *world) with(change func(*Facts)) *world { change(w.f); return w }

// pendingClaim is a claim apps/data of a class of provisioner demo, which PaV has not begun with.
func pendingClaim() *world {
	return &world{&Facts{
		Now:            noon,
		Subject:        Ref{Claim, "apps", "data"},
		AgentNamespace: "storage",
		Claim: &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "data", UID: "u1", CreationTimestamp: *at(-2 * time.Second)},
			Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: new("fast"), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}},
			Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending},
		},
		Class: &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, Provisioner: "demo"},
		Provisioner: &pavv1.PavProvisioner{ObjectMeta: metav1.ObjectMeta{Name: "demo"},
			Spec: pavv1.PavProvisionerSpec{ProvisioningModes: []pavv1.ProvisioningMode{pavv1.ProvisioningModeDynamic}}},
		Nodes: map[string]*Node{},
	}}
}

// making is one whose volume is at a step, in its second attempt.
func making(step pavv1.VolumeStep) *world {
	return pendingClaim().with(func(f *Facts) {
		f.Volume = &pavv1.PavVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "pvc-u1", UID: "v1", CreationTimestamp: *at(-2 * time.Second)},
			Spec:       pavv1.PavVolumeSpec{Provisioner: "demo", ClaimRef: pavv1.ClaimReference{Namespace: "apps", Name: "data", UID: "u1"}},
			Status:     pavv1.PavVolumeStatus{Phase: pavv1.VolumePending, Step: step, Attempt: 2},
		}
		if step != "" {
			f.Volume.Status.Pod = &pavv1.PodReference{Namespace: "pav-pods", Name: "create-1"}
		}
	})
}

// bound is one whose volume exists.
func bound() *world {
	return making("").with(func(f *Facts) {
		f.Claim.Spec.VolumeName, f.Claim.Status.Phase = "pvc-u1", corev1.ClaimBound
		f.Volume.Status = pavv1.PavVolumeStatus{Phase: pavv1.VolumeReady, Handle: "h", Attempt: 1,
			Conditions: []metav1.Condition{{Type: pavv1.VolumeProvisioned, Status: metav1.ConditionTrue, LastTransitionTime: *at(-time.Second)}}}
		f.PV = &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "pvc-u1", CreationTimestamp: *at(-time.Second)},
			Spec: corev1.PersistentVolumeSpec{
				Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
				PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
				ClaimRef:                      &corev1.ObjectReference{Namespace: "apps", Name: "data", UID: "u1"},
				PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "demo", VolumeHandle: "h"}},
			},
			Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound},
		}
	})
}

// deleting is one whose claim is gone.
func deleting() *world {
	return bound().with(func(f *Facts) {
		f.Claim, f.Class = nil, nil
		f.PV.Status.Phase = corev1.VolumeReleased
		f.Volume.Status.Phase = pavv1.VolumeDeleting
	})
}

func (w *world) node(name string) *world {
	ready := []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	w.f.Nodes[name] = &Node{
		Object:       &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}},
		Registration: &storagev1.CSINode{Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: "demo"}}}},
		Agent:        &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "node-agent-" + name}, Status: corev1.PodStatus{Conditions: ready}},
	}
	return w
}

// stage adds a stage that is Staged, changed.
func (w *world) stage(node string, change func(*pavv1.PavStage)) *world {
	s := pavv1.PavStage{
		ObjectMeta: metav1.ObjectMeta{Name: "stage-" + node, CreationTimestamp: *at(-time.Second)},
		Spec: pavv1.PavStageSpec{Provisioner: "demo", VolumeName: "pvc-u1", NodeName: node, Scope: pavv1.StagingScopeNode,
			ClaimRef: pavv1.ClaimReference{Namespace: "apps", Name: "data", UID: "u1"}},
		Status: pavv1.PavStageStatus{Phase: pavv1.StageStaged, Attempt: 1},
	}
	if change != nil {
		change(&s)
	}
	w.f.Stages = append(w.f.Stages, s)
	return w.node(node)
}

// client adds a pod that uses the claim, and has not started.
func (w *world) client(name, node string) *world {
	w.f.Clients = append(w.f.Clients, corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: name, UID: types.UID(name), CreationTimestamp: *at(-time.Second)},
		Spec:       corev1.PodSpec{NodeName: node},
		Status:     corev1.PodStatus{Phase: corev1.PodPending},
	})
	if node == "" {
		return w
	}
	return w.node(node)
}

// pod adds a workflow pod.
func (w *world) pod(name, kind string, change func(*corev1.Pod)) *world {
	p := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "pav-pods", Name: name, UID: types.UID(name), CreationTimestamp: *at(-time.Second),
			Labels: map[string]string{pavv1.WorkflowLabel: kind}, Annotations: map[string]string{pavv1.AttemptAnnotation: "1"}},
		Spec:   corev1.PodSpec{NodeName: "n1"},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	change(&p)
	w.f.Pods = append(w.f.Pods, p)
	return w
}

// failure records that the last attempt to provision failed just now.
func (w *world) failure(kind, pod, message string) *world {
	failure := &pavv1.WorkflowFailure{Workflow: kind, Message: message, Time: *at(-100 * time.Millisecond), NextAttemptTime: at(1900 * time.Millisecond)}
	if pod != "" {
		failure.PodNamespace, failure.PodName = "pav-pods", pod
	}
	w.f.Volume.Status.Failure = failure
	return w
}

// because gives the failure a reason, and the namespace of the pod that was not created.
func (w *world) because(reason pavv1.FailureReason, namespace string) *world {
	w.f.Volume.Status.Failure.Reason, w.f.Volume.Status.Failure.PodNamespace = reason, namespace
	return w
}

// event adds a warning about the claim, or about the first client.
func (w *world) event(kind, reason, message string) *world {
	e := corev1.Event{Type: corev1.EventTypeWarning, Reason: reason, Message: message, Count: 1, FirstTimestamp: *at(-time.Second), LastTimestamp: *at(-time.Second),
		InvolvedObject: corev1.ObjectReference{Kind: kind, Namespace: "apps", Name: "data", UID: "u1"}}
	if kind == "Pod" {
		e.InvolvedObject.Name, e.InvolvedObject.UID = w.f.Clients[0].Name, w.f.Clients[0].UID
	}
	w.f.Events = append(w.f.Events, e)
	return w
}

func condition(f *Facts, kind, reason, message string) {
	f.Volume.Status.Conditions = []metav1.Condition{{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message}}
}

func waitsForConsumer(f *Facts) {
	f.Class.VolumeBindingMode = new(storagev1.VolumeBindingWaitForFirstConsumer)
}

// staging is a stage whose staging pod is recorded.
func staging(s *pavv1.PavStage) {
	s.Status.Phase, s.Status.StagingPod = pavv1.StageStaging, &pavv1.PodReference{Namespace: "pav-pods", Name: "stage-1"}
}

// served is a staged stage whose staging pod is recorded.
func served(s *pavv1.PavStage) {
	staging(s)
	s.Status.Phase = pavv1.StageStaged
}

// stopping is a pod that runs and is being deleted.
func stopping(pod *corev1.Pod) {
	running(pod)
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = at(29*time.Second), new(int64(30))
}

// mounts lets the clients mount the claim with a propagation.
func mounts(propagation *corev1.MountPropagationMode) func(*Facts) {
	return func(f *Facts) {
		for i := range f.Clients {
			f.Clients[i].Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
			f.Clients[i].Spec.Containers = []corev1.Container{{Name: "main", VolumeMounts: []corev1.VolumeMount{{Name: "v", MountPropagation: propagation}}}}
		}
	}
}

// restaged is a stage that has its second staging pod.
func restaged(s *pavv1.PavStage) {
	s.Status.StagingPod = &pavv1.PodReference{Namespace: "pav-pods", Name: "stage-2"}
}

// restartedAfter is a pod whose container has ended with an exit code, and is restarted; it may run again.
func restartedAfter(code int32, runs bool) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		running(pod)
		s := &pod.Status.ContainerStatuses[0]
		ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}
		s.RestartCount = 3
		if runs {
			s.LastTerminationState = ended
		} else {
			s.State = ended
		}
	}
}

func youngerThanClients(pod *corev1.Pod) {
	running(pod)
	pod.CreationTimestamp = *at(-500 * time.Millisecond)
}

func unschedulable(f *Facts) { notScheduled(&f.Clients[0]) }

func clientsRun(f *Facts) {
	for i := range f.Clients {
		running(&f.Clients[i])
	}
}

// tenant is someone who may read his own namespace only.
func tenant(f *Facts) {
	f.Class, f.Provisioner, f.Volume, f.PV = nil, nil, nil, nil
	f.Hidden = []string{hiddenClasses, hiddenProvisioners, hiddenVolumes, hiddenPVs, hiddenPods, hiddenStages}
}

func running(pod *corev1.Pod) { runningSince(-time.Second)(pod) }

func runningSince(since time.Duration) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Phase = corev1.PodRunning
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: *at(since)}}}}
	}
}

func notScheduled(pod *corev1.Pod) {
	pod.Spec.NodeName = ""
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/2 nodes are available"}}
}

func waits(reason string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		s := corev1.ContainerStatus{Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}
		if reason == "CrashLoopBackOff" {
			s.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, FinishedAt: *at(-time.Second), StartedAt: *at(-time.Second)}
		}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{s}
	}
}

func failedWith(code int32) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Phase = corev1.PodFailed
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: code, StartedAt: *at(-time.Second), FinishedAt: *at(0)}}}}
	}
}
