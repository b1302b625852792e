package csi

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/node/pavdir"
	"github.com/albertofaria/pav/internal/workflow"
)

// Keys that kubelet adds to the volume context of a driver with podInfoOnMount. No pod can set them.
const (
	podNameKey      = "csi.storage.k8s.io/pod.name"
	podNamespaceKey = "csi.storage.k8s.io/pod.namespace"
	podUIDKey       = "csi.storage.k8s.io/pod.uid"
	ephemeralKey    = "csi.storage.k8s.io/ephemeral"
)

// user is a pod that may have a /pav: that of a stage, or one of its own.
type user struct {
	stage string // name of the PavStage; empty for a pod of the controller agent
	pod   pavdir.Pod

	// announce says that it must be known of the pod that it has got /pav.
	announce bool

	// mayBeReady says that the result of the pod is known when it creates /pav/ready.
	mayBeReady bool
}

// userOf returns the pod in the volume context. It must be a pod of PaV: with PaV's label, and with a controller that
// exists and has recorded the pod: a PavStage of this node or, if the pod is on this node, a record of the controller agent.
func (s *pavNode) userOf(ctx context.Context, volumeContext map[string]string) (user, error) {
	if volumeContext[ephemeralKey] != "true" {
		return user{}, fmt.Errorf("%w: driver %s serves inline volumes only", errInvalid, pavv1.Driver)
	}
	key := client.ObjectKey{Namespace: volumeContext[podNamespaceKey], Name: volumeContext[podNameKey]}
	pod, err := s.foreign.podOf(ctx, types.UID(volumeContext[podUIDKey]), func(ctx context.Context) (*corev1.Pod, error) {
		return s.candidate(ctx, key, types.UID(volumeContext[podUIDKey]))
	})
	if err != nil {
		return user{}, err
	}
	owner := metav1.GetControllerOf(pod)
	found := user{pod: pavdir.Pod{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}}
	if owner.Kind == "PavStage" {
		found.stage = owner.Name
		return found, s.checkStage(ctx, key, owner)
	}
	record, err := s.recordOf(ctx, pod, owner)
	if err != nil {
		return found, err
	}
	kind := pod.Labels[pavv1.WorkflowLabel]
	found.mayBeReady = workflow.MayBeReady(pod)
	found.pod.Credentials = kind == pavv1.WorkflowGrant
	found.announce = workflow.Creates(kind) && isRecorded(record.pod, pod) && !record.handlePlanned &&
		pod.Annotations[pavv1.GivenAnnotation] == ""
	return found, nil
}

// candidate returns a pod that has PaV's label. A pod without it never becomes a pod of PaV.
func (s *pavNode) candidate(ctx context.Context, key client.ObjectKey, uid types.UID) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	if err := s.client.Get(ctx, key, pod); apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%w: pod %s does not exist", errForeignPod, key)
	} else if err != nil {
		return nil, fmt.Errorf("getting pod %s: %w", key, err)
	}
	if pod.UID != uid {
		return nil, fmt.Errorf("%w: pod %s is another one by now", errForeignPod, key)
	}
	owner := metav1.GetControllerOf(pod)
	if owner == nil || owner.APIVersion != pavv1.GroupVersion.String() {
		return nil, fmt.Errorf("%w: pod %s is none", errForeignPod, key)
	}
	// Tenants can set owners, but no labels of PaV's.
	kind := pod.Labels[pavv1.WorkflowLabel]
	ofStage := owner.Kind == "PavStage" && kind != "" && pod.Labels[pavv1.StageLabel] == owner.Name
	if !ofStage && !slices.Contains(workflowsOf(owner.Kind), kind) {
		return nil, fmt.Errorf("%w: pod %s is none", errForeignPod, key)
	}
	return pod, nil
}

// workflowsOf returns the workflows of the objects of a kind that the controller agent runs.
func workflowsOf(kind string) []string {
	switch kind {
	case "PavVolume":
		return pavv1.WorkflowsOfVolumes()
	case "PavSnapshot":
		return pavv1.WorkflowsOfSnapshots()
	case "PavBucket":
		return pavv1.WorkflowsOfBuckets()
	case "PavBucketAccess":
		return pavv1.WorkflowsOfAccesses()
	}
	return nil
}

func (s *pavNode) checkStage(ctx context.Context, key client.ObjectKey, owner *metav1.OwnerReference) error {
	stage := &pavv1.PavStage{}
	if err := s.client.Get(ctx, client.ObjectKey{Name: owner.Name}, stage); apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: PavStage %q of pod %s does not exist", errForeignPod, owner.Name, key)
	} else if err != nil {
		return fmt.Errorf("getting PavStage %q: %w", owner.Name, err)
	}
	if stage.UID != owner.UID || stage.Spec.NodeName != s.nodeID || !s.onRecord(&stage.Status, key) {
		return fmt.Errorf("%w: PavStage %q knows nothing of pod %s on this node", errForeignPod, owner.Name, key)
	}
	return nil
}

// onRecord reports whether a pod may have the stage's /pav. While the volume is being unstaged, only the unstaging
// pod may: a staging pod may start late, long after the answer to its creation was given up.
func (s *pavNode) onRecord(status *pavv1.PavStageStatus, pod client.ObjectKey) bool {
	refs := []*pavv1.PodReference{status.UnstagingPod}
	if status.Phase != pavv1.StageUnstaging {
		refs = append(refs, status.ValidationPod, status.StagingPod)
	}
	// Since the node restarted, nothing is mounted there that could be expanded.
	if status.Phase == pavv1.StageStaged && s.boot.Same(pavdir.Boot{BootID: status.BootID, NodeStart: status.NodeStart}) {
		refs = append(refs, status.ExpansionPod())
	}
	for _, ref := range refs {
		if ref != nil && ref.Namespace == pod.Namespace && ref.Name == pod.Name {
			return true
		}
	}
	return false
}

// podRecord is what a record of the controller agent has of its pods.
type podRecord struct {
	// pod is that of the current step. readyPod is the creation pod of a volume that goes on after /pav/ready.
	pod, readyPod *pavv1.PodReference

	// handlePlanned says that a creation pod of a volume or snapshot cannot choose the handle. That of a bucket always has something
	// to tell: whether the bucket is the claim's.
	handlePlanned bool
}

// recordOf returns the record in which a pod of this node must be. A kubelet that was restarted asks again for the /pav of
// a creation pod that goes on after /pav/ready.
func (s *pavNode) recordOf(ctx context.Context, pod *corev1.Pod, owner *metav1.OwnerReference) (podRecord, error) {
	key := client.ObjectKeyFromObject(pod)
	var object client.Object
	switch owner.Kind {
	case "PavSnapshot":
		object = &pavv1.PavSnapshot{}
	case "PavBucket":
		object = &pavv1.PavBucket{}
	case "PavBucketAccess":
		object = &pavv1.PavBucketAccess{}
	default:
		object = &pavv1.PavVolume{}
	}
	if err := s.client.Get(ctx, client.ObjectKey{Name: owner.Name}, object); apierrors.IsNotFound(err) {
		return podRecord{}, fmt.Errorf("%w: %s %q of pod %s does not exist", errForeignPod, owner.Kind, owner.Name, key)
	} else if err != nil {
		return podRecord{}, fmt.Errorf("getting %s %q: %w", owner.Kind, owner.Name, err)
	}
	var record podRecord
	switch o := object.(type) {
	case *pavv1.PavVolume:
		planned := o.Status.Plan != nil && o.Status.Plan.Handle != ""
		record = podRecord{pod: o.Status.Pod, readyPod: o.Status.CreationPod, handlePlanned: planned}
	case *pavv1.PavSnapshot:
		record = podRecord{pod: o.Status.Pod, handlePlanned: o.Status.PlannedHandle != ""}
	case *pavv1.PavBucket:
		record = podRecord{pod: o.Status.Pod}
	case *pavv1.PavBucketAccess:
		record = podRecord{pod: o.Status.Pod}
	}
	recorded := isRecorded(record.pod, pod) || isRecorded(record.readyPod, pod)
	if object.GetUID() != owner.UID || pod.Spec.NodeName != s.nodeID || !recorded {
		return podRecord{}, fmt.Errorf("%w: %s %q knows nothing of pod %s on this node", errForeignPod, owner.Kind, owner.Name, key)
	}
	return record, nil
}

// isRecorded reports whether the reference is that of the pod. It may have been written before the pod was created,
// and then has no UID.
func isRecorded(ref *pavv1.PodReference, pod *corev1.Pod) bool {
	return ref != nil && ref.Namespace == pod.Namespace && ref.Name == pod.Name && (ref.UID == "" || ref.UID == pod.UID)
}
