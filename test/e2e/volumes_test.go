package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// reportedWithin is how soon an event must say why a claim waits: ten times the 10 s that are promised, as the machine may be
// busy. A wait for a retry takes minutes.
const reportedWithin = 100 * time.Second

// notWorkflow selects the pods that are not PaV's.
var notWorkflow = func() labels.Selector {
	requirement, err := labels.NewRequirement(pavv1.WorkflowLabel, selection.DoesNotExist, nil)
	if err != nil {
		panic(err)
	}
	return labels.NewSelector().Add(*requirement)
}()

// volumeName returns the name of the PavVolume and the PersistentVolume of a claim.
func volumeName(claim *corev1.PersistentVolumeClaim) string { return "pvc-" + string(claim.UID) }

// volumeOf returns the PavVolume of a claim.
func volumeOf(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*pavv1.PavVolume, error) {
	volume := &pavv1.PavVolume{}
	return volume, kube.Get(ctx, client.ObjectKey{Name: volumeName(claim)}, volume)
}

// awaitVolume waits until something is true of the PavVolume of a claim, and returns it.
func awaitVolume(t *testing.T, claim *corev1.PersistentVolumeClaim, what string, condition func(*pavv1.PavVolume) bool) *pavv1.PavVolume {
	t.Helper()
	var volume *pavv1.PavVolume
	eventually(t, "the PavVolume of "+claim.Name+": "+what, func(ctx context.Context) (err error) {
		if volume, err = volumeOf(ctx, claim); err != nil {
			return err
		}
		if !condition(volume) {
			return fmt.Errorf("its status is %+v", volume.Status)
		}
		return nil
	})
	return volume
}

// awaitStep waits until a step of a claim's volume has begun.
func awaitStep(t *testing.T, claim *corev1.PersistentVolumeClaim, step pavv1.VolumeStep) *pavv1.PavVolume {
	t.Helper()
	return awaitVolume(t, claim, "step "+string(step), func(v *pavv1.PavVolume) bool { return v.Status.Step == step })
}

// awaitBound waits until a claim is bound, and returns its volume.
func awaitBound(t *testing.T, claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	t.Helper()
	eventually(t, "claim "+claim.Name+" is bound", func(ctx context.Context) error { return wantBound(ctx, claim) })
	pv := &corev1.PersistentVolume{}
	must(t, kube.Get(t.Context(), client.ObjectKey{Name: volumeName(claim)}, pv))
	return pv
}

func wantBound(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	now := &corev1.PersistentVolumeClaim{}
	if err := kube.Get(ctx, client.ObjectKeyFromObject(claim), now); err != nil {
		return err
	}
	if now.UID != claim.UID || now.Status.Phase != corev1.ClaimBound {
		return fmt.Errorf("it is %s", now.Status.Phase)
	}
	return nil
}

// awaitNoVolume waits until nothing is left of a claim's volume, except perhaps records of what its pods did.
func awaitNoVolume(t *testing.T, claim *corev1.PersistentVolumeClaim) {
	t.Helper()
	awaitNone(t, claim, &corev1.PersistentVolume{}, &pavv1.PavVolume{})
}

// awaitNone waits until none of these kinds of objects has the name of a claim's volume.
func awaitNone(t *testing.T, claim *corev1.PersistentVolumeClaim, objects ...client.Object) {
	t.Helper()
	eventually(t, "the volume of claim "+claim.Name+" is gone", func(ctx context.Context) error {
		for _, object := range objects {
			err := kube.Get(ctx, client.ObjectKey{Name: volumeName(claim)}, object)
			if err == nil {
				return fmt.Errorf("%T %s exists: %+v", object, object.GetName(), object)
			}
			if client.IgnoreNotFound(err) != nil {
				return err
			}
		}
		return nil
	})
}

// removeClaim deletes a claim, and waits until nothing is left of its volume.
func removeClaim(t *testing.T, claim *corev1.PersistentVolumeClaim) {
	t.Helper()
	remove(t, claim)
	awaitNoVolume(t, claim)
}

// wantClaimEvent waits for an event on a claim, and returns when it was made, which may be long before it was written.
func wantClaimEvent(t *testing.T, claim *corev1.PersistentVolumeClaim, reason string, words ...string) time.Time {
	t.Helper()
	var event *corev1.Event
	eventually(t, fmt.Sprintf("claim %s has an event with %q", claim.Name, words), func(ctx context.Context) (err error) {
		event, err = findEvent(ctx, claim.Namespace, claim.Name, reason, words...)
		return err
	})
	return event.FirstTimestamp.Time
}

// wantClaimEventSoon is like wantClaimEvent, for an event that must come soon after its cause.
func wantClaimEventSoon(t *testing.T, claim *corev1.PersistentVolumeClaim, happened time.Time, reason string, words ...string) {
	t.Helper()
	wantSoon(t, fmt.Sprintf("claim %s has an event with %q", claim.Name, words), happened, wantClaimEvent(t, claim, reason, words...))
}

// wantSoon fails the test if an event came later after its cause than is promised.
func wantSoon(t *testing.T, what string, happened, reported time.Time) {
	t.Helper()
	late := reported.Sub(happened)
	t.Logf("%s after %s", what, late)
	if late > reportedWithin {
		t.Errorf("that is more than %s", reportedWithin)
	}
}

// wantClusterEvent waits for an event on an object of the cluster, whose events are in namespace default.
func wantClusterEvent(t *testing.T, object client.Object, kind, reason string, words ...string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s %s has an event %s", kind, object.GetName(), reason), func(ctx context.Context) error {
		events := &corev1.EventList{}
		if err := kube.List(ctx, events, client.InNamespace("default"), client.MatchingFields{"involvedObject.name": object.GetName(), "involvedObject.kind": kind, "reason": reason}); err != nil {
			return err
		}
		var seen []string
		for i := range events.Items {
			message := events.Items[i].Message
			if hasAll(message, words) {
				return nil
			}
			seen = append(seen, message)
		}
		return fmt.Errorf("none has all of %q, but there are %q", words, seen)
	})
}

func hasAll(text string, words []string) bool {
	for _, word := range words {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

// conditionOf returns a condition of a PavVolume, or an empty one.
func conditionOf(volume *pavv1.PavVolume, kind string) (status, message string) {
	condition := meta.FindStatusCondition(volume.Status.Conditions, kind)
	if condition == nil {
		return "", ""
	}
	return string(condition.Status), condition.Message
}

func keyOf(object client.Object) client.ObjectKey { return client.ObjectKeyFromObject(object) }
