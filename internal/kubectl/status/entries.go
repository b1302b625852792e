package status

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/kubectl/cli"
	"github.com/albertofaria/pav/internal/workflow"
)

// The order of entries in the same second, as Kubernetes records whole seconds: causes come before effects.
const (
	rankClaim = 10 * iota
	rankVolume
	rankMaking
	rankPV
	rankClient
	rankStage
	rankStaging
	rankRunning
	rankEvent
	rankEnd
	rankUnstaging
	rankDeletion
)

// entries returns everything that has happened, in the order of time.
func entries(f *Facts) []Entry {
	var all []Entry
	switch {
	case f.Snapshot != nil:
		all = append(all, snapshotEntries(f)...)
	case f.Bucket != nil:
		all = append(all, bucketEntries(f)...)
	default:
		all = append(all, claimEntries(f)...)
		all = append(all, volumeEntries(f)...)
	}
	for i := range f.Pods {
		all = append(all, podEntries(f, &f.Pods[i])...)
	}
	for i := range f.Gone {
		all = append(all, goneEntries(f, &f.Gone[i])...)
	}
	for i := range f.Stages {
		all = append(all, stageEntries(f, &f.Stages[i])...)
	}
	for i := range f.Clients {
		if f.Bucket == nil {
			all = append(all, clientEntries(&f.Clients[i])...)
		}
	}
	for name, node := range f.Nodes {
		all = append(all, nodeEntries(name, node)...)
	}
	all = append(all, eventEntries(f)...)
	all = slices.DeleteFunc(all, func(e Entry) bool { return e.Time.IsZero() })
	slices.SortStableFunc(all, func(a, b Entry) int {
		return cmp.Or(a.Time.Truncate(time.Second).Compare(b.Time.Truncate(time.Second)),
			cmp.Compare(a.rank, b.rank), a.Time.Compare(b.Time.Time), cmp.Compare(a.Object, b.Object))
	})
	return all
}

func claimEntries(f *Facts) []Entry {
	claim := f.Claim
	if claim == nil {
		return nil
	}
	const object = "claim"
	request := requestWhenCreated(f)
	what := fmt.Sprintf("created: %s, %s", request.String(), modes(claim.Spec.AccessModes))
	if mode := claim.Spec.VolumeMode; mode != nil && *mode == corev1.PersistentVolumeBlock {
		what += ", Block"
	}
	all := []Entry{{Time: claim.CreationTimestamp, Object: object, What: what, rank: rankClaim}}
	return append(all, deleted(&claim.ObjectMeta, object, rankEnd)...)
}

// requestWhenCreated returns the request of the claim when its volume was created: the claim may have been changed since.
func requestWhenCreated(f *Facts) resource.Quantity {
	if f.Volume != nil && f.Volume.Status.ProvisionedClaim != nil {
		was := &corev1.PersistentVolumeClaim{}
		if err := json.Unmarshal(f.Volume.Status.ProvisionedClaim.Raw, was); err == nil {
			return was.Spec.Resources.Requests[corev1.ResourceStorage]
		}
	}
	return f.Claim.Spec.Resources.Requests[corev1.ResourceStorage]
}

func modes(all []corev1.PersistentVolumeAccessMode) string {
	var words []string
	for _, mode := range all {
		words = append(words, string(mode))
	}
	return strings.Join(words, ", ")
}

// deleted returns the entry about the deletion of an object. The deletion timestamp is the end of the grace period.
func deleted(object *metav1.ObjectMeta, name string, rank int) []Entry {
	if object.DeletionTimestamp == nil {
		return nil
	}
	at := *object.DeletionTimestamp
	if grace := object.DeletionGracePeriodSeconds; grace != nil {
		at = metav1.NewTime(at.Add(-time.Duration(*grace) * time.Second))
	}
	return []Entry{{Time: at, Object: name, What: "deletion asked for", rank: rank}}
}

func volumeEntries(f *Facts) []Entry {
	var all []Entry
	if v := f.Volume; v != nil {
		const object = "volume"
		if !v.Spec.Static {
			all = append(all, Entry{Time: v.CreationTimestamp, Object: object, What: "provisioning began, by " + v.Spec.Provisioner, rank: rankVolume})
		}
		if c := meta.FindStatusCondition(v.Status.Conditions, pavv1.VolumeProvisioned); c != nil && c.Status == metav1.ConditionTrue && !v.Spec.Static {
			all = append(all, Entry{Time: c.LastTransitionTime, Object: object, What: "provisioned", State: Healthy,
				Duration: took(v.CreationTimestamp.Time, c.LastTransitionTime.Time), Of: "in all", rank: rankPV + 1})
		}
		for _, failure := range v.Status.Failures() {
			all = append(all, failureEntry(f, object, failure)...)
		}
		if v.Status.Phase != pavv1.VolumeReady {
			all = append(all, deleted(&v.ObjectMeta, object, rankEnd+1)...)
		}
	}
	if pv := f.PV; pv != nil {
		capacity := pv.Spec.Capacity[corev1.ResourceStorage]
		all = append(all, Entry{Time: pv.CreationTimestamp, Object: "pv", What: fmt.Sprintf("created: %s, reclaim policy %s", capacity.String(), pv.Spec.PersistentVolumeReclaimPolicy), rank: rankPV})
		all = append(all, deleted(&pv.ObjectMeta, "pv", rankEnd)...)
		if since := pv.Status.LastPhaseTransitionTime; since != nil && (pv.Status.Phase == corev1.VolumeReleased || pv.Status.Phase == corev1.VolumeFailed) {
			all = append(all, Entry{Time: *since, Object: "pv", What: strings.ToLower(string(pv.Status.Phase)), rank: rankEnd})
		}
	}
	return all
}

// failureEntry returns the entry about a failure that has no event.
func failureEntry(f *Facts, object string, failure *pavv1.WorkflowFailure) []Entry {
	if failure == nil {
		return nil
	}
	message := firstLine(Brief(failure.Message))
	for i := range f.Events {
		if strings.Contains(f.Events[i].Message, message[:min(len(message), 60)]) {
			return nil
		}
	}
	return []Entry{{Time: failure.Time, Object: object, What: cli.Phase(failure.Workflow) + " failed: " + message, State: Failing, rank: rankEvent}}
}

// rankOf returns the rank of a workflow's pods.
func rankOf(pod *corev1.Pod) int {
	switch pod.Labels[pavv1.WorkflowLabel] {
	case pavv1.WorkflowDeletion, pavv1.WorkflowSnapshotDeletion, pavv1.WorkflowBucketDeletion, pavv1.WorkflowRevocation:
		return rankDeletion
	case pavv1.WorkflowGrant:
		return rankPV // after the bucket
	case pavv1.WorkflowUnstaging:
		return rankUnstaging
	case pavv1.WorkflowStaging:
		return rankStaging
	case pavv1.WorkflowNodeExpansion:
		return rankStaging + 1
	}
	if pod.Labels[pavv1.StageLabel] != "" {
		return rankStaging - 2
	}
	return rankMaking
}

// podEntries returns the entries about a workflow pod: how long it waited, when it began and how it ended.
func podEntries(f *Facts, pod *corev1.Pod) []Entry {
	kind, rank := cli.Phase(pod.Labels[pavv1.WorkflowLabel]), rankOf(pod)
	object := "pod " + pod.Name
	all := []Entry{createdEntry(f, pod)}
	began, ended := began(pod), ended(pod)
	if !began.IsZero() {
		what := "started"
		if pod.Spec.NodeName != "" {
			what += " on node " + pod.Spec.NodeName
		}
		all = append(all, Entry{Time: began, Object: object, What: what, Duration: took(pod.CreationTimestamp.Time, began.Time), Of: "start", rank: rank + 1})
	}
	all = append(all, deleted(&pod.ObjectMeta, object, rank+2)...)
	end := Entry{Time: ended, Object: object, Duration: took(began.Time, ended.Time), Of: "run", rank: rank + 3}
	switch state := workflow.Observe(pod); {
	case state == workflow.Succeeded && hasFailed(f, pod):
		end.What = kind + " pod completed" // without what it was to leave in /pav, as another entry says
	case state == workflow.Succeeded:
		end.What, end.State = kind+" succeeded", Healthy
	case state == workflow.Failed && pod.DeletionTimestamp != nil && rank == rankStaging:
		// The staging pod ran as long as its volume was needed, and was then stopped.
		end.What = "staging pod ended"
	case state == workflow.Failed:
		end.What, end.State = kind+" pod failed"+exit(pod), Failing
	default:
		return all
	}
	return append(all, end)
}

// hasFailed reports whether the failure of a pod is recorded.
func hasFailed(f *Facts, pod *corev1.Pod) bool {
	failures := f.Bucket.failures()
	if f.Volume != nil {
		failures = append(failures, f.Volume.Status.Failures()...)
	}
	for i := range f.Snapshots {
		failures = append(failures, f.Snapshots[i].Status.Failures()...)
	}
	for i := range f.Stages {
		failures = append(failures, f.Stages[i].Status.StagingFailure, f.Stages[i].Status.UnstagingFailure)
	}
	return slices.ContainsFunc(failures, func(failure *pavv1.WorkflowFailure) bool {
		return failure != nil && failure.PodName == pod.Name && failure.PodNamespace == pod.Namespace
	})
}

func createdEntry(f *Facts, pod *corev1.Pod) Entry {
	e := Entry{Time: pod.CreationTimestamp, Object: "pod " + pod.Name, What: cli.Phase(pod.Labels[pavv1.WorkflowLabel]) + " pod created", rank: rankOf(pod)}
	if pod.Namespace != workflow.DefaultNamespace {
		e.What += " in namespace " + pod.Namespace
	}
	if since := wanted(f, pod); !since.IsZero() {
		e.Duration, e.Of = took(since, pod.CreationTimestamp.Time), "queue"
		if e.rank == rankStaging {
			e.Of = "wait" // nodes have no queue
		}
	}
	return e
}

// goneEntries returns the entries about a workflow pod that was removed, as far as events tell.
func goneEntries(f *Facts, pod *GonePod) []Entry {
	kind, object, rank := cli.Phase(pod.Workflow), "pod "+pod.Name, rankMaking
	switch pod.Workflow {
	case pavv1.WorkflowDeletion, pavv1.WorkflowSnapshotDeletion, pavv1.WorkflowBucketDeletion, pavv1.WorkflowRevocation:
		rank = rankDeletion
	case pavv1.WorkflowGrant:
		rank = rankPV
	}
	scheduled := Entry{Time: pod.Scheduled, Object: object, What: kind + " pod scheduled", rank: rank}
	if since := f.begun(); pod.Number == 1 && !since.IsZero() {
		scheduled.Duration, scheduled.Of = took(since, pod.Scheduled.Time), "queue"
	}
	return []Entry{scheduled, {Time: pod.Began, Object: object, What: kind + " pod started",
		Duration: took(pod.Scheduled.Time, pod.Began.Time), Of: "start", rank: rank + 1}}
}

// begun returns when the record of the snapshot or volume that was asked about was written, or the zero time.
func (f *Facts) begun() time.Time {
	switch {
	case f.Snapshot != nil && f.Snapshot.Record != nil:
		return f.Snapshot.Record.CreationTimestamp.Time
	case f.Snapshot == nil && f.Volume != nil:
		return f.Volume.CreationTimestamp.Time
	}
	return time.Time{}
}

// wanted returns when the wait for a pod began, if the ledgers tell: for the first pod, when its PavVolume, PavSnapshot or
// PavStage was created; for the creation pod, when validation ended.
func wanted(f *Facts, pod *corev1.Pod) time.Time {
	kind, stage := pod.Labels[pavv1.WorkflowLabel], pod.Labels[pavv1.StageLabel]
	switch {
	case f.Bucket != nil:
		return f.Bucket.wanted(pod)
	case pod.Annotations[pavv1.SnapshotAnnotation] != "" && (workflow.Attempt(pod) != 1 || kind != pavv1.WorkflowSnapshotCreation):
		return time.Time{}
	case pod.Annotations[pavv1.SnapshotAnnotation] != "":
		return requested(f, pod.Annotations[pavv1.SnapshotAnnotation])
	case stage == "" && workflow.Attempt(pod) == 1 && f.Volume != nil && kind != pavv1.WorkflowDeletion:
		return f.Volume.CreationTimestamp.Time
	case stage == "" && kind == pavv1.WorkflowCreation:
		return validated(f, workflow.Attempt(pod)-1)
	case kind == pavv1.WorkflowStaging && workflow.Attempt(pod) == 1:
		for i := range f.Stages {
			if s := &f.Stages[i]; s.Name == stage && s.Status.ValidationPod == nil {
				return s.CreationTimestamp.Time
			}
		}
	}
	return time.Time{}
}

// validated returns when the validation pod with a number ended, or the zero time.
func validated(f *Facts, number int32) time.Time {
	for i := range f.Pods {
		if pod := &f.Pods[i]; pod.Labels[pavv1.WorkflowLabel] == pavv1.WorkflowValidation && workflow.Attempt(pod) == number {
			return ended(pod).Time
		}
	}
	return time.Time{}
}

// began returns when the first container of a pod, including init containers, began to run, or the zero time.
func began(pod *corev1.Pod) metav1.Time {
	var first metav1.Time
	for _, s := range statuses(pod) {
		for _, state := range []corev1.ContainerState{s.State, s.LastTerminationState} {
			at := metav1.Time{}
			switch {
			case state.Running != nil:
				at = state.Running.StartedAt
			case state.Terminated != nil:
				at = state.Terminated.StartedAt
			}
			if !at.IsZero() && (first.IsZero() || at.Before(&first)) {
				first = at
			}
		}
	}
	return first
}

func hasBegun(pod *corev1.Pod) bool {
	at := began(pod)
	return !at.IsZero()
}

// ended returns when the last container of a pod ended, or the zero time.
func ended(pod *corev1.Pod) metav1.Time {
	var end metav1.Time
	for _, s := range statuses(pod) {
		if over := s.State.Terminated; over != nil && end.Before(&over.FinishedAt) {
			end = over.FinishedAt
		}
	}
	return end
}

func statuses(pod *corev1.Pod) []corev1.ContainerStatus {
	return append(slices.Clone(pod.Status.InitContainerStatuses), pod.Status.ContainerStatuses...)
}

// exit returns the end of the first container that failed.
func exit(pod *corev1.Pod) string {
	for _, s := range statuses(pod) {
		if over := s.State.Terminated; over != nil && over.ExitCode != 0 {
			text := fmt.Sprintf(": container %s, exit code %d", s.Name, over.ExitCode)
			if over.Reason != "" && over.Reason != "Error" {
				text += " (" + over.Reason + ")"
			}
			return text
		}
	}
	if pod.Status.Reason != "" {
		return ": " + pod.Status.Reason
	}
	return ""
}
